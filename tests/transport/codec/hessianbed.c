/* SPDX-License-Identifier: Apache-2.0 */
/* The memory and the checks of tests that write Hessian 2. */
#include "tests/transport/codec/hessianbed.h"
#include "tests/transport/codec/bodies.h"

#include <stdlib.h>

int bed_set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	memory_init(&bed->memory);
	spokei_buffer_init(&bed->out, &bed->memory.env, sizeof(bed->values));
	*state = bed;
	return 0;
}

int bed_tear_down(void **state)
{
	struct bed *bed = *state;

	spokei_buffer_fini(&bed->out);
	assert_int_equal(bed->memory.bytes, 0);
	free(bed);
	return 0;
}

void add_bytes(struct bed *bed, const void *bytes, size_t len)
{
	assert_true(len <= sizeof(bed->values) - bed->len);
	memcpy(bed->values + bed->len, bytes, len);
	bed->len += len;
}

void wrap(struct bed *bed, size_t start, int type)
{
	size_t len = bed->len - start;

	assert_true(len < 65536);
	ADD(bed, "    ");
	memmove(bed->values + start + 4, bed->values + start, len);
	bed->values[start] = 0xc8;
	bed->values[start + 1] = (unsigned char)(len >> 8);
	bed->values[start + 2] = (unsigned char)len;
	bed->values[start + 3] = (unsigned char)type;
}

int write_all(struct bed *bed, enum spokei_codec_part part)
{
	spokei_buffer_truncate(&bed->out, 0);
	return body_write(&spokei_codec_hessian2, part, spokei_span(bed->values, bed->len),
			  &bed->out);
}

void written_is(struct bed *bed, enum spokei_codec_part part, const void *bytes, size_t len)
{
	assert_int_equal(write_all(bed, part), 0);
	is_bytes(spokei_span(spokei_buffer_data(&bed->out), spokei_buffer_len(&bed->out)), bytes,
		 len);
	bed->len = 0;
}

void is_refused(struct bed *bed)
{
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), SPOKE_EUNSUPPORTED);
	bed->len = 0;
}

/* Appends a text of less than 256 bytes as a str. */
static void add_text(struct bed *bed, const char *text)
{
	const unsigned char head[] = { 0xd9, (unsigned char)strlen(text) };

	add_bytes(bed, head, sizeof(head));
	add_bytes(bed, text, strlen(text));
}

/* Writes arguments, and returns their bytes without the types before and the attachments after. */
static struct spoke_span write_args(struct bed *bed, const char *types, const char *args,
				    size_t len)
{
	size_t head = strlen(types) + (strlen(types) < 32 ? 1 : 2);

	bed->len = 0;
	add_text(bed, types);
	add_bytes(bed, args, len);
	ADD(bed, "\x80");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_ARGS), 0);
	assert_in_range(spokei_buffer_len(&bed->out), head + 2, 1000);
	assert_memory_equal(spokei_buffer_data(&bed->out) + spokei_buffer_len(&bed->out) - 2, "HZ",
			    2);
	return spokei_span(spokei_buffer_data(&bed->out) + head,
			   spokei_buffer_len(&bed->out) - head - 2);
}

void all_are(struct bed *bed, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct spoke_span span = write_args(bed, rows[i].types, rows[i].value,
						    rows[i].value_len);

		is_bytes(span, rows[i].bytes, rows[i].len);
	}
}
