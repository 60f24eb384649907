/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a config have of each other: config.c has its life, config_reload.c reads it
 * again. */
#ifndef SPOKEI_CONFIG_PARTS_H
#define SPOKEI_CONFIG_PARTS_H

#include "cluster/config.h"

/* Reads a file. Returns as spoke_config_load(). */
SPOKE_MUST_USE int spokei_config_read_file(const struct spoke_env *env, const char *path,
					   spoke_config_told told, void *arg,
					   struct spokei_sheet *ret);

/* It is this engine's. Returns as spokei_config_join(). */
SPOKE_MUST_USE int spokei_config_claim(struct spoke_config *config, struct spoke_engine *engine);

#endif
