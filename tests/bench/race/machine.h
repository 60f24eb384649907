/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the machine that a result requires. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "recorded.h"

#include <stdio.h>

/* Appends the date, the machine, the congestion control of TCP, the priority, and the versions of
 * the peers. */
void machine_facts(struct recorded_facts *facts);

/* Prints a line in Markdown: processor, cores, kernel, system, compiler, congestion control. */
void machine_print(FILE *out);

/* Writes the names and versions of the peers that have one. */
void machine_versions(char *text, size_t size);

#endif
