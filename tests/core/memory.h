/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment with memory only. It counts the allocated bytes and can fail the N-th request.
 * Each block is an allocation of the C library's, so that a sanitizer detects every overrun.
 */
#ifndef TESTS_CORE_MEMORY_H
#define TESTS_CORE_MEMORY_H

#include <spoke/env.h>
#include <spoke/url.h>

#include <string.h>

struct memory {
	struct spoke_env env;
	size_t bytes;     /* allocated now */
	unsigned asked;   /* requests so far */
	unsigned fail_at; /* the request that fails, counted from 1; 0 means none */
};

void memory_init(struct memory *memory);

/* Calls spoke_url_parse() with a copy of exactly the text's length, so that an overrun is detected.
 */
int memory_parse_url(struct memory *memory, const char *text, size_t len, struct spoke_url *ret_url,
		     struct spoke_url_error *error);

#endif
