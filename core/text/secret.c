/* SPDX-License-Identifier: Apache-2.0 */
/* Compares secrets in constant time, and wipes them. */
/* For explicit_bzero(). NOLINTNEXTLINE(bugprone-reserved-identifier): of the C library */
#define _DEFAULT_SOURCE
#include "core/text/secret.h"

#include <stdint.h>
#include <string.h>

bool spokei_secret_is(struct spoke_span given, const char *secret)
{
	const unsigned char *bytes = given.data;
	size_t len = strlen(secret);
	volatile unsigned char wrong = len == 0 || given.len != len;

	for (size_t i = 0; i < given.len; i++)
		wrong = (unsigned char)(wrong |
					(bytes[i] ^ (unsigned char)secret[i < len ? i : len]));
	return wrong == 0;
}

bool spokei_secret_same(const void *a, const void *b, size_t len)
{
	const unsigned char *one = a;
	const unsigned char *other = b;
	volatile uint64_t wrong = 0;
	uint64_t words[2];

	for (; len >= sizeof(words[0]); len -= sizeof(words[0])) {
		memcpy(&words[0], one, sizeof(words[0]));
		memcpy(&words[1], other, sizeof(words[1]));
		wrong = wrong | (words[0] ^ words[1]);
		one += sizeof(words[0]);
		other += sizeof(words[0]);
	}
	for (size_t i = 0; i < len; i++)
		wrong = wrong | (uint64_t)(one[i] ^ other[i]);
	return wrong == 0;
}

void spokei_secret_wipe(void *bytes, size_t len)
{
	explicit_bzero(bytes, len);
}
