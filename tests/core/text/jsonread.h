/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of JSON for tests: exactly RFC 8259, valid UTF-8 only, no name repeated in an
 * object. Values are found again by their path in each call: slow and simple.
 */
#ifndef TESTS_CORE_TEXT_JSONREAD_H
#define TESTS_CORE_TEXT_JSONREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value, by its place in the text. */
struct jsonread {
	const char *at; /* NULL: there is none */
	const char *end;
};

/* Checks a text. Returns NULL, or a sentence about the first error and its offset, *ret_at. */
const char *jsonread_check(const char *text, size_t len, size_t *ret_at);

/* Returns the value of a valid text. */
struct jsonread jsonread_of(const char *text, size_t len);

/*
 * Returns the value at a path, e.g. "consumers[0].endpoints[2].state"; at == NULL: there is none.
 * Names in a path have letters, digits and "_" only.
 */
struct jsonread jsonread_get(struct jsonread value, const char *path);

/* Returns the length of a list. Fails the test if the value is not a list. */
size_t jsonread_count(struct jsonread list);

/* Returns an integer. Fails the test if there is none. */
uint64_t jsonread_u64(struct jsonread value, const char *path);

bool jsonread_is_null(struct jsonread value, const char *path);
bool jsonread_is_true(struct jsonread value, const char *path);

/* Returns a text as UTF-8, with its escapes decoded; valid until the next call. */
const char *jsonread_text(struct jsonread value, const char *path);

#endif
