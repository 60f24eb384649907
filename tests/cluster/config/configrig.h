/* SPDX-License-Identifier: Apache-2.0 */
/* A config file in addition to the fixture of consumers and providers. */
#ifndef TESTS_CLUSTER_CONFIG_CONFIGRIG_H
#define TESTS_CLUSTER_CONFIG_CONFIGRIG_H

#include "core/virtual/files.h"
#include "tests/cluster/clusterrig.h"

#include <spoke/config.h>

#define CONFIGRIG_PATH "a.conf"

struct configrig {
	struct spoke_config *config;
	char told[2048]; /* messages since the last load or reload, one per line */
	void (*in_told)(void);
};

extern struct configrig configrig;

int configrig_set_up(void **state);

/* Also frees the config. */
int configrig_tear_down(void **state);

/* Loads a valid file. */
void configrig_load(const char *text);

/* Replaces the contents of the file and reloads it. Returns the result of spoke_config_reload(). */
int configrig_try(const char *text);

/* Does the same and asserts that every setting is valid and takes effect at once. */
void configrig_reload(const char *text);

/* Makes a consumer that uses the file. */
void configrig_consume(const char *query);

#endif
