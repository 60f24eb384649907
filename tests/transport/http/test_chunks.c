/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in chunks: valid and invalid ones, whole and in all pieces. */
#include "tests/support/test.h"
#include "transport/http/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 16u /* bytes of a body */
#define END "0\r\n\r\n"

struct row {
	const char *text;
	int verdict;
	const char *joined; /* of a whole body */
	size_t rest;        /* bytes after a whole body */
};

static const struct row rows[] = {
	{ END, SPOKEI_HTTP_WHOLE, "", 0 },
	{ "3\r\nabc\r\n" END, SPOKEI_HTTP_WHOLE, "abc", 0 },
	{ "3\r\nabc\r\n" END "GET", SPOKEI_HTTP_WHOLE, "abc", 3 },
	{ "1\r\na\r\n2\r\nbc\r\n" END, SPOKEI_HTTP_WHOLE, "abc", 0 },
	{ "2\r\n\r\n\r\n" END, SPOKEI_HTTP_WHOLE, "\r\n", 0 },
	{ "5\r\n" END "\r\n" END, SPOKEI_HTTP_WHOLE, END, 0 },
	{ "00000003\r\nabc\r\n00\r\n\r\n", SPOKEI_HTTP_WHOLE, "abc", 0 },
	{ "a\r\n0123456789\r\nA;x\r\n", 413, NULL, 0 },
	{ "a\r\n0123456789\r\n6\r\nabcdef\r\n" END, SPOKEI_HTTP_WHOLE, "0123456789abcdef", 0 },
	/* Extensions and trailers mean nothing. */
	{ "3;a=b\r\nabc\r\n0;last\r\n\r\n", SPOKEI_HTTP_WHOLE, "abc", 0 },
	{ "3;a=\"\xc3\xa4\"\r\nabc\r\n" END, SPOKEI_HTTP_WHOLE, "abc", 0 },
	{ "0\r\nX: y\r\nContent-Length: 5\r\n\r\n", SPOKEI_HTTP_WHOLE, "", 0 },
	{ END END, SPOKEI_HTTP_WHOLE, "", sizeof(END) - 1 },
	/* Incomplete. */
	{ "", SPOKEI_HTTP_MORE, NULL, 0 },
	{ "3", SPOKEI_HTTP_MORE, NULL, 0 },
	{ "3\r\nabc\r\n0\r\n", SPOKEI_HTTP_MORE, NULL, 0 },
	{ "0\r\nX: y\r\n", SPOKEI_HTTP_MORE, NULL, 0 },
	/* Sizes. */
	{ "11\r\n", 413, NULL, 0 },
	{ "ffffffff\r\n", 413, NULL, 0 },
	{ "100000000\r\n", 400, NULL, 0 },
	{ "000000003\r\nabc\r\n" END, 400, NULL, 0 },
	{ "ffffffffffffffff3\r\n", 400, NULL, 0 },
	{ "-1\r\n", 400, NULL, 0 },
	{ "+3\r\nabc\r\n" END, 400, NULL, 0 },
	{ " 3\r\nabc\r\n" END, 400, NULL, 0 },
	{ "0x3\r\nabc\r\n" END, 400, NULL, 0 },
	{ "3_0\r\n", 400, NULL, 0 },
	{ "g\r\n", 400, NULL, 0 },
	{ "\r\n", 400, NULL, 0 },
	{ ";a\r\n", 400, NULL, 0 },
	{ "3 4\r\nabc\r\n" END, 400, NULL, 0 },
	{ "3 \r\nabc\r\n" END, 400, NULL, 0 },
	{ "3\t\r\nabc\r\n" END, 400, NULL, 0 },
	{ "3 ;a\r\nabc\r\n" END, 400, NULL, 0 },
	{ "0 \r\n\r\n", 400, NULL, 0 },
	/* Ends of lines. */
	{ "3\nabc\r\n" END, 400, NULL, 0 },
	{ "3\r\nabc\n" END, 400, NULL, 0 },
	{ "3\r\nabcd\r\n" END, 400, NULL, 0 },
	{ "3\r\nabc" END, 400, NULL, 0 },
	{ "3\r\nabc\r\r\n", 400, NULL, 0 },
	{ "3\r\rabc\r\n" END, 400, NULL, 0 },
	{ "3;a\rb\r\nabc\r\n" END, 400, NULL, 0 },
	{ "3;\x7f\r\nabc\r\n" END, 400, NULL, 0 },
	{ "0\n\r\n", 400, NULL, 0 },
	{ "0\r\n\n", 400, NULL, 0 },
	{ "0\r\nX: y\n\r\n", 400, NULL, 0 },
	/* Trailers. */
	{ "0\r\nno colon\r\n\r\n", 400, NULL, 0 },
	{ "0\r\n: y\r\n\r\n", 400, NULL, 0 },
	{ "0\r\nX: y\r\n folded: z\r\n\r\n", 400, NULL, 0 },
	{ "0\r\nX: \x01\r\n\r\n", 400, NULL, 0 },
	{ "0\r\nX: a\rb\r\n\r\n", 400, NULL, 0 },
};

/* Scans a copy that ends with its allocation. */
static int scan(struct spokei_http_chunks *chunks, const char *text, size_t len, size_t *ret_needed)
{
	char *copy = malloc(len ? len : 1);
	int verdict;

	assert_non_null(copy);
	memcpy(copy, text, len);
	verdict = spokei_http_chunks_scan(chunks, copy, len, MAX, ret_needed);
	free(copy);
	return verdict;
}

TEST(bodies_are_scanned_and_joined)
{
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct row *row = &rows[i];
		struct spokei_http_chunks chunks = { 0, 0 };
		char joined[MAX + 1] = "";
		size_t needed;
		int verdict = scan(&chunks, row->text, strlen(row->text), &needed);

		if (verdict != row->verdict)
			fail_msg("%s: %d instead of %d", row->text, verdict, row->verdict);
		if (verdict != SPOKEI_HTTP_WHOLE)
			continue;
		assert_int_equal(chunks.at, strlen(row->text) - row->rest);
		assert_int_equal(chunks.len, strlen(row->joined));
		assert_int_equal(spokei_http_chunks_join(row->text, joined), chunks.len);
		assert_string_equal(joined, row->joined);
	}
}

/* Gives pieces of this length. Each verdict must be the same as that of the whole, and no byte
 * beyond the end may be asked for. */
static void scan_in_pieces(const struct row *row, size_t piece)
{
	struct spokei_http_chunks chunks = { 0, 0 };
	size_t all = strlen(row->text);
	size_t len = 0;
	int verdict;

	for (;;) {
		size_t needed = 0;

		verdict = scan(&chunks, row->text, len, &needed);
		if (verdict != SPOKEI_HTTP_MORE)
			break;
		assert_true(needed > len);
		if (row->verdict == SPOKEI_HTTP_WHOLE)
			assert_true(needed <= all - row->rest);
		if (len == all)
			break;
		len = len + piece < all ? len + piece : all;
	}
	if (verdict != row->verdict)
		fail_msg("%s in pieces of %zu: %d", row->text, piece, verdict);
	if (verdict == SPOKEI_HTTP_WHOLE)
		assert_int_equal(chunks.at, all - row->rest);
}

TEST(pieces_make_no_difference)
{
	for (size_t i = 0; i < LENGTH(rows); i++) {
		for (size_t piece = 1; piece <= strlen(rows[i].text); piece++)
			scan_in_pieces(&rows[i], piece);
	}
}

/* A line ends within its limit, or the body is refused at the limit. */
TEST(lines_have_a_limit)
{
	char text[SPOKEI_HTTP_CHUNK_LINE + 1];

	for (size_t len = SPOKEI_HTTP_CHUNK_LINE - 1; len <= SPOKEI_HTTP_CHUNK_LINE + 1; len++) {
		struct spokei_http_chunks chunks = { 0, 0 };
		bool fits = len <= SPOKEI_HTTP_CHUNK_LINE;
		size_t needed;

		memset(text, 'x', len);
		memcpy(text, "1;", 2);
		memcpy(text + len - 2, "\r\n", 2);
		assert_int_equal(scan(&chunks, text, len, &needed), fits ? SPOKEI_HTTP_MORE : 400);
		chunks = (struct spokei_http_chunks){ 0, 0 };
		assert_int_equal(scan(&chunks, text, len - 2, &needed),
				 len - 2 < SPOKEI_HTTP_CHUNK_LINE ? SPOKEI_HTTP_MORE : 400);
	}
}

TEST(trailers_have_a_limit)
{
	char text[SPOKEI_HTTP_TRAILERS_MAX + 8];

	for (size_t len = SPOKEI_HTTP_TRAILERS_MAX - 1; len <= SPOKEI_HTTP_TRAILERS_MAX + 1;
	     len++) {
		struct spokei_http_chunks chunks = { 0, 0 };
		size_t needed;

		memset(text, 'x', sizeof(text));
		memcpy(text, "0\r\nX:", 5);
		memcpy(text + 3 + len - 4, "\r\n\r\n", 4);
		assert_int_equal(scan(&chunks, text, 3 + len, &needed),
				 len <= SPOKEI_HTTP_TRAILERS_MAX ? SPOKEI_HTTP_WHOLE : 400);
	}
}
