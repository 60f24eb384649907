/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a directory. */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_SETTINGS_H
#define SPOKEI_CLUSTER_ENDPOINTS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct spokei_directory_settings {
	const char *service; /* the texts outlive the directory */
	const char *version; /* "*": any */
	const char *group;
	uint32_t connections;    /* to each endpoint; 0: 1 */
	uint32_t actives_max;    /* attempts in flight to one endpoint; 0: no limit */
	uint32_t eject_failures; /* consecutive failures that eject an endpoint; 0: never */
	uint64_t eject_ns;       /* duration of the first ejection; later ones last longer */
	bool lazy;               /* connect on the first call */
	bool local_path;         /* connect to providers of this host by their paths */
	bool protects;           /* ignore a list without any endpoint */
};

#endif
