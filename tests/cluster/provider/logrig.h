/* SPDX-License-Identifier: Apache-2.0 */
/* The rig of filters, with an access log in a file. */
#ifndef TESTS_CLUSTER_PROVIDER_LOGRIG_H
#define TESTS_CLUSTER_PROVIDER_LOGRIG_H

#include "core/virtual/files.h"
#include "tests/cluster/filter/filterrig.h"

#define LOG_PATH "access"

/* A provider that has it. */
extern const struct spoke_provider_options log_to_file;

void log_begin(const struct spoke_provider_options *options);

/* What is in the file; NULL: there is none. And how often it was appended to. */
const char *log_file(void);
unsigned log_appends(void);

/* How many lines there are, and how many are said to be left out. */
unsigned log_count_lines(unsigned *ret_missing);

/* How many events have these words. */
unsigned log_count_events(const char *words);

/* Requests come in, `count` of them. */
void log_serve(unsigned count);

#endif
