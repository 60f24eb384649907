/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict JSON reader for tests: RFC 8259 exactly, only valid UTF-8, no duplicate names in an
 * object. Each call searches for its value from the start: slow and simple.
 */
#ifndef TESTS_CORE_JSON_JSONREAD_H
#define TESTS_CORE_JSON_JSONREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value, as a range of the text. */
struct jsonread {
	const char *at; /* NULL: no such value */
	const char *end;
};

/* Validates a text. Returns NULL, or a sentence about the first error and its offset in *ret_at. */
const char *jsonread_check(const char *text, size_t len, size_t *ret_at);

/* Returns the value of a valid text. */
struct jsonread jsonread_of(const char *text, size_t len);

/* Returns the value at a path, e.g. "consumers[0].endpoints[2].state", or at == NULL if there is
 * none. Names in a path consist of letters, digits and "_". */
struct jsonread jsonread_get(struct jsonread value, const char *path);

/* Returns the length of a list. Fails the test if the value is not a list. */
size_t jsonread_count(struct jsonread list);

/* Returns an integer. Fails the test if the value is no integer. */
uint64_t jsonread_u64(struct jsonread value, const char *path);

bool jsonread_is_null(struct jsonread value, const char *path);
bool jsonread_is_true(struct jsonread value, const char *path);

/* Returns a string as UTF-8 with its escapes decoded. It is valid until the next call. */
const char *jsonread_text(struct jsonread value, const char *path);

#endif
