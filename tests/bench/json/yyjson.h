/* SPDX-License-Identifier: Apache-2.0 */
/* yyjson for the benchmark of JSON; or nothing, where it is not installed. */
#ifndef TESTS_BENCH_JSON_YYJSON_H
#define TESTS_BENCH_JSON_YYJSON_H

#include <stddef.h>

struct yyjson;

/* Reads a document, which is borrowed. Returns NULL if yyjson is not installed. */
struct yyjson *yyjson_make(const char *text, size_t len);
void yyjson_drop(struct yyjson *yyjson);

/* Read a text, and print the document. Return a number that depends on the result. */
size_t yyjson_run_read(struct yyjson *yyjson, const char *text, size_t len);
size_t yyjson_run_print(struct yyjson *yyjson);

#endif
