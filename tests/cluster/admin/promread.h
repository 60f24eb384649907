/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of Prometheus' text format 0.0.4 for tests, which checks its conventions too: a
 * family is not split, and has one HELP and one TYPE before its samples; no sample is repeated;
 * only counters end in _total; histograms have rising bounds and counts, and a +Inf equal to their
 * _count.
 */
#ifndef TESTS_CLUSTER_ADMIN_PROMREAD_H
#define TESTS_CLUSTER_ADMIN_PROMREAD_H

#include <stddef.h>

/* Checks a text. Returns NULL, or a sentence about the first error and its line, from 1 on. */
const char *promread_check(const char *text, size_t len, unsigned *ret_line);

/* Returns the value of a sample, given its name and labels as written. Fails the test if there is
 * none. The text is valid, and ends with a NUL. */
double promread_value(const char *text, const char *sample);

#endif
