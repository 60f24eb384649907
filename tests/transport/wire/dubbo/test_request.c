/* SPDX-License-Identifier: Apache-2.0 */
/* Reads requests of the Dubbo wire, with values in their places and out of them. */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include <stdio.h>
#include <string.h>

TEST(request_values_are_read_in_order)
{
	struct spokei_message message;

	assert_int_equal(READ(0xdb, 0,
			      "\2452.0.2\251demo.Echo\2451.2."
			      "3\xa3sum\xa2II\x28\x02\x82\xa5group\xa2g1\xa7timeout\2441500",
			      &message),
			 0);
	assert_int_equal(message.kind, SPOKEI_REQUEST);
	is_text(message.service, "demo.Echo");
	is_text(message.version, "1.2.3");
	is_text(message.group, "g1");
	is_text(message.method, "sum");
	is_text(message.types, "II");
	is_text(message.args, "\x28\x02");
	assert_int_equal(message.arg_count, 2);
	assert_int_equal(message.timeout_ms, 1500);
	assert_false(message.generic);
	assert_false(message.bare);
	assert_int_equal(message.attachments.len, 23);
}

TEST(one_way_request_is_not_two_way)
{
	struct spokei_message message;

	assert_int_equal(READ(0x9b, 0, NAMED("\xa0") "\x80", &message), 0);
	assert_int_equal(message.kind, SPOKEI_REQUEST);
	assert_false(message.two_way);
	WRITES(&message, 0x9b, 0, NAMED("\xa0") "\x80");
}

TEST(attachments_override_service_and_version)
{
	static const struct {
		const char *map;
		const char *service;
		const char *version;
	} rows[] = {
		{ "\x81\xa4path\xa1p", "p", "" },
		{ "\x81\xa4path\xa0", "demo.Echo", "" },
		{ "\x81\xa4path\xc0", "demo.Echo", "" },
		{ "\x81\xa9interface\xa1i", "demo.Echo", "" },
		{ "\x81\xa7version\2439.9", "demo.Echo", "9.9" },
		{ "\x81\xa7version\2450.0.0", "demo.Echo", "" },
		{ "\x81\xa7version\xa0", "demo.Echo", "" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_joined(NAMED("\xa0"), rows[i].map, &message), 0);
		is_text(message.service, rows[i].service);
		is_text(message.version, rows[i].version);
	}
}

TEST(null_version_and_types_mean_none)
{
	struct spokei_message message;

	assert_int_equal(READ(0xdb, 0, "\xc0\xa1s\xc0\xa1m\xc0\x80", &message), 0);
	assert_int_equal(message.version.len, 0);
	assert_int_equal(message.types.len, 0);
	assert_int_equal(message.arg_count, 0);
	assert_true(message.bare);
}

TEST(reply_attachments_need_protocol_2_0_2)
{
	static const struct {
		const char *version;
		bool bare;
	} rows[] = {
		{ "2.0.2", false }, { "2.0.9", false }, { "2.0.10", false }, { "2.0.99", false },
		{ "2.0.0", true },  { "2.0.1", true },  { "2.0.02", true },  { "2.0.100", true },
		{ "2.5.3", true },  { "", true },       { "2.0.x", true },   { "2.0.2x", true },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char start[10];
		struct spokei_message message;
		int len = snprintf(start, sizeof(start), "%c%s",
				   (int)(0xa0 | strlen(rows[i].version)), rows[i].version);

		assert_true(len > 0 && (size_t)len < sizeof(start));
		assert_int_equal(read_joined(start, "\xa1s\xc0\xa1m\xa0\x80", &message), 0);
		assert_int_equal(message.bare, rows[i].bare);
	}
}

/* Each body is valid MessagePack but no valid request. */
TEST(misplaced_values_are_bad_request)
{
#define ROW(body)                                                                                  \
	{                                                                                          \
		body, sizeof(body) - 1                                                             \
	}
	static const struct {
		const char *body;
		size_t len;
	} rows[] = {
		ROW(""),
		ROW("\xc0"),
		ROW("\x80"),
		ROW("\x90"),
		ROW("\xa0"),
		ROW("\x96\2452.0.2\xa1s\xc0\xa1m\xa0\x80"), /* all values in one array */
		ROW("\x02\xa1s\xc0\xa1m\xa0\x80"),
		ROW("\xc0\xc0\xc0\xa1m\xa0\x80"),
		ROW("\xc0\x01\xc0\xa1m\xa0\x80"),
		ROW("\xc0\xa0\xc0\xa1m\xa0\x80"),
		ROW("\xc0\xa1s\x01\xa1m\xa0\x80"),
		ROW("\xc0\xa1s\xc0\xc0\xa0\x80"),
		ROW("\xc0\xa1s\xc0\xa0\xa0\x80"),
		ROW("\xc0\xa1s\xc0\x91\xa1m\xa0\x80"),
		ROW("\xc0\xa1s\xc0\xa1m\x01\x80"),
		ROW("\xc0\xa1s\xc0\xa1m\xc4\x00\x80"), /* a bin is not a str */
		ROW("\xc0\xa1s\xc0\xa1m\xa0"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\xc0"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x90"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x80\x01"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x81\x01\x02"), /* keys must be strs */
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x81\xc0\x02"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x82\xa1k\x01\xa1k\x01"), /* and differ */
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x82\xa0\x01\xa0\x01"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x81\xa4path\x01"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x81\xa5group\x90"),
		ROW("\xc0\xa1s\xc0\xa1m\xa0\x81\xa7version\xc3"),
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_body(0xdb, 0, rows[i].body, rows[i].len, &message),
				 SPOKE_EBADREQUEST);
		assert_int_equal(message.kind, SPOKEI_REQUEST);
		assert_int_equal(message.id, 7);
		assert_true(message.two_way);
		assert_int_equal(message.service.len, 0);
	}
}

TEST(invalid_msgpack_returns_validator_error)
{
	struct spokei_message message;
	char deep[SPOKE_VALUE_DEPTH_MAX + 1];

	assert_int_equal(READ(0xdb, 0, NAMED("\xa0") "\xc1\x80", &message), SPOKE_ECORRUPT);
	assert_int_equal(READ(0xdb, 0, NAMED("\xa0") "\xdf\x7f\xff\xff\xff", &message),
			 SPOKE_ETRUNCATED);
	assert_int_equal(READ(0xdb, 0, NAMED("\xa0") "\xdb\x7f\xff\xff\xff", &message),
			 SPOKE_ETRUNCATED);
	memset(deep, 0x91, sizeof(deep));
	assert_int_equal(read_body(0xdb, 0, deep, sizeof(deep), &message), SPOKE_EDEPTH);
	assert_int_equal(message.kind, SPOKEI_REQUEST);
	assert_int_equal(message.id, 7);
	assert_int_equal(READ(0x1b, 20, "\x04\xc1\x80", &message), SPOKE_ECORRUPT);
	assert_int_equal(message.kind, SPOKEI_REPLY);
}

/* Reads a request whose names and attachment key have these lengths. */
static int read_sized(size_t service, size_t method, size_t key, struct spokei_message *ret)
{
	static unsigned char body[2000];
	const size_t lens[] = { service, 0, method, 0 };
	unsigned char *at = body;

	*at++ = 0xc0;
	for (size_t i = 0; i < LENGTH(lens); i++) {
		*at++ = 0xda;
		*at++ = (unsigned char)(lens[i] >> 8);
		*at++ = (unsigned char)lens[i];
		memset(at, 'n', lens[i]);
		at += lens[i];
	}
	*at++ = 0x81;
	*at++ = 0xda;
	*at++ = (unsigned char)(key >> 8);
	*at++ = (unsigned char)key;
	memset(at, 'k', key);
	at += key;
	*at++ = 0x01;
	return read_body(0xdb, 0, body, (size_t)(at - body), ret);
}

TEST(names_above_limit_are_rejected)
{
	struct spokei_message message;

	assert_int_equal(read_sized(200, 200, 256, &message), 0);
	assert_int_equal(message.service.len, 200);
	assert_int_equal(read_sized(201, 1, 1, &message), SPOKE_ETOOLARGE);
	assert_int_equal(read_sized(1, 201, 1, &message), SPOKE_ETOOLARGE);
	assert_int_equal(read_sized(1, 1, 257, &message), SPOKE_ETOOLARGE);
	is_text(message.error_text,
		"an attachment's key is too long; at most 256 bytes are allowed");
	assert_int_equal(message.kind, SPOKEI_REQUEST);
}

TEST(attachments_are_bounded_and_unique)
{
	struct spokei_message message;

	assert_int_equal(read_attached(256, false, &message), 0);
	assert_int_equal(read_attached(256, true, &message), SPOKE_EBADREQUEST);
	assert_int_equal(read_attached(257, false, &message), SPOKE_ETOOLARGE);
	is_text(message.error_text, "too many attachments; at most 256 are allowed");
	assert_int_equal(read_attached(1000, false, &message), SPOKE_ETOOLARGE);
}

TEST(names_may_contain_any_bytes)
{
	struct spokei_message message;

	assert_int_equal(READ(0xdb, 0, "\xc0\xa2s\0\xc0\xa3\xff\xfe\0\xa0\x80", &message), 0);
	is_bytes(message.service, "s", 2);
	is_bytes(message.method, "\xff\xfe", 3);
}

TEST(remaining_time_is_read_from_countdown_or_timeout)
{
	static const struct {
		const char *map;
		int64_t ms;
	} rows[] = {
		{ "\x81\xa7timeout\2441000", 1000 },
		{ "\x81\xa7timeout\x05", 5 },
		{ "\x81\xa3_TO\24242", 42 },
		{ "\x82\xa3_TO\24242\xa7timeout\2441000", 42 },
		{ "\x82\xa7timeout\2441000\xa3_TO\24242", 42 },
		{ "\x82\xa7timeout\2441000\xa3_TO\xa1x", 1000 },
		{ "\x81\xa3_TO\2410", -1 },
		{ "\x81\xa3_TO\xa2-5", -1 },
		{ "\x81\xa3_TO\xff", -1 },
		{ "\x81\xa7timeout\2410", 0 },
		{ "\x81\xa7timeout\xa2-1", 0 },
		{ "\x81\xa7timeout\xa0", 0 },
		{ "\x81\xa7timeout\xa1-", 0 },
		{ "\x81\xa7timeout\2431.5", 0 },
		{ "\x81\xa7timeout\xc3", 0 },
		{ "\x81\xa7timeout\2639223372036854775807", INT64_MAX },
		{ "\x81\xa7timeout\270999999999999999999999999", INT64_MAX },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_joined(NAMED("\xa0"), rows[i].map, &message), 0);
		assert_true(message.timeout_ms == rows[i].ms);
	}
}

/* --- generic calls */

#define GENERIC(method)                                                                            \
	"\xa5"                                                                                     \
	"2.0.2"                                                                                    \
	"\xa1"                                                                                     \
	"s"                                                                                        \
	"\xa5"                                                                                     \
	"0.0.0" method "\xd9\x38"                                                                  \
	"Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;"
#define INVOKE                                                                                     \
	GENERIC("\xa7"                                                                             \
		"$invoke")
#define INVOKE_ASYNC                                                                               \
	GENERIC("\xac"                                                                             \
		"$invokeAsync")

TEST(generic_call_is_read_as_described_call)
{
	struct spokei_message message;

	assert_int_equal(READ(0xdb, 0, INVOKE "\xa3sum\x92\xa3int\xa3int\x92\x01\x02\x80",
			      &message),
			 0);
	assert_true(message.generic);
	is_text(message.method, "sum");
	is_text(message.args, "\x01\x02");
	assert_int_equal(message.arg_count, 2);
	assert_int_equal(message.types.len, 0);
	assert_int_equal(message.type_names.len, 9);
	WRITES(&message, 0xdb, 0,
	       INVOKE "\xa3sum\x92\xa3int\xa3int\x92\x01\x02\x81\xa7generic\xa4true");
	assert_int_equal(READ(0xdb, 0, INVOKE_ASYNC "\xa3sum\xc0\x92\x01\x02\x80", &message), 0);
	assert_true(message.generic);
	assert_int_equal(message.type_names.len, 0);
	assert_int_equal(READ(0xdb, 0, INVOKE "\xa3zap\xc0\xc0\x81\xa7generic\xaaraw.return",
			      &message),
			 0);
	assert_int_equal(message.arg_count, 0);
	WRITES(&message, 0xdb, 0, INVOKE "\xa3zap\xc0\x90\x81\xa7generic\xaaraw.return");
}

TEST(malformed_generic_call_is_bad_request)
{
	static const struct {
		const char *rest;
		int error;
	} rows[] = {
		{ "\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\xc0\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\xc0\xc0\xc0\x80", SPOKE_EBADREQUEST },
		{ "\xc0\xc0\xc0\x80", SPOKE_EBADREQUEST },
		{ "\xa0\xc0\xc0\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\xa1t\x90\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\x91\x01\x91\x01\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\x91\xa3int\x90\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\x91\xa3int\x92\x01\x02\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\x90\x01\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\x90\x80\x80", SPOKE_EBADREQUEST },
		{ "\xa1m\xc0\xc0\x81\xa7generic\x01", SPOKE_EBADREQUEST },
		{ "\xa1m\xc0\xc0\x81\xa7generic\xa4gson", SPOKE_EUNSUPPORTED },
		{ "\xa1m\xc0\xc0\x81\xa7generic\xaanativejava", SPOKE_EUNSUPPORTED },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_joined(INVOKE, rows[i].rest, &message), rows[i].error);
		assert_int_equal(message.method.len, 0);
	}
}
