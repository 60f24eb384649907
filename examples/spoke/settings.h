/* SPDX-License-Identifier: Apache-2.0 */
/* The option --config of verbs: loads a configuration file, see spoke.conf(5). */
#ifndef COMMAND_SETTINGS_H
#define COMMAND_SETTINGS_H

#include <spoke/config.h>

/* Returns whether the path can be one of a file or folder; otherwise it is a URL, which an error
 * names without its secrets. */
bool settings_is_file(const char *verb, const char *path);

/* Loads the file; without a path it does nothing. Returns VERB_OK, or prints all errors and returns
 * VERB_USAGE. Free *ret_config with spoke_config_free(), after the engine. */
int settings_load(const char *verb, const char *path, struct spoke_config **ret_config);

/* Reads the document that [comet] page names; *ret_page NULL: it names none. Free it with free().
 * Returns true, or calls `told` and returns false. */
bool settings_page(const char *path, const struct spoke_config *config,
		   spoke_config_message_fn told, void *arg, char **ret_page);

#endif
