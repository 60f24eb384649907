/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of Prometheus' text format 0.0.4 for tests, which holds to its conventions too:
 * families are whole, with one HELP and one TYPE before their samples; no sample is there twice;
 * counters, and nothing else, end in _total; histograms have rising bounds and counts, +Inf among
 * them, and as much in their _count.
 */
#ifndef TESTS_CLUSTER_ADMIN_PROMREAD_H
#define TESTS_CLUSTER_ADMIN_PROMREAD_H

#include <stddef.h>

/* Checks all of a text. Returns NULL, or a sentence that says what is wrong; then *ret_line is
 * where, from 1 on. */
const char *promread_check(const char *text, size_t len, unsigned *ret_line);

/* The value of a sample by its name and labels as they are written; the test fails if there is
 * none. The text was checked, and is followed by a NUL. */
double promread_value(const char *text, const char *sample);

#endif
