/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a config: config.c loads and frees it, reload.c reads its file again. */
#ifndef SPOKEI_CLUSTER_CONFIG_PARTS_H
#define SPOKEI_CLUSTER_CONFIG_PARTS_H

#include "cluster/config/news.h"
#include "cluster/config/reading.h"
#include "cluster/config/sheet.h"
#include "timer/base.h"

#include <spoke/signals.h>

struct spoke_config {
	const struct spoke_env *env;
	char *name; /* of the file */
	size_t name_size;
	bool is_file;              /* false: parsed from a text */
	struct spokei_sheet sheet; /* current values */
	struct spokei_sheet first; /* values of the first load; shares memory with `sheet` until a
				    * reload */
	struct spoke_list users;
	struct spoke_signal signal;
	struct spokei_config_news news;           /* of the last reload */
	char sentence[SPOKEI_SHEET_SENTENCE_MAX]; /* news.sentence */
	struct spokei_reading reading;            /* while a reload is in progress */
	struct spoke_work work;                   /* ... that a signal has begun */
	struct spoke_engine *signalled;           /* ... on this engine */
	bool busy;                                /* a reload is in progress */
	bool applying;                            /* ... and all has been read */
	bool again;                               /* ... and another signal has come */
	bool freed;                               /* ... and frees the config when it ends */
};

/* Frees the current values, unless they are those of the first load. */
void spokei_config_drop_sheet(struct spoke_config *config);

/* Returns the engine of the users or of the watched signal; NULL if there is neither. */
struct spoke_engine *spokei_config_engine(const struct spoke_config *config);

/* Checks that this engine may use the config. Returns as spokei_config_join(). */
SPOKE_MUST_USE int spokei_config_allow(const struct spoke_config *config,
				       struct spoke_engine *engine);

#endif
