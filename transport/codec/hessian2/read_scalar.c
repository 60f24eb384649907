/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers, dates, strings and binaries. */
#include "transport/codec/hessian2/reader.h"

#include "core/text/encoding.h"
#include "core/value/encode.h"
#include "core/value/shape.h"

#include <string.h>

/* --- kinds */

#define ONE SPOKEI_HESSIAN_ONE
#define IN0 SPOKEI_HESSIAN_INT
#define IN1 SPOKEI_HESSIAN_INT_1
#define IN2 SPOKEI_HESSIAN_INT_2
#define IN4 SPOKEI_HESSIAN_INT_4
#define LO0 SPOKEI_HESSIAN_LONG
#define LO1 SPOKEI_HESSIAN_LONG_1
#define LO2 SPOKEI_HESSIAN_LONG_2
#define LO4 SPOKEI_HESSIAN_LONG_4
#define LO8 SPOKEI_HESSIAN_LONG_8
#define DO0 SPOKEI_HESSIAN_DOUBLE
#define DO1 SPOKEI_HESSIAN_DOUBLE_1
#define DO2 SPOKEI_HESSIAN_DOUBLE_2
#define DO4 SPOKEI_HESSIAN_DOUBLE_4
#define DO8 SPOKEI_HESSIAN_DOUBLE_8
#define DA4 SPOKEI_HESSIAN_DATE_4
#define DA8 SPOKEI_HESSIAN_DATE_8
#define TXT SPOKEI_HESSIAN_TEXT
#define BIN SPOKEI_HESSIAN_BINARY
#define LST SPOKEI_HESSIAN_LIST
#define MAP SPOKEI_HESSIAN_MAP
#define OBJ SPOKEI_HESSIAN_OBJECT
#define DEF SPOKEI_HESSIAN_DEFINITION
#define REF SPOKEI_HESSIAN_REFERENCE
#define BAD SPOKEI_HESSIAN_BAD

const uint8_t spokei_hessian_kinds[256] = {
	/* clang-format off */
	TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, /* 00 */
	TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT, TXT,
	BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, BIN, /* 20 */
	TXT, TXT, TXT, TXT, BIN, BIN, BIN, BIN, LO2, LO2, LO2, LO2, LO2, LO2, LO2, LO2,
	BAD, BIN, BIN, DEF, DO8, BAD, ONE, BAD, MAP, IN4, DA8, DA4, LO8, MAP, ONE, OBJ, /* 40 */
	BAD, REF, TXT, TXT, ONE, LST, LST, LST, LST, LO4, BAD, DO0, DO0, DO1, DO2, DO4,
	OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, OBJ, /* 60 */
	LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST, LST,
	IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, /* 80 */
	IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0,
	IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, /* a0 */
	IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0, IN0,
	IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, IN1, /* c0 */
	IN2, IN2, IN2, IN2, IN2, IN2, IN2, IN2, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0,
	LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, LO0, /* e0 */
	LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1, LO1,
	/* clang-format on */
};

/* --- numbers and dates
 *
 * Reads numbers and dates. An int becomes an integer in the fewest bytes, a long an integer in
 * eight bytes, each form of a double a double, and a date a timestamp of msgpack. */

#define NS_PER_MS 1000000
#define MS_PER_MINUTE 60000

typedef struct spokei_hessian_step step;

static inline step put_int(const unsigned char *at, unsigned char *out, int32_t number)
{
	if (number >= -32 && number < 0x80) {
		*out = (unsigned char)number;
		return (step){ at, out + 1 };
	}
	return (step){ at, spokei_encode_i32(out, number) };
}

static inline step put_long(const unsigned char *at, unsigned char *out, int64_t number)
{
	*out = 0xd3;
	return (step){ at, spokei_encode_number(out + 1, (uint64_t)number, 8) };
}

static inline step put_double(const unsigned char *at, unsigned char *out, double number)
{
	return (step){ at, spokei_encode_double(out, number) };
}

/* Writes a moment in the shortest of the three forms of a timestamp. */
static step put_date(const unsigned char *at, unsigned char *out, int64_t ms)
{
	int64_t part = (ms % 1000 + 1000) % 1000;
	int64_t seconds = ms / 1000 - (ms % 1000 < 0); /* rounded down */
	uint32_t ns = (uint32_t)part * NS_PER_MS;
	size_t len = (uint64_t)seconds >> 34 ? 12 : ns > 0 || seconds > UINT32_MAX ? 8 : 4;

	out = spokei_encode_ext(out, len, -1);
	return (step){ at, spokei_encode_time(out, seconds, ns) };
}

/* Reads a binary of one chunk. */
static step take_binary(const unsigned char *at, const unsigned char *end, unsigned char *out,
			const unsigned char *limit)
{
	unsigned tag = *at++;
	unsigned width = tag < 0x30 ? 0 : tag < 0x40 ? 1 : 2;
	size_t left = (size_t)(end - at);
	size_t len = tag & (width == 0 ? 0xf : 3);

	if (tag == 'A' || left < width)
		return (step){ NULL, out };
	if (width > 0)
		len = (size_t)spokei_number(at, width) | (width == 1 ? len << 8 : 0);
	at += width;
	if (len > left - width || len + 3 > (size_t)(limit - out))
		return (step){ NULL, out };
	out = spokei_encode_bin(out, len);
	memcpy(out, at, len);
	return (step){ at + len, out + len };
}

step spokei_hessian_take_other(const unsigned char *at, const unsigned char *end,
			       unsigned char *out, const unsigned char *limit)
{
	unsigned kind = spokei_hessian_kinds[*at];
	int tag = *at++;

	if (SPOKEI_UNLIKELY((size_t)(end - at) < (kind & SPOKEI_HESSIAN_WIDTH) ||
			    limit - out < (ptrdiff_t)SPOKEI_HESSIAN_NUMBER_MAX))
		return (step){ NULL, out };
	switch (kind) {
	case SPOKEI_HESSIAN_ONE:
		*out = (unsigned char)(tag == 'N' ? 0xc0 : tag == 'T' ? 0xc3 : 0xc2);
		return (step){ at, out + 1 };
	case SPOKEI_HESSIAN_INT:
		return put_int(at, out, tag - 0x90);
	case SPOKEI_HESSIAN_INT_1:
		return put_int(at + 1, out, (tag - 0xc8) * 0x100 + *at);
	case SPOKEI_HESSIAN_INT_2:
		return put_int(at + 2, out, (tag - 0xd4) * 0x10000 + (int)spokei_number(at, 2));
	case SPOKEI_HESSIAN_INT_4:
		return put_int(at + 4, out, (int32_t)spokei_number(at, 4));
	case SPOKEI_HESSIAN_LONG:
		return put_long(at, out, tag - 0xe0);
	case SPOKEI_HESSIAN_LONG_1:
		return put_long(at + 1, out, (tag - 0xf8) * 0x100 + *at);
	case SPOKEI_HESSIAN_LONG_2:
		return put_long(at + 2, out, (tag - 0x3c) * 0x10000 + (int)spokei_number(at, 2));
	case SPOKEI_HESSIAN_LONG_4:
		return put_long(at + 4, out, (int32_t)spokei_number(at, 4));
	case SPOKEI_HESSIAN_LONG_8:
		return put_long(at + 8, out, (int64_t)spokei_number(at, 8));
	case SPOKEI_HESSIAN_DOUBLE:
		return put_double(at, out, tag - 0x5b);
	case SPOKEI_HESSIAN_DOUBLE_1:
		return put_double(at + 1, out, (int8_t)*at);
	case SPOKEI_HESSIAN_DOUBLE_2:
		return put_double(at + 2, out, (int16_t)spokei_number(at, 2));
	case SPOKEI_HESSIAN_DOUBLE_4:
		return put_double(at + 4, out, 0.001 * (double)(int32_t)spokei_number(at, 4));
	case SPOKEI_HESSIAN_DOUBLE_8:
		*out = 0xcb;
		memcpy(out + 1, at, 8);
		return (step){ at + 8, out + 9 };
	case SPOKEI_HESSIAN_DATE_4:
		return put_date(at + 4, out,
				(int64_t)(int32_t)spokei_number(at, 4) * MS_PER_MINUTE);
	case SPOKEI_HESSIAN_DATE_8:
		return put_date(at + 8, out, (int64_t)spokei_number(at, 8));
	case SPOKEI_HESSIAN_BINARY:
		return take_binary(at - 1, end, out, limit);
	default:
		return (step){ NULL, out };
	}
}

/* --- the same for a reader */

int spokei_hessian_read_int(struct spokei_hessian_reader *reader, int32_t *ret)
{
	const unsigned char *at = reader->at;
	size_t left = spokei_hessian_left(reader);
	unsigned kind;

	if (left == 0)
		return SPOKE_ETRUNCATED;
	kind = spokei_hessian_kinds[*at];
	if (kind < SPOKEI_HESSIAN_INT || kind > SPOKEI_HESSIAN_INT_4)
		return SPOKE_ECORRUPT;
	if (left <= (kind & SPOKEI_HESSIAN_WIDTH))
		return SPOKE_ETRUNCATED;
	if (kind == SPOKEI_HESSIAN_INT)
		*ret = *at - 0x90;
	else if (kind == SPOKEI_HESSIAN_INT_1)
		*ret = (*at - 0xc8) * 0x100 + at[1];
	else if (kind == SPOKEI_HESSIAN_INT_2)
		*ret = (*at - 0xd4) * 0x10000 + (int32_t)spokei_number(at + 1, 2);
	else
		*ret = (int32_t)spokei_number(at + 1, 4);
	reader->at = at + 1 + (kind & SPOKEI_HESSIAN_WIDTH);
	return 0;
}

int spokei_hessian_read_number(struct spokei_hessian_reader *reader)
{
	int error = spokei_hessian_room(reader, SPOKEI_HESSIAN_NUMBER_MAX);
	step next;

	if (error)
		return error;
	next = spokei_hessian_take_other(reader->at, reader->end, reader->out, reader->out_end);
	if (next.at == NULL)
		return SPOKE_ETRUNCATED;
	reader->at = next.at;
	reader->out = next.out;
	return 0;
}

/* --- strings and binaries
 *
 * Reads strings and binaries. A string counts UTF-16 units, each of which Java writes by itself in
 * one to three bytes. Two surrogates become one character, also if a chunk ends between them. A
 * lone surrogate keeps its three bytes. The four bytes that other peers write for a character
 * beyond U+FFFF are read as two units. */

#define SLACK 8u              /* bytes that a head may grow by */
#define NAME_CHUNK_MIN 32767u /* units of a chunk, unless it is the last */

struct chunk {
	uint32_t len; /* units of a string, bytes of a binary */
	bool last;
};

/* Copies ASCII bytes until the first word that contains another byte, and returns their number. */
static inline size_t copy_ascii(unsigned char *to, const unsigned char *from, size_t len)
{
	const uint64_t high = UINT64_C(0x8080808080808080);
	uint64_t words[4];
	size_t at = 0;

	for (; len - at >= sizeof(words); at += sizeof(words)) {
		memcpy(words, from + at, sizeof(words));
		if ((words[0] | words[1] | words[2] | words[3]) & high)
			break;
		memcpy(to + at, words, sizeof(words));
	}
	for (; len - at >= sizeof(words[0]); at += sizeof(words[0])) {
		memcpy(words, from + at, sizeof(words[0]));
		if (words[0] & high)
			return at;
		memcpy(to + at, words, sizeof(words[0]));
	}
	for (; at < len && from[at] < 0x80; at++)
		to[at] = from[at];
	return at;
}

static bool is_tail(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Joins a low surrogate at `from` with the high surrogate that ends the output. */
static unsigned char *join(unsigned char *out, const unsigned char *from)
{
	uint32_t high = (out[-2] & 0x0fu) << 6 | (out[-1] & 0x3fu);
	uint32_t low = (from[1] & 0x0fu) << 6 | (from[2] & 0x3fu);
	uint32_t letter = 0x10000 + (high << 10 | low);

	out[-3] = (unsigned char)(0xf0 | letter >> 18);
	out[-2] = (unsigned char)(0x80 | (letter >> 12 & 0x3f));
	out[-1] = (unsigned char)(0x80 | (letter >> 6 & 0x3f));
	*out++ = (unsigned char)(0x80 | (letter & 0x3f));
	return out;
}

/* Returns whether the text between the two positions ends with a high surrogate. */
static bool ends_high(const unsigned char *start, const unsigned char *out)
{
	return out - start >= 3 && out[-3] == 0xed && (out[-2] & 0xf0) == 0xa0;
}

/* Reads a unit that is not ASCII, or a character of two units. `start` is where the text begins.
 * Returns the number of units, or 0 if the bytes are not valid. */
static unsigned read_letter(struct spokei_hessian_reader *reader, const unsigned char *start)
{
	const unsigned char *at = reader->at;
	size_t left = spokei_hessian_left(reader);
	unsigned char *out = reader->out;
	unsigned first = *at;

	if (first >= 0xe0 && first < 0xf0 && left > 2 && is_tail(at[1]) && is_tail(at[2]) &&
	    (first > 0xe0 || at[1] >= 0xa0)) {
		reader->at += 3;
		if (first == 0xed && at[1] >= 0xb0 && ends_high(start, out)) {
			reader->out = join(out, at);
			return 1;
		}
		memcpy(out, at, 3);
		reader->out += 3;
		return 1;
	}
	if (first >= 0xc2 && first < 0xe0 && left > 1 && is_tail(at[1])) {
		memcpy(out, at, 2);
		reader->out += 2;
		reader->at += 2;
		return 1;
	}
	if (first < 0xf0 || spokei_utf8_len(at, left) != 4)
		return 0;
	memcpy(out, at, 4);
	reader->out += 4;
	reader->at += 4;
	return 2;
}

/* Returns the error for bytes that read_letter() rejects. */
static int error_of(const struct spokei_hessian_reader *reader)
{
	unsigned first = *reader->at;
	unsigned need = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (first < 0xc2 || first > 0xf4)
		return SPOKE_ECORRUPT;
	return spokei_hessian_left(reader) < need ? SPOKE_ETRUNCATED : SPOKE_ECORRUPT;
}

/* Reads the units of one chunk into the text that begins at the position `start`. */
static int read_units(struct spokei_hessian_reader *reader, uint32_t units, uint32_t start)
{
	size_t left = spokei_hessian_left(reader);
	const unsigned char *text;
	int error;

	if (units > left)
		return SPOKE_ETRUNCATED;
	error = spokei_hessian_room(reader, (units < left / 3 ? 3 * (size_t)units : left) + SLACK);
	if (error)
		return error;
	text = reader->scratch->bytes + start;
	while (units > 0) {
		size_t here = spokei_hessian_left(reader);
		size_t run = copy_ascii(reader->out, reader->at, units < here ? units : here);

		reader->at += run;
		reader->out += run;
		units -= (uint32_t)run;
		while (units > 0 && reader->at < reader->end && *reader->at < 0x80) {
			*reader->out++ = *reader->at++;
			units--;
		}
		while (units > 0 && reader->at < reader->end && *reader->at >= 0x80) {
			unsigned read = read_letter(reader, text);

			if (read == 0)
				return error_of(reader);
			if (read > units)
				return SPOKE_ECORRUPT;
			units -= read;
		}
		if (units > 0 && reader->at == reader->end)
			return SPOKE_ETRUNCATED;
	}
	return 0;
}

/* Reads the tag and length of a chunk. `short_tag` is the first of the tags with a short length,
 * `long_tag` that of the last chunk. */
static int read_chunk(struct spokei_hessian_reader *reader, unsigned short_tag, unsigned short_max,
		      unsigned long_tag, struct chunk *ret)
{
	const unsigned char *at = reader->at;
	size_t left = spokei_hessian_left(reader);
	unsigned middle_tag = short_tag == 0 ? 0x30 : 0x34;
	unsigned tag;

	if (left == 0)
		return SPOKE_ETRUNCATED;
	tag = *at;
	ret->last = true;
	if (tag >= short_tag && tag <= short_tag + short_max) {
		ret->len = tag - short_tag;
		reader->at += 1;
		return 0;
	}
	if (tag >= middle_tag && tag < middle_tag + 4) {
		if (left < 2)
			return SPOKE_ETRUNCATED;
		ret->len = (tag - middle_tag) << 8 | at[1];
		reader->at += 2;
		return 0;
	}
	if (tag != long_tag && tag != long_tag - 1)
		return SPOKE_ECORRUPT;
	if (left < 3)
		return SPOKE_ETRUNCATED;
	ret->last = tag == long_tag;
	ret->len = (uint32_t)at[1] << 8 | at[2];
	reader->at += 3;
	return 0;
}

static int read_text_chunk(struct spokei_hessian_reader *reader, struct chunk *ret)
{
	return read_chunk(reader, 0x00, 31, 0x53, ret);
}

static int read_binary_chunk(struct spokei_hessian_reader *reader, struct chunk *ret)
{
	return read_chunk(reader, 0x20, 15, 0x42, ret);
}

/* Returns the length of the head of a str or bin. */
static unsigned head_len(size_t len, bool text)
{
	if (text && len < 32)
		return 1;
	return len <= UINT8_MAX ? 2 : len <= UINT16_MAX ? 3 : 5;
}

/* Writes the head of the content after the position `start`, where `room` bytes were left for the
 * head. There is room for a longer one. */
static void put_head(struct spokei_hessian_reader *reader, uint32_t start, unsigned room, bool text)
{
	unsigned char *at = reader->scratch->bytes + start;
	size_t len = (size_t)(reader->out - at) - room;
	unsigned need = head_len(len, text);

	if (need != room)
		memmove(at + need, at + room, len);
	reader->out = at;
	if (need == 1)
		*reader->out++ = (unsigned char)(0xa0 | len);
	else
		spokei_hessian_emit(reader, (text ? 0xd9 : 0xc4) + (need - 1) / 2, len, need - 1);
	reader->out += len;
}

/* Reads a string of any form, whose chunks but the last have at least `units` units. The head is
 * written last, because it counts bytes. */
static int read_any_text(struct spokei_hessian_reader *reader, uint32_t units)
{
	uint32_t start = spokei_hessian_written(reader);
	struct chunk chunk = { 0 };
	int error = read_text_chunk(reader, &chunk);
	unsigned room = chunk.last ? head_len(chunk.len, true) : 5;

	if (error == 0)
		error = spokei_hessian_room(reader, SLACK);
	if (error)
		return error;
	if (!chunk.last && chunk.len < units)
		return SPOKE_ECORRUPT;
	reader->out += room;
	error = read_units(reader, chunk.len, start + room);
	while (error == 0 && !chunk.last) {
		error = read_text_chunk(reader, &chunk);
		if (error == 0 && !chunk.last && chunk.len < units)
			return SPOKE_ECORRUPT;
		if (error == 0)
			error = read_units(reader, chunk.len, start + room);
	}
	if (error == 0)
		put_head(reader, start, room, true);
	return error;
}

int spokei_hessian_read_text(struct spokei_hessian_reader *reader)
{
	return read_any_text(reader, 0);
}

int spokei_hessian_read_name(struct spokei_hessian_reader *reader)
{
	return read_any_text(reader, NAME_CHUNK_MIN);
}

static int read_bytes(struct spokei_hessian_reader *reader, uint32_t len)
{
	int error;

	if (len > spokei_hessian_left(reader))
		return SPOKE_ETRUNCATED;
	error = spokei_hessian_room(reader, len + SLACK);
	if (error)
		return error;
	memcpy(reader->out, reader->at, len);
	reader->out += len;
	reader->at += len;
	return 0;
}

int spokei_hessian_read_binary(struct spokei_hessian_reader *reader)
{
	uint32_t start = spokei_hessian_written(reader);
	struct chunk chunk = { 0 };
	int error = read_binary_chunk(reader, &chunk);
	unsigned room = chunk.last ? head_len(chunk.len, false) : 5;

	if (error == 0)
		error = spokei_hessian_room(reader, SLACK);
	if (error)
		return error;
	reader->out += room;
	error = read_bytes(reader, chunk.len);
	while (error == 0 && !chunk.last) {
		error = read_binary_chunk(reader, &chunk);
		if (error == 0)
			error = read_bytes(reader, chunk.len);
	}
	if (error == 0)
		put_head(reader, start, room, false);
	return error;
}
