/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes base64. */
#include "core/text/base64.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool spokei_base64_read(char *text, size_t len, size_t *ret_len)
{
	uint32_t bits = 0;
	unsigned held = 0;
	size_t written = 0;
	size_t padded = len;

	while (len && text[len - 1] == '=' && padded - len < 2)
		len--;
	if (len % 4 == 1 || (padded != len && padded % 4 != 0))
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *letter = text[i] ? strchr(letters, text[i]) : NULL;

		if (!letter)
			return false;
		bits = bits << 6 | (uint32_t)(letter - letters);
		held += 6;
		if (held >= 8) {
			held -= 8;
			text[written++] = (char)(unsigned char)(bits >> held);
			bits &= (1u << held) - 1;
		}
	}
	*ret_len = written;
	return bits == 0;
}

void spokei_base64_write(const unsigned char *bytes, size_t len, char out[4])
{
	uint32_t bits = (uint32_t)bytes[0] << 16;

	if (len > 1)
		bits |= (uint32_t)bytes[1] << 8;
	if (len > 2)
		bits |= bytes[2];
	for (unsigned i = 0; i < 4; i++)
		out[i] = i > len ? '=' : letters[bits >> (18 - 6 * i) & 0x3f];
}
