/* SPDX-License-Identifier: Apache-2.0 */
/* The last reload of a configuration file. */
#ifndef SPOKEI_CLUSTER_CONFIG_NEWS_H
#define SPOKEI_CLUSTER_CONFIG_NEWS_H

#include <stddef.h>
#include <stdint.h>

struct spokei_config_news {
	const char *name;     /* of the file */
	uint64_t reloads;     /* attempts */
	uint64_t at_ns;       /* the last one; 0: none */
	int error;            /* of the last one */
	const char *sentence; /* its first message; "": none */
	size_t sentences;     /* its messages: errors, or changes that need a restart */
};

#endif
