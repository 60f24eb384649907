/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parser of replies. However the bytes are cut, the verdict, the length and the reason
 * must be the same, and no verdict may change when more bytes follow. A complete reply must be
 * walked to its end by the cursor, within its limits, and what is written must be read again.
 */
#include "cluster/lease/resp.h"
#include "cluster/lease/script.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>

#define EVERY_PART 512u /* bytes: up to this size each prefix is tested, else some */

/* Reads the first bytes, in a block of exactly their length. */
static enum spokei_resp_verdict read_part(struct spokei_resp_reader *reader, const uint8_t *data,
					  size_t len)
{
	unsigned char *copy = calloc(1, len > 0 ? len : 1);
	enum spokei_resp_verdict verdict;

	demand(copy != NULL, "there is memory");
	if (len > 0)
		memcpy(copy, data, len);
	verdict = spokei_resp_read(reader, copy, len);
	free(copy);
	demand(verdict != SPOKEI_RESP_MORE || len < SPOKEI_RESP_BYTES,
	       "no more bytes are wanted than a reply may have");
	return verdict;
}

/* Walks over a whole reply, whose parts lie inside of its bytes. */
static void walk(const unsigned char *bytes, size_t len)
{
	struct spokei_resp_cursor cursor = { bytes, bytes + len };
	struct spokei_resp_value value;
	uint64_t expected = 1;
	uint64_t seen = 0;
	int64_t number;

	while (spokei_resp_next(&cursor, &value)) {
		const unsigned char *text = value.text.data;

		seen++;
		expected += value.count;
		demand(text == NULL || (text >= bytes && text + value.text.len <= bytes + len),
		       "a text lies inside of the reply");
		(void)spokei_resp_number(&value, &number);
		(void)spokei_resp_is(&value, "message");
		if (value.kind == SPOKEI_RESP_ERROR) {
			(void)spokei_refusal_of(value.text);
			(void)spokei_refusal_text(value.text);
		}
	}
	demand(seen == expected, "the cursor finds every value");
	demand(seen <= 1 + SPOKEI_RESP_ELEMENTS, "elements are bounded");
	demand(cursor.at == bytes + len, "the cursor ends at the end");
}

static void try_scripts(const unsigned char *bytes, size_t len)
{
	const struct spokei_resp_cursor cursor = { bytes, bytes + len };

	for (int i = SPOKEI_SCRIPT_NONE; i < SPOKEI_SCRIPTS; i++)
		(void)spokei_script_answers((enum spokei_script)i, 2, cursor);
}

/* The cursor must stand bytes that no parser has checked. */
static void try_cursor(const uint8_t *data, size_t size)
{
	unsigned char *copy = calloc(1, size > 0 ? size : 1);
	struct spokei_resp_cursor cursor = { copy, copy + size };
	struct spokei_resp_value value;

	demand(copy != NULL, "there is memory");
	if (size > 0)
		memcpy(copy, data, size);
	while (spokei_resp_next(&cursor, &value))
		demand(cursor.at <= cursor.end, "the cursor stays inside");
	try_scripts(copy, size);
	free(copy);
}

static void try_writer(const uint8_t *data, size_t size)
{
	struct spokei_resp_reader reader;
	struct spokei_resp_cursor cursor;
	struct spokei_resp_value value;
	struct spokei_buffer out;

	spokei_buffer_init(&out, spoke_host_env(), SIZE_MAX);
	demand(spokei_resp_put_command(&out, 2) == 0, "a command is written");
	demand(spokei_resp_put_text(&out, (struct spoke_span){ data, size }) == 0, "and a text");
	demand(spokei_resp_put_number(&out, size) == 0, "and a number");
	spokei_resp_begin(&reader);
	if (spokei_buffer_len(&out) <= SPOKEI_RESP_BYTES) {
		cursor = (struct spokei_resp_cursor){
			spokei_buffer_data(&out), spokei_buffer_data(&out) + spokei_buffer_len(&out)
		};
		demand(spokei_resp_read(&reader, cursor.at, spokei_buffer_len(&out)) ==
			       SPOKEI_RESP_WHOLE,
		       "a command can be read");
		demand(spokei_resp_next(&cursor, &value) && value.count == 2, "as an array");
		demand(spokei_resp_next(&cursor, &value) && value.text.len == size &&
			       (size == 0 || memcmp(value.text.data, data, size) == 0),
		       "with the same text");
	}
	spokei_buffer_fini(&out);
}

FUZZ(resp)
{
	struct spokei_resp_reader whole;
	struct spokei_resp_reader cut;
	enum spokei_resp_verdict verdict;
	enum spokei_resp_verdict last = SPOKEI_RESP_MORE;
	size_t step;

	step = size <= EVERY_PART ? 1 : size / EVERY_PART + 1;
	spokei_resp_begin(&whole);
	spokei_resp_begin(&cut);
	verdict = read_part(&whole, data, size);
	for (size_t len = 0; len < size && last == SPOKEI_RESP_MORE; len += step)
		last = read_part(&cut, data, len);
	if (last == SPOKEI_RESP_MORE)
		last = read_part(&cut, data, size);
	demand(last == verdict, "the verdict does not depend on the cut");
	if (verdict == SPOKEI_RESP_BROKEN)
		demand(cut.why && strcmp(cut.why, whole.why) == 0, "nor does the reason");
	if (verdict == SPOKEI_RESP_WHOLE) {
		demand(cut.at == whole.at, "nor does the length");
		demand(whole.at <= size && whole.at <= SPOKEI_RESP_BYTES, "a reply is bounded");
		walk(data, whole.at);
		try_scripts(data, whole.at);
	}
	try_cursor(data, size);
	try_writer(data, size);
	return 0;
}
