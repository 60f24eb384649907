/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers and dates. An int becomes an integer in the fewest bytes, a long an integer in
 * eight bytes, each form of a double a double, and a date a timestamp of msgpack.
 */
#include "core/value/shape.h"
#include "transport/codec/hessian2/reader.h"
#include "transport/codec/hessian2/short.h"

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

/* --- the same for a reader, and for short messages */

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
	int error = spokei_hessian_room(reader, SPOKEI_HESSIAN2_NUMBER_MAX);
	struct cursor cursor = { reader->at, reader->end, reader->out };

	if (error)
		return error;
	error = read_number(&cursor);
	reader->at = cursor.at;
	reader->out = cursor.out;
	return error;
}

const unsigned char *spokei_hessian2_take_number(const unsigned char *from,
						 const unsigned char *end, unsigned char *to,
						 unsigned char **ret_to)
{
	struct cursor cursor = { from, end, to };

	if (read_number(&cursor) != 0)
		return NULL;
	*ret_to = cursor.out;
	return cursor.at;
}
