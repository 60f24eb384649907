/* SPDX-License-Identifier: Apache-2.0 */
/* A file of settings beside the rig of consumers and providers. */
#ifndef TESTS_CLUSTER_CONFIG_CONFIGRIG_H
#define TESTS_CLUSTER_CONFIG_CONFIGRIG_H

#include "core/virtual/files.h"
#include "tests/cluster/clusterrig.h"

#include <spoke/config.h>

#define CONFIGRIG_PATH "a.conf"

struct configrig {
	struct spoke_config *config;
	char told[2048]; /* all sentences since the last load or reload, a line each */
	void (*in_told)(void);
};

extern struct configrig configrig;

int configrig_set_up(void **state);

/* Frees the config too. */
int configrig_tear_down(void **state);

/* Loads a file that is right. */
void configrig_load(const char *text);

/* The file has another text, and is read again; returns as spoke_config_reload(). */
int configrig_try(const char *text);

/* The same of one in which all is right and live. */
void configrig_reload(const char *text);

/* A consumer that goes by it. */
void configrig_consume(const char *query);

/* For the functions of a config. */
void configrig_told(void *arg, const char *sentence);

#endif
