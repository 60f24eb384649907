/* SPDX-License-Identifier: Apache-2.0 */
/* Compares secrets in constant time. */
#include "core/text/secret.h"

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
