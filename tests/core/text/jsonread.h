/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of JSON for tests: RFC 8259 to the letter, UTF-8 without exceptions, no name
 * twice in an object. Values are paths into the text, found anew each time: slow and simple.
 */
#ifndef TESTS_CORE_TEXT_JSONREAD_H
#define TESTS_CORE_TEXT_JSONREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value: where it begins in the text. */
struct jsonread {
	const char *at; /* NULL: there is none */
	const char *end;
};

/* Checks all of a text. Returns NULL, or a sentence that says what is wrong; then *ret_at is where.
 */
const char *jsonread_check(const char *text, size_t len, size_t *ret_at);

/* The whole of a text that was checked. */
struct jsonread jsonread_of(const char *text, size_t len);

/*
 * What is at a path, as "consumers[0].endpoints[2].state"; at == NULL: nothing is. A member's name
 * in the path is one of letters, digits and "_".
 */
struct jsonread jsonread_get(struct jsonread value, const char *path);

/* How many elements a list has; the test fails if it is none. */
size_t jsonread_count(struct jsonread list);

/* A number without fraction; the test fails if there is none. */
uint64_t jsonread_u64(struct jsonread value, const char *path);

bool jsonread_is_null(struct jsonread value, const char *path);
bool jsonread_is_true(struct jsonread value, const char *path);

/* A text, with its escapes undone, as UTF-8; good until the next one is asked for. */
const char *jsonread_text(struct jsonread value, const char *path);

#endif
