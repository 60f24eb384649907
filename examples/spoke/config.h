/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of keys, for a terminal and as the manual page spoke.conf(5). */
#ifndef COMMAND_CONFIG_H
#define COMMAND_CONFIG_H

#include <spoke/config.h>

/*
 * Iterates over the keys, grouped by the sections they are allowed in, in the table's order.
 * Zero-initialised: before the first key.
 */
struct config_walk {
	size_t next;
	struct spoke_config_key key;
	bool first; /* of its group */
	size_t group;
	bool begun;
};

/* Moves to the next key; returns false at the end. */
bool config_walk(struct config_walk *walk);

/* Prints the allowed sections, e.g. "[consumer], [service.NAME]". */
void config_print_sections(const char *sections);

/* Prints the page, as mdoc(7). */
void config_print_manual(void);

#endif
