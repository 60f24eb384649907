/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of a race as a text file: facts of the machine and the peers, and all
 * repetitions. A report can be written from it again, without measuring.
 */
#ifndef BENCH_RECORDED_H
#define BENCH_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#define RECORDED_FACTS_MAX 16

/* A fact, e.g. "Kernel" and its version. */
struct recorded_fact {
	char name[32];
	char value[480];
};

struct recorded_facts {
	struct recorded_fact facts[RECORDED_FACTS_MAX];
	uint32_t count;
};

/* Appends a fact; does nothing if there is no room. */
void recorded_add(struct recorded_facts *facts, const char *name, const char *value);

/* Writes the facts and all rows of the report; returns whether the file was written. */
bool recorded_save(const char *path, const struct recorded_facts *facts);

/* Reads a file into `ret_facts` and the report, whose names are never freed. Returns 0, -1 if the
 * file cannot be read, or the number of the first line that is not valid. */
int recorded_load(const char *path, struct recorded_facts *ret_facts);

#endif
