/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of requests: the texts that Java signs, computed with Python's hmac, and what is not
 * accepted. */
#include "cluster/filter/signature.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define NOW UINT64_C(1700000000000) /* ms */
#define MINUTE UINT64_C(60000)
#define SECRET "s3cret-key"

static const struct spoke_span none = { "", 0 };

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

static const struct spokei_signature_check *check_at(uint64_t now_ms)
{
	static struct spokei_signature_check check;

	check = (struct spokei_signature_check){
		.id = span("shop"),
		.secret = span(SECRET),
		.window_ms = 5 * MINUTE,
		.now_ms = now_ms,
	};
	return &check;
}

static struct spokei_signed request(void)
{
	return (struct spokei_signed){
		.service = span("it.Api"),
		.version = none,
		.group = none,
		.method = span("hello"),
	};
}

/* Makes attachments; a text that is NULL is left out. */
static struct spoke_value attach(const char *time, const char *id, const char *signature)
{
	static unsigned char bytes[512];
	const char *pairs[][2] = { { "timestamp", time },
				   { "ak", id },
				   { "signature", signature } };
	struct spoke_builder builder;
	struct spoke_value map;

	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_map(&builder, (size_t)(time != NULL) + (id != NULL) + (signature != NULL));
	for (size_t i = 0; i < 3; i++) {
		if (pairs[i][1] == NULL)
			continue;
		spoke_pack_text(&builder, pairs[i][0]);
		spoke_pack_text(&builder, pairs[i][1]);
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &map), 0);
	return map;
}

/* Signs the request as of a time. */
static struct spoke_value signed_at(uint64_t ms)
{
	char signature[SPOKEI_SIGNATURE + 1] = "";
	char time[SPOKEI_SIGNATURE_TIME + 1];
	struct spokei_signed of = request();

	of.time = (struct spoke_span){ time, spokei_signature_print_time(ms, time) };
	spokei_signature_make(span(SECRET), &of, signature);
	return attach(time, "shop", signature);
}

static bool is_right(uint64_t now_ms, struct spoke_value attachments)
{
	struct spokei_signed of = request();

	return spokei_signature_is_right(check_at(now_ms), &of, attachments);
}

TEST(signatures_are_those_of_java)
{
	char signature[SPOKEI_SIGNATURE + 1] = "";
	struct spokei_signed of = {
		.service = span("it.Api"),
		.version = span("1.0"),
		.group = span("blue"),
		.method = span("hello"),
		.time = span("1700000000000"),
	};

	spokei_signature_make(span(SECRET), &of, signature);
	assert_string_equal(signature, "5JNoi/fpIiev0+NDmZ0cenFD9O1ofkoC9/UrfF2bdYA=");
	of.version = none;
	of.group = none;
	spokei_signature_make(span(SECRET), &of, signature);
	assert_string_equal(signature, "FUn4QsAv0qrTJo68gr9zWguFKjep+zfaSg2w83l7qZM=");
}

TEST(right_signature_is_accepted_again_and_again)
{
	for (unsigned i = 0; i < 3; i++)
		assert_true(is_right(NOW, signed_at(NOW)));
}

TEST(time_has_to_be_near)
{
	assert_true(is_right(NOW + 5 * MINUTE, signed_at(NOW)));
	assert_false(is_right(NOW + 5 * MINUTE + 1, signed_at(NOW)));
	assert_true(is_right(NOW - 5 * MINUTE, signed_at(NOW)));
	assert_false(is_right(NOW - 5 * MINUTE - 1, signed_at(NOW)));
	assert_false(is_right(NOW + 10 * MINUTE, signed_at(NOW)));
}

TEST(every_name_is_covered)
{
	struct spoke_value attachments;
	struct spokei_signed of;

	attachments = signed_at(NOW);
	for (unsigned i = 0; i < 4; i++) {
		of = request();
		*(i == 0   ? &of.service
		  : i == 1 ? &of.version
		  : i == 2 ? &of.group
			   : &of.method) = span("other");
		assert_false(spokei_signature_is_right(check_at(NOW), &of, attachments));
	}
}

TEST(incomplete_or_changed_signatures_are_refused)
{
	static const char good[] = "FUn4QsAv0qrTJo68gr9zWguFKjep+zfaSg2w83l7qZM=";
	static const char now[] = "1700000000000";
	char changed[sizeof(good)];

	assert_true(is_right(NOW, attach(now, "shop", good)));
	assert_false(is_right(NOW, attach(NULL, "shop", good)));
	assert_false(is_right(NOW, attach(now, NULL, good)));
	assert_false(is_right(NOW, attach(now, "shop", NULL)));
	assert_false(is_right(NOW, attach(now, "Shop", good)));
	assert_false(is_right(NOW, attach(now, "sho", good)));
	assert_false(is_right(NOW, attach(now, "shop", "")));
	assert_false(is_right(NOW, attach("1700000000001", "shop", good)));
	assert_false(is_right(NOW, (struct spoke_value){ NULL, 0 }));
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		memcpy(changed, good, sizeof(good));
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		assert_false(is_right(NOW, attach(now, "shop", changed)));
	}
}

TEST(times_that_are_no_numbers_are_refused)
{
	static const char *const times[] = {
		"",   "-1",  "+1700000000000",          " 1700000000000",
		"0x", "1e9", "17000000000000000000000", "99999999999999999999"
	};
	char signature[SPOKEI_SIGNATURE + 1] = "";

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct spokei_signed of = request();

		of.time = span(times[i]);
		spokei_signature_make(span(SECRET), &of, signature);
		assert_false(is_right(NOW, attach(times[i], "shop", signature)));
	}
}
