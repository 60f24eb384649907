/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: packing, reading, printing. */
#include "tests/support/test.h"

#include <spoke/value.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(text) (text), sizeof(text) - 1

static struct spoke_value value_of(const char *bytes, size_t len)
{
	return (struct spoke_value){ (const unsigned char *)bytes, len };
}

static void start(struct spoke_builder *builder)
{
	static unsigned char memory[100];

	spoke_builder_init_fixed(builder, memory, sizeof(memory), NULL);
}

TEST(timestamp_is_packed_shortest_and_read_back)
{
	static const struct {
		int64_t seconds;
		uint32_t ns;
		size_t len;
		const char *text;
	} cases[] = {
		{ 0, 0, 6, "date(1970-01-01T00:00:00Z)" },
		{ 951782400, 0, 6, "date(2000-02-29T00:00:00Z)" },
		{ 1714564800, 123000000, 10, "date(2024-05-01T12:00:00.123Z)" },
		{ 1714564800, 123456000, 10, "date(2024-05-01T12:00:00.123456Z)" },
		{ 1714564800, 1, 10, "date(2024-05-01T12:00:00.000000001Z)" },
		{ -1, 999000000, 15, "date(1969-12-31T23:59:59.999Z)" },
		{ -62167219200, 0, 15, "date(0000-01-01T00:00:00Z)" },
		{ 253402300799, 0, 15, "date(9999-12-31T23:59:59Z)" },
		{ 253402300800, 0, 15, "ext(-1, 000000000000003afff44180)" },
		{ INT64_MIN, 0, 15, "ext(-1, 000000008000000000000000)" },
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct spoke_builder builder;
		struct spoke_value value = { 0 };
		int64_t seconds = 1;
		uint32_t ns = 1;
		char text[60];

		start(&builder);
		spoke_pack_time(&builder, cases[i].seconds, cases[i].ns);
		assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
		assert_int_equal(value.len, cases[i].len);
		assert_int_equal(spoke_value_time(value, &seconds, &ns), 0);
		assert_true(seconds == cases[i].seconds && ns == cases[i].ns);
		(void)spoke_value_print(value, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(invalid_timestamp_is_rejected)
{
	struct spoke_builder builder;
	struct spoke_value value;
	int64_t seconds;
	uint32_t ns;

	start(&builder);
	spoke_pack_time(&builder, 0, 1000000000);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_EINVAL);
	value = value_of(BYTES("\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00"));
	assert_int_equal(spoke_value_time(value, &seconds, &ns), SPOKE_ERANGE);
	value = value_of(BYTES("\xd5\xff\x00\x00"));
	assert_int_equal(spoke_value_time(value, &seconds, &ns), SPOKE_ETYPE);
	value = value_of(BYTES("\xd6\x01\x00\x00\x00\x00"));
	assert_int_equal(spoke_value_time(value, &seconds, &ns), SPOKE_ETYPE);
	assert_int_equal(spoke_value_time(value_of(BYTES("\x01")), &seconds, &ns), SPOKE_ETYPE);
}
