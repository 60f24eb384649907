/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the JSON of the golden values, and writes scalars in msgpack. Contents that the file
 * describes by a pattern are rebuilt, and so are their bodies.
 */
#include "tests/transport/codec/goldenjson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ascii[] = "abcdefghijklmnopqrstuvwxyz0123456789";

void golden_fail(const char *why, const char *where)
{
	(void)fprintf(stderr, "golden values: %s: %.60s\n", why, where);
	abort();
}

/* --- bytes */

void golden_put(struct bytes *bytes, uint64_t number, unsigned width)
{
	if (bytes->len + width > BYTES_MAX)
		golden_fail("too large", "");
	while (width-- > 0)
		bytes->at[bytes->len++] = (unsigned char)(number >> 8 * width);
}

void golden_put_all(struct bytes *bytes, const unsigned char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		golden_put(bytes, from[i], 1);
}

/* Writes the head of a str (0xd9), bin (0xc4) or array (0xdb, without a head of one byte). */
void golden_put_head(struct bytes *bytes, unsigned tag, size_t len)
{
	if (len <= UINT8_MAX && tag != 0xdb)
		golden_put(bytes, tag << 8 | len, 2);
	else if (len <= UINT16_MAX)
		golden_put(bytes, (uint64_t)(tag + 1) << 16 | len, 3);
	else
		golden_put(bytes, (uint64_t)(tag + 2) << 32 | len, 5);
}

void golden_put_str(struct bytes *bytes, const unsigned char *text, size_t len)
{
	if (len < 32)
		golden_put(bytes, 0xa0 | len, 1);
	else
		golden_put_head(bytes, 0xd9, len);
	golden_put_all(bytes, text, len);
}

void golden_put_int(struct bytes *bytes, int64_t number)
{
	if (number >= -32 && number < 128)
		golden_put(bytes, (uint64_t)number, 1);
	else if (number < 0)
		golden_put(bytes, number >= INT8_MIN ? 0xd0 : number >= INT16_MIN ? 0xd1 : 0xd2, 1);
	else
		golden_put(bytes,
			   number <= UINT8_MAX    ? 0xcc
			   : number <= UINT16_MAX ? 0xcd
						  : 0xce,
			   1);
	if (number < -32)
		golden_put(bytes, (uint64_t)number,
			   number >= INT8_MIN    ? 1
			   : number >= INT16_MIN ? 2
						 : 4);
	else if (number >= 128)
		golden_put(bytes, (uint64_t)number,
			   number <= UINT8_MAX    ? 1
			   : number <= UINT16_MAX ? 2
						  : 4);
}

void golden_put_date(struct bytes *bytes, int64_t ms)
{
	int64_t seconds = ms / 1000 - (ms % 1000 < 0);
	uint64_t ns = (uint64_t)((ms % 1000 + 1000) % 1000) * 1000000;

	if (ns == 0 && seconds >= 0 && seconds <= UINT32_MAX) {
		golden_put(bytes, 0xd6ff, 2);
		golden_put(bytes, (uint64_t)seconds, 4);
	} else if (seconds >= 0 && seconds >> 34 == 0) {
		golden_put(bytes, 0xd7ff, 2);
		golden_put(bytes, ns << 34 | (uint64_t)seconds, 8);
	} else {
		golden_put(bytes, 0xc70cff, 3);
		golden_put(bytes, ns, 4);
		golden_put(bytes, (uint64_t)seconds, 8);
	}
}

/* --- texts */

/* Writes a unit or a character as UTF-8 does, surrogates included. */
static void put_letter(struct bytes *bytes, uint32_t letter)
{
	if (letter < 0x80) {
		golden_put(bytes, letter, 1);
	} else if (letter < 0x800) {
		golden_put(bytes, 0xc0 | letter >> 6, 1);
	} else if (letter < 0x10000) {
		golden_put(bytes, 0xe0 | letter >> 12, 1);
		golden_put(bytes, 0x80 | (letter >> 6 & 0x3f), 1);
	} else {
		golden_put(bytes, 0xf0 | letter >> 18, 1);
		golden_put(bytes, 0x80 | (letter >> 12 & 0x3f), 1);
		golden_put(bytes, 0x80 | (letter >> 6 & 0x3f), 1);
	}
	if (letter >= 0x80)
		golden_put(bytes, 0x80 | (letter & 0x3f), 1);
}

/* Writes the units as a str; pairs of surrogates are joined. */
void golden_put_units(struct bytes *bytes, const struct units *units)
{
	struct bytes text = { malloc(BYTES_MAX), 0 };

	if (text.at == NULL)
		golden_fail("no memory", "");
	for (size_t i = 0; i < units->len; i++) {
		uint32_t unit = units->at[i];

		if (unit >> 10 == 0x36 && i + 1 < units->len && units->at[i + 1] >> 10 == 0x37) {
			unit = 0x10000 + ((unit & 0x3ff) << 10 | (units->at[i + 1] & 0x3ffu));
			i++;
		}
		put_letter(&text, unit);
	}
	golden_put_str(bytes, text.at, text.len);
	free(text.at);
}

/* --- JSON */

void golden_expect(struct maker *maker, const char *text)
{
	if (strncmp(maker->json, text, strlen(text)) != 0)
		golden_fail(text, maker->json);
	maker->json += strlen(text);
}

bool golden_accept(struct maker *maker, const char *text)
{
	bool is = strncmp(maker->json, text, strlen(text)) == 0;

	if (is)
		maker->json += strlen(text);
	return is;
}

int64_t golden_read_number(struct maker *maker)
{
	char *end;
	int64_t number = strtoll(maker->json, &end, 10);

	if (end == maker->json)
		golden_fail("no number", maker->json);
	maker->json = end;
	return number;
}

static uint16_t read_escape(struct maker *maker)
{
	static const char *const letters = "\"\\/bfnrt";
	static const char meant[] = "\"\\/\b\f\n\r\t";
	char letter = *maker->json++;
	char digits[5] = { 0 };

	if (letter != 'u') {
		const char *found = strchr(letters, letter);

		if (found == NULL)
			golden_fail("escape", maker->json);
		return (uint16_t)meant[found - letters];
	}
	memcpy(digits, maker->json, 4);
	maker->json += 4;
	return (uint16_t)strtoul(digits, NULL, 16);
}

/* Reads a string into the units. */
void golden_read_string(struct maker *maker)
{
	golden_expect(maker, "\"");
	maker->units.len = 0;
	while (!golden_accept(maker, "\"")) {
		unsigned char next = (unsigned char)*maker->json++;

		if (next < ' ' || next >= 0x7f || maker->units.len == UNITS_MAX)
			golden_fail("string", maker->json);
		maker->units.at[maker->units.len++] = next == '\\' ? read_escape(maker) : next;
	}
}

/* --- patterns */

/* Makes the content of a string of this many units. The pattern lists the letters to repeat, and
 * may add letters after "then". */
static void make_units(struct maker *maker, size_t len)
{
	const char *then = maker->pattern ? strstr(maker->pattern, "then") : NULL;
	bool emoji = maker->pattern && strncmp(maker->pattern, "U+1F600", 7) == 0;
	size_t tail = then ? 3 : 0;
	uint16_t letters[36];
	size_t count = 0;

	if (emoji) {
		letters[count++] = 0xd83d;
		letters[count++] = 0xde00;
	} else if (maker->pattern && *maker->pattern == 'U') {
		for (const char *at = maker->pattern; strncmp(at, "U+", 2) == 0; at += 7)
			letters[count++] = (uint16_t)strtoul(at + 2, NULL, 16);
	} else {
		for (; count < 36; count++)
			letters[count] = (uint16_t)ascii[count];
	}
	for (size_t i = 0; i < len - tail; i++)
		maker->units.at[i] = letters[i % count];
	if (tail > 0) {
		maker->units.at[len - 3] = 0xd83d;
		maker->units.at[len - 2] = 0xde00;
		maker->units.at[len - 1] = 'z';
	}
	maker->units.len = len;
}

/* Writes the tag and the length of a chunk. */
static void put_chunk_head(struct bytes *body, unsigned tag, size_t len)
{
	golden_put(body, tag, 1);
	if (tag >= 0x40)
		golden_put(body, len, 2);
	else if (tag >= 0x30)
		golden_put(body, len & 0xff, 1);
}

/* Rebuilds the body of a string or binary from its chunks. */
static void make_body(struct maker *maker, bool text)
{
	size_t at = 0;

	golden_expect(maker, "[");
	while (golden_accept(maker, "\"")) {
		char *end;
		unsigned tag = (unsigned)strtoul(maker->json, &end, 16);
		size_t len = strtoul(end + 1, &end, 10);

		put_chunk_head(&maker->body, tag, len);
		for (; len > 0; len--, at++)
			if (text)
				put_letter(&maker->body, maker->units.at[at]);
			else
				golden_put(&maker->body, (at * 7 + 3) & 0xff, 1);
		maker->json = strchr(end, '"') + 1;
		(void)golden_accept(maker, ",");
	}
	golden_expect(maker, "]");
}

void golden_put_long_string(struct maker *maker)
{
	golden_read_string(maker); /* the hash of the content */
	golden_expect(maker, ",\"utf16_length\":");
	make_units(maker, (size_t)golden_read_number(maker));
	golden_expect(maker, ",\"chunks\":");
	make_body(maker, true);
	golden_put_units(&maker->values, &maker->units);
}

void golden_put_long_binary(struct maker *maker)
{
	size_t len;

	golden_read_string(maker);
	golden_expect(maker, ",\"length\":");
	len = (size_t)golden_read_number(maker);
	golden_expect(maker, ",\"chunks\":");
	make_body(maker, false);
	golden_put_head(&maker->values, 0xc4, len);
	for (size_t i = 0; i < len; i++)
		golden_put(&maker->values, (i * 7 + 3) & 0xff, 1);
}
