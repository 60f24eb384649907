/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets the bytes of a fuzzer as a script of numbers and pieces. At its end there are only
 * zeros.
 */
#ifndef TESTS_CLUSTER_SCRIPT_H
#define TESTS_CLUSTER_SCRIPT_H

#include <spoke/value.h>

#include <stdbool.h>
#include <stdint.h>

struct script {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t script_byte(struct script *script)
{
	if (script->left == 0)
		return 0;
	script->left--;
	return *script->at++;
}

/* Returns the next piece, at most `len` bytes. */
static inline struct spoke_span script_piece(struct script *script, size_t len)
{
	struct spoke_span piece = { script->at, len < script->left ? len : script->left };

	script->at += piece.len;
	script->left -= piece.len;
	return piece;
}

#endif
