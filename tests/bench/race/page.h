/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a race as one HTML page without scripts and other files: its conclusion, bars of
 * each pattern with their spread and limit, and a table. Legible on light and dark backgrounds, at
 * a width of 1,000 pixels.
 */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include "recorded.h"

#include <stdbool.h>

/* Writes the page of all rows of the report; creates the last directory of the path if it is
 * missing. Returns whether the file was written. */
bool page_write(const char *path, const struct recorded_facts *facts);

#endif
