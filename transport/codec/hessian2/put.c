/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the scalars of Hessian 2. Each value has several forms; the shortest one is chosen in the
 * order in which Java's writer (hessian-lite) tries them, so equal values give equal bytes.
 */
#include "transport/codec/hessian2/put.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

/* --- room */

/* Reserves at least `len` bytes, and at most the `max` bytes that the buffer may still hold. */
static void reserve(struct spokei_hessian_put *put, size_t len, size_t max)
{
	unsigned char *room = spokei_buffer_reserve(put->out, len);
	size_t free = put->out->capacity - put->out->end;

	put->start = put->at = put->end = room;
	if (room)
		put->end = room + (free < max ? free : max);
}

/* Returns the number of bytes that the buffer may still hold. */
static size_t room_max(const struct spokei_buffer *out)
{
	size_t held = spokei_buffer_len(out);

	return held < out->max ? out->max - held : 0;
}

void spokei_hessian_put_starve(struct spokei_hessian_put *put, size_t len)
{
	if (len <= room_max(put->out))
		put->error = SPOKE_ENOMEM;
}

unsigned char *spokei_hessian_put_more(struct spokei_hessian_put *put, size_t len)
{
	size_t max;

	if (put->error)
		return NULL;
	if (put->at != put->start)
		spokei_buffer_commit(put->out, (size_t)(put->at - put->start));
	max = room_max(put->out);
	put->start = put->at = put->end = NULL;
	if (len <= max)
		reserve(put, len, max);
	if (put->at == NULL)
		put->error = len > max ? SPOKE_ETOOLARGE : SPOKE_ENOMEM;
	return put->at;
}

/* --- numbers */

static uint64_t bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static unsigned char *put_whole(unsigned char *to, int number)
{
	if (number == 0 || number == 1)
		return spokei_hessian_wide(to, 0x5b + (unsigned)number, 0, 0);
	if (number >= INT8_MIN && number <= INT8_MAX)
		return spokei_hessian_wide(to, 0x5d, (uint64_t)number, 1);
	return spokei_hessian_wide(to, 0x5e, (uint64_t)number, 2);
}

/* A whole number of 16 bits, or of thousandths of 32 bits, is shorter than the bits. */
unsigned char *spokei_hessian_double(unsigned char *to, double number)
{
	double thousand = number * 1000;
	int64_t mills = 0;

	if (number >= INT16_MIN && number <= INT16_MAX &&
	    bits_of((int)number) == bits_of(number)) /* false for -0.0 */
		return put_whole(to, (int)number);
	if (thousand > (double)INT32_MIN - 1 && thousand < (double)INT32_MAX + 1)
		mills = (int64_t)thousand;
	if (bits_of(0.001 * (double)mills) == bits_of(number))
		return spokei_hessian_wide(to, 0x5f, (uint64_t)mills, 4);
	return spokei_hessian_wide(to, 'D', bits_of(number), 8);
}

#define FLOAT_MAX 3.5e38 /* above any finite float */
#define WHOLE_MAX 1.6e7  /* the text of a whole number up to this is exact */
#define SIX_DIGITS 1e6   /* numbers of so few digits are different floats */
#define SCALES 6u        /* powers of ten: 10 to 1e6 */

/* Returns whether the float is a whole number of at most six digits, divided by a power of ten. No
 * shorter text names the same float. */
static bool find_decimal(float number, double *ret)
{
	double wide = (double)number;

	double scale = 1;

	for (unsigned i = 0; i < SCALES; i++) {
		double scaled;

		scale *= 10;
		scaled = wide * scale;

		if (!(scaled > -SIX_DIGITS + 1 && scaled < SIX_DIGITS - 1))
			return false;
		*ret = (int)(scaled + (scaled < 0 ? -0.5 : 0.5)) / scale;
		if (bits_of((double)(float)*ret) == bits_of(wide))
			return true;
	}
	return false;
}

/* Returns the double of the shortest text. Six digits of a normal float end with the zeros that a
 * shorter text lacks; those of a smaller one need not. */
static double double_of_text(float number)
{
	char text[FLT_DECIMAL_DIG + 16];
	int digits = (double)number > -(double)FLT_MIN && (double)number < (double)FLT_MIN
			     ? 2
			     : FLT_DIG;

	for (; digits <= FLT_DECIMAL_DIG; digits++) {
		(void)snprintf(text, sizeof(text), "%.*e", digits - 1, (double)number);
		if (bits_of((double)strtof(text, NULL)) == bits_of((double)number))
			break;
	}
	return strtod(text, NULL);
}

unsigned char *spokei_hessian_float(unsigned char *to, float number)
{
	double wide = (double)number;

	if (wide >= -FLOAT_MAX && wide <= FLOAT_MAX &&
	    !(wide > -WHOLE_MAX && wide < WHOLE_MAX && bits_of((int)wide) == bits_of(wide)) &&
	    !find_decimal(number, &wide))
		wide = double_of_text(number);
	return spokei_hessian_double(to, wide);
}

void spokei_hessian_put_int(struct spokei_hessian_put *put, int32_t number)
{
	unsigned char bytes[SPOKEI_HESSIAN_NUMBER_MAX];

	spokei_hessian_put_raw(put, bytes, (size_t)(spokei_hessian_int(bytes, number) - bytes));
}

void spokei_hessian_put_long(struct spokei_hessian_put *put, int64_t number)
{
	unsigned char bytes[SPOKEI_HESSIAN_NUMBER_MAX];

	spokei_hessian_put_raw(put, bytes, (size_t)(spokei_hessian_long(bytes, number) - bytes));
}

void spokei_hessian_put_double(struct spokei_hessian_put *put, double number)
{
	unsigned char bytes[SPOKEI_HESSIAN_NUMBER_MAX];

	spokei_hessian_put_raw(put, bytes, (size_t)(spokei_hessian_double(bytes, number) - bytes));
}

void spokei_hessian_put_date(struct spokei_hessian_put *put, int64_t ms)
{
	unsigned char bytes[SPOKEI_HESSIAN_NUMBER_MAX];

	spokei_hessian_put_raw(put, bytes, (size_t)(spokei_hessian_date(bytes, ms) - bytes));
}

/* --- strings */

/* A piece of a text. */
struct piece {
	size_t len;   /* bytes in UTF-8 */
	size_t units; /* of UTF-16 */
	size_t bytes; /* in Hessian 2 */
};

static bool is_tail(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Returns the length of the character at `at`, of which `left` bytes exist; 0 if it is not UTF-8.
 * Surrogates count as characters of three bytes. */
static unsigned char_len(const unsigned char *at, size_t left)
{
	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || left < 2 || !is_tail(at[1]))
		return 0;
	if (at[0] < 0xe0)
		return 2;
	if (left < 3 || !is_tail(at[2]))
		return 0;
	if (at[0] < 0xf0)
		return at[0] == 0xe0 && at[1] < 0xa0 ? 0 : 3;
	if (left < 4 || !is_tail(at[3]) || at[0] > 0xf4 || (at[0] == 0xf0 && at[1] < 0x90) ||
	    (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return 4;
}

/* Returns the number of ASCII bytes at the start, rounded down to a multiple of 8. */
static size_t ascii_len(const unsigned char *text, size_t len)
{
	size_t at = 0;
	uint64_t word;

	for (; len - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	return at;
}

static bool is_high_surrogate(const unsigned char *at)
{
	return at[0] == 0xed && at[1] >= 0xa0 && at[1] < 0xb0;
}

/* Returns the piece of at most SPOKEI_HESSIAN_CHUNK_MAX units at the start of a text. Unless it is
 * the whole text, it does not end with a high surrogate. */
static struct piece measure(const unsigned char *text, size_t len)
{
	struct piece piece = { 0 };
	unsigned last = 0;

	while (piece.len < len && piece.units < SPOKEI_HESSIAN_CHUNK_MAX) {
		size_t left = len - piece.len;
		size_t room = SPOKEI_HESSIAN_CHUNK_MAX - piece.units;
		size_t ascii = ascii_len(text + piece.len, left < room ? left : room);
		unsigned units;

		piece.len += ascii;
		piece.units += ascii;
		piece.bytes += ascii;
		if (ascii == left || ascii == room)
			break;
		last = char_len(text + piece.len, left - ascii);
		units = last == 4 ? 2 : 1;
		if (units > SPOKEI_HESSIAN_CHUNK_MAX - piece.units)
			break;
		piece.units += units;
		piece.bytes += last == 4 ? 6 : last == 0 ? 3 : last;
		piece.len += last == 0 ? 1 : last;
	}
	if (piece.len < len && last == 3 && is_high_surrogate(text + piece.len - 3)) {
		piece.len -= 3;
		piece.units--;
		piece.bytes -= 3;
	}
	return piece;
}

/* Writes one unit that takes three bytes. */
static unsigned char *put_unit(unsigned char *at, unsigned unit)
{
	*at++ = (unsigned char)(0xe0 | unit >> 12);
	*at++ = (unsigned char)(0x80 | (unit >> 6 & 0x3f));
	*at++ = (unsigned char)(0x80 | (unit & 0x3f));
	return at;
}

/* Writes a piece whose bytes differ from UTF-8. */
static void put_changed(unsigned char *at, const unsigned char *text, struct piece piece)
{
	const unsigned char *end = text + piece.len;

	while (text < end) {
		unsigned len = char_len(text, (size_t)(end - text));
		unsigned code;

		if (len == 4) {
			code = ((text[0] & 7u) << 18 | (text[1] & 0x3fu) << 12 |
				(text[2] & 0x3fu) << 6 | (text[3] & 0x3fu)) -
			       0x10000;
			at = put_unit(put_unit(at, 0xd800 | code >> 10), 0xdc00 | (code & 0x3ff));
		} else if (len == 0) {
			at = put_unit(at, 0xfffd);
			len = 1;
		} else {
			memcpy(at, text, len);
			at += len;
		}
		text += len;
	}
}

/* Writes the head of a string or binary of this length and returns the next byte, or NULL. The
 * content needs `bytes` bytes. `tags` are the heads of one byte, of two bytes, of a last and of
 * another chunk; `tiny` is the largest length that the first one expresses. */
static unsigned char *put_head(struct spokei_hessian_put *put, size_t len, size_t bytes,
			       const unsigned char tags[4], size_t tiny, bool final)
{
	size_t head = !final || len > SPOKEI_HESSIAN_SHORT_MAX ? 3 : len > tiny ? 2 : 1;
	unsigned char *at = spokei_hessian_put_room(put, head + bytes);

	if (at == NULL)
		return NULL;
	put->at = at + head + bytes;
	if (head == 1)
		at[0] = (unsigned char)(tags[0] | len);
	else if (head == 2)
		at[0] = (unsigned char)(tags[1] | len >> 8);
	else
		at[0] = tags[final ? 2 : 3];
	if (head == 3)
		at[1] = (unsigned char)(len >> 8);
	if (head > 1)
		at[head - 1] = (unsigned char)len;
	return at + head;
}

static void put_piece(struct spokei_hessian_put *put, const unsigned char *text, struct piece piece,
		      bool final)
{
	static const unsigned char tags[4] = { 0, 0x30, 'S', 'R' };
	unsigned char *at = put_head(put, piece.units, piece.bytes, tags, 31, final);

	if (at == NULL)
		return;
	if (piece.bytes == piece.len) /* only ever longer */
		memcpy(at, text, piece.len);
	else
		put_changed(at, text, piece);
}

void spokei_hessian_put_text(struct spokei_hessian_put *put, const void *text, size_t len)
{
	const unsigned char *at = text;
	struct piece piece;

	for (;; at += piece.len, len -= piece.len) {
		if (len == 0) {
			piece = (struct piece){ 0 };
			break;
		}
		piece = measure(at, len);
		if (piece.len == len || put->error)
			break;
		put_piece(put, at, piece, false);
	}
	if (len == 0)
		spokei_hessian_put_byte(put, 0);
	else
		put_piece(put, at, piece, true);
}

/* --- binaries */

unsigned char *spokei_hessian_put_chunk(struct spokei_hessian_put *put, size_t left,
					size_t *ret_len)
{
	static const unsigned char tags[4] = { 0x20, 0x34, 'B', 'A' };

	*ret_len = left < SPOKEI_HESSIAN_CHUNK_MAX ? left : SPOKEI_HESSIAN_CHUNK_MAX;
	return put_head(put, *ret_len, *ret_len, tags, 15, *ret_len == left);
}

void spokei_hessian_put_binary(struct spokei_hessian_put *put, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	size_t piece;

	do {
		unsigned char *at = spokei_hessian_put_chunk(put, len, &piece);

		if (at == NULL)
			return;
		if (piece > 0)
			memcpy(at, from, piece);
		from += piece;
		len -= piece;
	} while (len > 0);
}
