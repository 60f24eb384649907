/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the filter tests with an access log in a file. */
#ifndef TESTS_CLUSTER_PROVIDER_LOGRIG_H
#define TESTS_CLUSTER_PROVIDER_LOGRIG_H

#include "core/virtual/files.h"
#include "tests/cluster/filter/filterrig.h"

#define LOG_PATH "access"

/* Makes a provider with the access log. */
extern const struct spoke_provider_options log_to_file;

void log_begin(const struct spoke_provider_options *options);

/* Returns the contents of the file, or NULL, and the number of writes to it. */
const char *log_file(void);
unsigned log_appends(void);

/* Counts the lines, and the lines reported as left out. */
unsigned log_count_lines(unsigned *ret_missing);

/* Counts the events that contain the words. */
unsigned log_count_events(const char *words);

/* Serves `count` requests. */
void log_serve(unsigned count);

#endif
