/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, the parser of commands, and the printers of replies. */
#include "tests/support/redis/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- texts of the Redis in memory: comparing, numbers, patterns, SHA-1 */

struct fakeredis_text *fakeredis_text_new(struct spoke_span span)
{
	struct fakeredis_text *text = malloc(sizeof(*text) + span.len + 1);

	SPOKE_ASSERT(text != NULL);
	text->len = span.len;
	if (span.len > 0)
		memcpy(text->bytes, span.data, span.len);
	text->bytes[span.len] = '\0';
	return text;
}

struct fakeredis_text *fakeredis_text_copy(const struct fakeredis_text *text)
{
	return text ? fakeredis_text_new(fakeredis_span(text)) : NULL;
}

static unsigned char upper_of(unsigned char byte)
{
	return byte >= 'a' && byte <= 'z' ? (unsigned char)(byte - 'a' + 'A') : byte;
}

bool fakeredis_is(struct spoke_span span, const char *upper)
{
	if (span.len != strlen(upper))
		return false;
	for (size_t i = 0; i < span.len; i++)
		if (upper_of(fakeredis_byte(span, i)) != (unsigned char)upper[i])
			return false;
	return true;
}

bool fakeredis_number(struct spoke_span span, int64_t *ret)
{
	bool minus = span.len > 0 && fakeredis_byte(span, 0) == '-';
	size_t at = minus;
	int64_t number = 0;

	if (span.len == at || span.len > at + 18 ||
	    (fakeredis_byte(span, at) == '0' && span.len > 1)) /* also "-0" */
		return false;
	for (; at < span.len; at++) {
		if (fakeredis_byte(span, at) < '0' || fakeredis_byte(span, at) > '9')
			return false;
		number = 10 * number + (fakeredis_byte(span, at) - '0');
	}
	*ret = minus ? -number : number;
	return true;
}

/* --- patterns */

/* Matches a set after its "[". Moves *at behind its "]". */
static bool match_set(struct spoke_span pattern, size_t *at, unsigned char byte)
{
	bool negative = *at < pattern.len && fakeredis_byte(pattern, *at) == '^';
	bool found = false;

	*at += negative;
	while (*at < pattern.len && fakeredis_byte(pattern, *at) != ']') {
		unsigned char low = fakeredis_byte(pattern, *at);
		unsigned char high = low;

		if (low == '\\' && *at + 1 < pattern.len)
			low = high = fakeredis_byte(pattern, ++*at);
		if (*at + 2 < pattern.len && fakeredis_byte(pattern, *at + 1) == '-') {
			high = fakeredis_byte(pattern, *at + 2);
			*at += 2;
		}
		++*at;
		found |= byte >= low && byte <= high;
	}
	*at += *at < pattern.len;
	return found != negative;
}

/* Matches one byte of the text with what stands at *at, which is no star; moves *at behind it. */
static bool match_one(struct spoke_span pattern, size_t *at, unsigned char byte)
{
	unsigned char what = fakeredis_byte(pattern, *at);

	++*at;
	if (what == '?')
		return true;
	if (what == '[')
		return match_set(pattern, at, byte);
	if (what == '\\' && *at < pattern.len)
		what = fakeredis_byte(pattern, (*at)++);
	return what == byte;
}

bool fakeredis_match(struct spoke_span pattern, struct spoke_span text)
{
	size_t at = 0;
	size_t in = 0;
	size_t star = SIZE_MAX; /* the last star */
	size_t from = 0;        /* ... takes the text up to here */

	while (in < text.len) {
		size_t next = at;

		if (at < pattern.len && fakeredis_byte(pattern, at) == '*') {
			star = at++;
			from = in;
		} else if (at < pattern.len &&
			   match_one(pattern, &next, fakeredis_byte(text, in))) {
			at = next;
			in++;
		} else if (star != SIZE_MAX) {
			at = star + 1;
			in = ++from;
		} else {
			return false;
		}
	}
	while (at < pattern.len && fakeredis_byte(pattern, at) == '*')
		at++;
	return at == pattern.len;
}

/* --- SHA-1 */

static uint32_t rotate(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

static void sha1_block(uint32_t state[5], const unsigned char block[64])
{
	uint32_t w[80];
	uint32_t s[5];

	memcpy(s, state, sizeof(s));
	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		static const uint32_t add[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
		uint32_t f = s[1] ^ s[2] ^ s[3];

		if (i < 20)
			f = (s[1] & s[2]) | (~s[1] & s[3]);
		else if (i >= 40 && i < 60)
			f = (s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3]);
		f += rotate(s[0], 5) + s[4] + add[i / 20] + w[i];
		s[4] = s[3];
		s[3] = s[2];
		s[2] = rotate(s[1], 30);
		s[1] = s[0];
		s[0] = f;
	}
	for (unsigned i = 0; i < 5; i++)
		state[i] += s[i];
}

void fakeredis_sha1(const void *bytes, size_t len, char ret_hex[41])
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	unsigned char last[128] = { 0 };
	size_t whole = len / 64 * 64;
	size_t rest = len - whole;
	size_t end = rest < 56 ? 64 : 128;

	for (size_t i = 0; i < whole; i += 64)
		sha1_block(state, (const unsigned char *)bytes + i);
	if (rest > 0)
		memcpy(last, (const unsigned char *)bytes + whole, rest);
	last[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[end - 1 - i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
	for (size_t i = 0; i < end; i += 64)
		sha1_block(state, last + i);
	for (unsigned i = 0; i < 5; i++)
		(void)snprintf(ret_hex + 8 * (size_t)i, 9, "%08x", (unsigned)state[i]);
}

/*
 * --- parses commands: arrays of bulk strings, and nothing else. Stricter than Redis, so that a
 * client that is not exact is noticed
 */

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

/* --- writes replies in RESP2 to the output of a connection */

void fakeredis_raw(struct fakeredis_conn *conn, const void *bytes, size_t len)
{
	if (conn->mute || len == 0)
		return;
	if (spokei_buffer_append(&conn->out, bytes, len))
		conn->ended = true; /* the client does not read */
}

static void put_line(struct fakeredis_conn *conn, char kind, const char *text)
{
	fakeredis_raw(conn, &kind, 1);
	fakeredis_raw(conn, text, strlen(text));
	fakeredis_raw(conn, "\r\n", 2);
}

static void put_number(struct fakeredis_conn *conn, char kind, int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	put_line(conn, kind, text);
}

void fakeredis_simple(struct fakeredis_conn *conn, const char *text)
{
	put_line(conn, '+', text);
}

void fakeredis_error(struct fakeredis_conn *conn, const char *text)
{
	put_line(conn, '-', text);
}

void fakeredis_integer(struct fakeredis_conn *conn, int64_t number)
{
	put_number(conn, ':', number);
}

void fakeredis_bulk(struct fakeredis_conn *conn, struct spoke_span text)
{
	put_number(conn, '$', (int64_t)text.len);
	fakeredis_raw(conn, text.data, text.len);
	fakeredis_raw(conn, "\r\n", 2);
}

void fakeredis_nil(struct fakeredis_conn *conn)
{
	put_line(conn, '$', "-1");
}

void fakeredis_array(struct fakeredis_conn *conn, size_t count)
{
	put_number(conn, '*', (int64_t)count);
}

void fakeredis_mark(struct fakeredis_conn *conn, size_t before)
{
	const struct fakeredis *server = conn->server;
	size_t len = spokei_buffer_len(&conn->out) - before;
	uint64_t due_ns = server->process.world->now_ns + server->delay_ns;
	unsigned last = conn->mark_count;

	if (len == 0)
		return;
	if (last == 0 && server->delay_ns == 0) {
		conn->free += len;
		return;
	}
	if (last < FAKEREDIS_MARKS) {
		conn->marks[last].len = 0;
		conn->marks[last].due_ns = 0;
		conn->mark_count = last + 1;
	} else {
		last--;
	}
	/* The order of answers is kept. */
	if (last > 0 && conn->marks[last - 1].due_ns > due_ns)
		due_ns = conn->marks[last - 1].due_ns;
	conn->marks[last].len += len;
	if (conn->marks[last].due_ns < due_ns)
		conn->marks[last].due_ns = due_ns;
}

void fakeredis_refuse(const struct fakeredis_command *command, const char *text)
{
	char line[256];

	if (command->sha1 == NULL) {
		fakeredis_error(command->conn, text);
		return;
	}
	(void)snprintf(line, sizeof(line), "%s script: %s, on @user_script:1.", text,
		       command->sha1);
	fakeredis_error(command->conn, line);
}
