/* SPDX-License-Identifier: Apache-2.0 */
/* Parses commands: arrays of bulk strings, and nothing else. Stricter than Redis, so that a client
 * that is not exact is noticed. */
#include "tests/support/redis/parts.h"

/* Parses "<kind><number>\r\n" at *at, and moves *at behind it. */
static enum fakeredis_parse parse_head(const unsigned char *bytes, size_t len, size_t *at,
				       unsigned char kind, size_t most, size_t *ret)
{
	size_t i = *at;
	size_t number = 0;

	if (i == len)
		return FAKEREDIS_PARSE_MORE;
	if (bytes[i++] != kind)
		return FAKEREDIS_PARSE_BROKEN;
	for (; i < len && bytes[i] != '\r'; i++) {
		if (bytes[i] < '0' || bytes[i] > '9' || (i > *at + 1 && number == 0))
			return FAKEREDIS_PARSE_BROKEN;
		number = 10 * number + (size_t)(bytes[i] - '0');
		if (number > most)
			return FAKEREDIS_PARSE_BROKEN;
	}
	if (i + 1 >= len)
		return FAKEREDIS_PARSE_MORE;
	if (i == *at + 1 || bytes[i + 1] != '\n')
		return FAKEREDIS_PARSE_BROKEN;
	*at = i + 2;
	*ret = number;
	return FAKEREDIS_PARSE_COMMAND;
}

enum fakeredis_parse fakeredis_parse(const unsigned char *bytes, size_t len,
				     struct spoke_span args[FAKEREDIS_ARGS], unsigned *ret_count,
				     size_t *ret_used)
{
	size_t at = 0;
	size_t count = 0;
	enum fakeredis_parse verdict = parse_head(bytes, len, &at, '*', FAKEREDIS_ARGS, &count);

	if (verdict == FAKEREDIS_PARSE_COMMAND && count == 0)
		return FAKEREDIS_PARSE_BROKEN;
	for (size_t i = 0; i < count && verdict == FAKEREDIS_PARSE_COMMAND; i++) {
		size_t size = 0;

		verdict = parse_head(bytes, len, &at, '$', FAKEREDIS_BULK, &size);
		if (verdict != FAKEREDIS_PARSE_COMMAND)
			break;
		if (len - at < size + 2)
			return FAKEREDIS_PARSE_MORE;
		if (bytes[at + size] != '\r' || bytes[at + size + 1] != '\n')
			return FAKEREDIS_PARSE_BROKEN;
		args[i] = (struct spoke_span){ bytes + at, size };
		at += size + 2;
	}
	*ret_count = (unsigned)count;
	*ret_used = at;
	return verdict;
}
