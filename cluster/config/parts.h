/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a config, for config.c and tests. */
#ifndef SPOKEI_CLUSTER_CONFIG_PARTS_H
#define SPOKEI_CLUSTER_CONFIG_PARTS_H

#include "cluster/config/config.h"
#include "cluster/config/file.h"
#include "timer/base.h"

#include <spoke/signals.h>

struct spoke_config {
	const struct spoke_env *env;
	char *name; /* of the file */
	size_t name_size;
	bool is_file;                    /* false: parsed from a text */
	struct spokei_config_file file;  /* current values */
	struct spokei_config_file first; /* values of the first load; shares memory with `file`
					  * until a reload */
	struct spoke_list users;
	struct spoke_signal signal;
	struct spokei_config_news news;            /* of the last reload */
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX]; /* news.sentence */
	struct spoke_engine *signalled;            /* the engine of a reload by a signal */
	bool busy;                                 /* a reload is in progress */
	bool again;                                /* ... and another signal has come */
	bool freed;                                /* ... and frees the config when it ends */
};

/* Returns the engine of the users or of the watched signal; NULL if there is neither. */
struct spoke_engine *spokei_config_engine(const struct spoke_config *config);

#endif
