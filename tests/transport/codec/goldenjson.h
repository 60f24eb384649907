/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the golden values consist of: JSON that is read once from its start, and the bytes that are
 * made of it. A malformed file ends the program.
 */
#ifndef TESTS_TRANSPORT_CODEC_GOLDENJSON_H
#define TESTS_TRANSPORT_CODEC_GOLDENJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTES_MAX ((size_t)1 << 20)
#define UNITS_MAX 200000u
#define REFS_MAX 4096u

/* A sequence of bytes that grows up to BYTES_MAX. */
struct bytes {
	unsigned char *at;
	size_t len;
};

/* A sequence of UTF-16 units. */
struct units {
	uint16_t at[UNITS_MAX];
	size_t len;
};

struct maker {
	const char *json;
	const char *pattern; /* the content of a long string */
	struct bytes values;
	struct bytes body; /* of a row whose bytes are not in the file */
	bool cycle;
	size_t begun;
	size_t starts[REFS_MAX]; /* of the containers in `values` */
	size_t ends[REFS_MAX];   /* 0 while a container is open */
	struct units units;
};

void golden_fail(const char *why, const char *where);

/* Append a number in big-endian order, bytes, or a value. */
void golden_put(struct bytes *bytes, uint64_t number, unsigned width);
void golden_put_all(struct bytes *bytes, const unsigned char *from, size_t len);
void golden_put_str(struct bytes *bytes, const unsigned char *text, size_t len);
void golden_put_int(struct bytes *bytes, int64_t number);
void golden_put_date(struct bytes *bytes, int64_t ms);

/* Appends the head of a bin (0xc4), or of an array that is too long for a head of one byte (0xdb).
 */
void golden_put_head(struct bytes *bytes, unsigned tag, size_t len);

/* Appends the units as a str; pairs of surrogates are joined. */
void golden_put_units(struct bytes *bytes, const struct units *units);

/* Read a text that must or may follow, a number, or a string into the units. */
void golden_expect(struct maker *maker, const char *text);
bool golden_accept(struct maker *maker, const char *text);
int64_t golden_read_number(struct maker *maker);
void golden_read_string(struct maker *maker);

/* Append a content that the file describes by a pattern, and make its body. */
void golden_put_long_string(struct maker *maker);
void golden_put_long_binary(struct maker *maker);

#endif
