/* SPDX-License-Identifier: Apache-2.0 */
/* The option --config of verbs: a file of settings, as spoke.conf(5) describes it. */
#ifndef COMMAND_SETTINGS_H
#define COMMAND_SETTINGS_H

#include <spoke/config.h>

/* Reads it; a path that is NULL is no file. Returns VERB_OK, or VERB_USAGE when it has said all
 * that is wrong with it. Free *ret_config with spoke_config_free(), after the engine. */
int settings_load(const char *verb, const char *path, struct spoke_config **ret_config);

#endif
