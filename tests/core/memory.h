/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment that has nothing but memory: it counts what is out and can refuse the N-th demand.
 * Blocks come from the C library, each of its own, so that a sanitizer sees every overrun.
 */
#ifndef TESTS_CORE_MEMORY_H
#define TESTS_CORE_MEMORY_H

#include <spoke/env.h>
#include <spoke/url.h>

#include <string.h>

struct memory {
	struct spoke_env env;
	size_t bytes;     /* out now */
	unsigned asked;   /* demands so far */
	unsigned fail_at; /* the demand that fails, counted from 1; 0: none */
};

void memory_init(struct memory *memory);

/* spoke_url_parse() from a block of exactly the text's length, where every byte too far is seen. */
int memory_parse_url(struct memory *memory, const char *text, size_t len, struct spoke_url *ret_url,
		     struct spoke_url_error *error);

#endif
