/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys in two shapes: for a terminal, and as the page spoke.conf(5). */
#ifndef COMMAND_CONFIG_H
#define COMMAND_CONFIG_H

#include <spoke/config.h>

/*
 * Keys that may stand in the same sections are one group; goes through groups and their keys, in
 * the table's order. Zero-initialised it begins before the first.
 */
struct config_walk {
	size_t next;
	struct spoke_config_key key;
	bool first; /* of its group */
	size_t group;
	bool begun;
};

/* The next key; false: there was the last one. */
bool config_walk(struct config_walk *walk);

/* Prints where keys may stand, as "[consumer], [service.NAME]". */
void config_print_sections(const char *sections);

/* Prints the page, as mdoc(7). */
void config_print_manual(void);

#endif
