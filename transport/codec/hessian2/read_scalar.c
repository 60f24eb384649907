/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers, dates, strings and binaries. */
#include "transport/codec/hessian2/reader.h"

#include "core/text/encoding.h"
#include "core/value/shape.h"

#include <string.h>

/* --- numbers and dates
 *
 * Reads numbers and dates. An int becomes an integer in the fewest bytes, a long an integer in
 * eight bytes, each form of a double a double, and a date a timestamp of msgpack. */

#define NS_PER_MS 1000000
#define MS_PER_MINUTE 60000

/* The part of a reader that numbers use. */
struct cursor {
	const unsigned char *at; /* the next byte to read */
	const unsigned char *end;
	unsigned char *out; /* the next byte to write */
};

static size_t left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Writes a byte and `width` bytes of a number in big-endian order. */
static void put(struct cursor *cursor, unsigned first, uint64_t number, unsigned width)
{
	*cursor->out++ = (unsigned char)first;
	for (unsigned i = width; i-- > 0;)
		*cursor->out++ = (unsigned char)(number >> 8 * i);
}

/* Takes the tag and `width` bytes after it as a signed number. The tag itself, minus `zero`, gives
 * the bits above these bytes. */
static int take(struct cursor *cursor, unsigned zero, unsigned width, int64_t *ret)
{
	int64_t high = (int64_t)*cursor->at - zero;

	if (left(cursor) <= width)
		return SPOKE_ETRUNCATED;
	*ret = high * (INT64_C(1) << 8 * width) + (int64_t)spokei_number(cursor->at + 1, width);
	cursor->at += 1 + width;
	return 0;
}

/* Takes the tag and a signed number of `width` bytes, at most 8. */
static int take_signed(struct cursor *cursor, unsigned width, int64_t *ret)
{
	uint64_t sign = UINT64_C(1) << (8 * width - 1);
	uint64_t bits;

	if (left(cursor) <= width)
		return SPOKE_ETRUNCATED;
	bits = spokei_number(cursor->at + 1, width);
	*ret = (int64_t)((bits ^ sign) - sign);
	cursor->at += 1 + width;
	return 0;
}

static int take_int(struct cursor *cursor, int64_t *ret)
{
	unsigned tag = *cursor->at;

	if (tag >= 0x80 && tag < 0xc0)
		return take(cursor, 0x90, 0, ret);
	if (tag >= 0xc0 && tag < 0xd0)
		return take(cursor, 0xc8, 1, ret);
	if (tag >= 0xd0 && tag < 0xd8)
		return take(cursor, 0xd4, 2, ret);
	return tag == 'I' ? take_signed(cursor, 4, ret) : SPOKE_ECORRUPT;
}

static int take_long(struct cursor *cursor, int64_t *ret)
{
	unsigned tag = *cursor->at;

	if (tag >= 0xf0)
		return take(cursor, 0xf8, 1, ret);
	if (tag >= 0xd8)
		return take(cursor, 0xe0, 0, ret);
	if (tag < 0x40)
		return take(cursor, 0x3c, 2, ret);
	return take_signed(cursor, tag == 'L' ? 8 : 4, ret);
}

static int take_double(struct cursor *cursor, double *ret)
{
	unsigned tag = *cursor->at;
	int64_t number = tag == 0x5c;
	int error = 0;

	if (tag == 'D') {
		error = take_signed(cursor, 8, &number);
		if (error == 0)
			memcpy(ret, &number, sizeof(*ret));
		return error;
	}
	if (tag > 0x5c)
		error = take_signed(cursor, tag == 0x5d ? 1 : tag == 0x5e ? 2 : 4, &number);
	else
		cursor->at++;
	*ret = tag == 0x5f ? 0.001 * (double)number : (double)number;
	return error;
}

/* Writes a moment in the shortest of the three forms of a timestamp. */
static void put_ms(struct cursor *cursor, int64_t ms)
{
	int64_t part = (ms % 1000 + 1000) % 1000;
	uint64_t seconds = (uint64_t)(ms / 1000 - (ms % 1000 < 0)); /* rounded down */
	uint64_t ns = (uint64_t)part * NS_PER_MS;

	if (ns == 0 && seconds <= UINT32_MAX) {
		put(cursor, 0xd6, 0xff, 1);
		put(cursor, (unsigned)(seconds >> 24), seconds, 3);
	} else if (seconds >> 34 == 0) {
		uint64_t both = ns << 34 | seconds;

		put(cursor, 0xd7, 0xff, 1);
		put(cursor, (unsigned)(both >> 56), both, 7);
	} else {
		put(cursor, 0xc7, 0x0cff, 2);
		put(cursor, (unsigned)(ns >> 24), ns, 3);
		put(cursor, (unsigned)(seconds >> 56), seconds, 7);
	}
}

static int read_date(struct cursor *cursor)
{
	bool minutes = *cursor->at == 'K';
	int64_t number;
	int error = take_signed(cursor, minutes ? 4 : 8, &number);

	if (error == 0)
		put_ms(cursor, minutes ? number * MS_PER_MINUTE : number);
	return error;
}

static int read_double(struct cursor *cursor)
{
	uint64_t bits;
	double number;
	int error = take_double(cursor, &number);

	if (error)
		return error;
	memcpy(&bits, &number, sizeof(bits));
	put(cursor, 0xcb, bits, 8);
	return 0;
}

static int read_int(struct cursor *cursor)
{
	int64_t number;
	int error = take_int(cursor, &number);

	if (error)
		return error;
	if (number >= -32 && number < 0x80)
		*cursor->out++ = (unsigned char)number;
	else if (number >= 0 && number <= UINT8_MAX)
		put(cursor, 0xcc, (uint64_t)number, 1);
	else if (number >= 0 && number <= UINT16_MAX)
		put(cursor, 0xcd, (uint64_t)number, 2);
	else if (number >= 0)
		put(cursor, 0xce, (uint64_t)number, 4);
	else if (number >= INT8_MIN)
		put(cursor, 0xd0, (uint64_t)number, 1);
	else if (number >= INT16_MIN)
		put(cursor, 0xd1, (uint64_t)number, 2);
	else
		put(cursor, 0xd2, (uint64_t)number, 4);
	return 0;
}

static int read_long(struct cursor *cursor)
{
	int64_t number;
	int error = take_long(cursor, &number);

	if (error == 0)
		put(cursor, 0xd3, (uint64_t)number, 8);
	return error;
}

static int read_number(struct cursor *cursor)
{
	unsigned tag = *cursor->at;

	if ((tag >= 0x80 && tag < 0xd8) || tag == 'I')
		return read_int(cursor);
	if (tag == 'J' || tag == 'K')
		return read_date(cursor);
	if (tag == 'D' || (tag >= 0x5b && tag <= 0x5f))
		return read_double(cursor);
	if (tag >= 0xd8 || (tag >= 0x38 && tag < 0x40) || tag == 'L' || tag == 0x59)
		return read_long(cursor);
	return SPOKE_ECORRUPT;
}

/* --- the same for a reader */

int spokei_hessian_read_int(struct spokei_hessian_reader *reader, int32_t *ret)
{
	struct cursor cursor = { .at = reader->at, .end = reader->end };
	int64_t number;
	int error;

	if (spokei_hessian_left(reader) == 0)
		return SPOKE_ETRUNCATED;
	error = take_int(&cursor, &number);
	if (error == 0)
		*ret = (int32_t)number;
	reader->at = cursor.at;
	return error;
}

int spokei_hessian_read_number(struct spokei_hessian_reader *reader)
{
	int error = spokei_hessian_room(reader, SPOKEI_HESSIAN_NUMBER_MAX);
	struct cursor cursor = { reader->at, reader->end, reader->out };

	if (error)
		return error;
	error = read_number(&cursor);
	reader->at = cursor.at;
	reader->out = cursor.out;
	return error;
}

const unsigned char *spokei_hessian_take_number(const unsigned char *from, const unsigned char *end,
						unsigned char **to)
{
	struct cursor cursor = { from, end, *to };

	if (*from == 'N' || *from == 'T' || *from == 'F') {
		*(*to)++ = *from == 'N' ? 0xc0 : *from == 'T' ? 0xc3 : 0xc2;
		return from + 1;
	}
	if (read_number(&cursor) != 0)
		return NULL;
	*to = cursor.out;
	return cursor.at;
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
