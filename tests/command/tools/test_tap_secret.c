/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of messages that spoke tap prints. */
#include "examples/spoke/tap_secret.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

/* Hides the secrets of bytes, which are a body that could not be decoded, and compares. */
static void guess(const char *bytes, const char *wanted)
{
	char *copy = tap_secret_guess(span_of(bytes));

	assert_non_null(copy);
	assert_int_equal(strlen(bytes), strlen(wanted));
	assert_memory_equal(copy, wanted, strlen(wanted));
	free(copy);
}

/* Hides the secrets of a head of HTTP and compares. */
static void hide_http(const char *head, const char *wanted)
{
	const struct spoke_frame frame = { .wire = "http", .bytes = span_of(head) };
	struct tap_secret hidden;

	tap_secret_hide(&frame, true, true, &hidden);
	assert_int_equal(hidden.frame.bytes.len, strlen(wanted));
	assert_memory_equal(hidden.frame.bytes.data, wanted, strlen(wanted));
	tap_secret_fini(&hidden);
}

TEST(secret_attachments_and_their_bytes_become_asterisks)
{
	static const char *const secrets[] = {
		"token",    "Token",  "signature", "authorization",
		"password", "secret", "my_Passwd", "secretAccessKey"
	};
	struct spoke_builder builder;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	for (size_t i = 0; i < COUNT(secrets); i++) {
		struct spoke_frame frame = { .wire = "dubbo", .method = span_of("echo") };
		struct spoke_value map = { 0 };
		struct spoke_value value;
		struct spoke_span text;
		struct tap_secret hidden;

		spoke_builder_reset(&builder);
		spoke_pack_map(&builder, 2);
		spoke_pack_text(&builder, secrets[i]);
		spoke_pack_text(&builder, "geheim12");
		spoke_pack_text(&builder, "k");
		spoke_pack_text(&builder, "visible");
		assert_int_equal(spoke_builder_finish_value(&builder, &map), 0);
		frame.attachments = (struct spoke_span){ map.data, map.len };
		frame.args = frame.attachments;
		frame.bytes = span_of("geheim12 head geheim12 visible geheim1");
		tap_secret_hide(&frame, true, true, &hidden);
		map = (struct spoke_value){ hidden.frame.attachments.data,
					    hidden.frame.attachments.len };
		assert_int_equal(spoke_value_get(map, secrets[i], &value), 0);
		assert_int_equal(spoke_value_str(value, &text), 0);
		assert_int_equal(text.len, 3);
		assert_memory_equal(text.data, "***", 3);
		assert_int_equal(spoke_value_get(map, "k", &value), 0);
		assert_int_equal(spoke_value_str(value, &text), 0);
		assert_memory_equal(text.data, "visible", 7);
		assert_int_equal(hidden.frame.bytes.len, frame.bytes.len);
		assert_memory_equal(hidden.frame.bytes.data,
				    "******** head ******** visible geheim1", frame.bytes.len);
		assert_ptr_equal(hidden.frame.args.data, frame.args.data);
		tap_secret_fini(&hidden);
	}
	spoke_builder_fini(&builder);
}

TEST(arguments_of_a_token_request_become_asterisks)
{
	struct spoke_frame frame = { .wire = "msgpack-rpc", .method = span_of("$token") };
	struct spoke_builder builder;
	struct spoke_cursor cursor;
	struct spoke_value value;
	struct spoke_span shown;
	struct tap_secret hidden;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_text(&builder, "geheim12");
	assert_int_equal(spoke_builder_finish(&builder, &frame.args), 0);
	frame.bytes = span_of("$token geheim12");
	tap_secret_hide(&frame, false, true, &hidden);
	cursor = spoke_cursor_bytes(hidden.frame.args);
	assert_true(spoke_cursor_next(&cursor, &value));
	assert_int_equal(spoke_value_str(value, &shown), 0);
	assert_int_equal(shown.len, 3);
	assert_memory_equal(shown.data, "***", 3);
	assert_false(spoke_cursor_next(&cursor, &value));
	assert_memory_equal(hidden.frame.bytes.data, "$token ********", frame.bytes.len);
	tap_secret_fini(&hidden);

	frame.method = span_of("tokens");
	tap_secret_hide(&frame, false, true, &hidden);
	assert_ptr_equal(hidden.frame.args.data, frame.args.data);
	assert_memory_equal(hidden.frame.bytes.data, "$token geheim12", frame.bytes.len);
	tap_secret_fini(&hidden);
	spoke_builder_fini(&builder);
}

TEST(secret_headers_of_http_become_asterisks)
{
	static const char head[] =
		"POST /a/b HTTP/1.1\r\nAuthorization: Bearer gehe\r\n"
		"Spoke-Attachment-token: %67ehe\r\nHost: token\r\nX-Tokens: a\r\n\r\n"
		"token: body";
	static const char wanted[] =
		"POST /a/b HTTP/1.1\r\nAuthorization: ****** ****\r\n"
		"Spoke-Attachment-token: ******\r\nHost: token\r\nX-Tokens: a\r\n\r\n"
		"token: body";

	hide_http(head, wanted);
}

TEST(covered_bytes_of_headers_do_not_depend_on_the_sign_of_char)
{
	static const char head[] =
		"GET / HTTP/1.1\r\nToken: g\xc3\xa9\xff\x80\r\nA: \xc3\xa9\r\n\r\n";
	static const char wanted[] = "GET / HTTP/1.1\r\nToken: *****\r\nA: \xc3\xa9\r\n\r\n";

	hide_http(head, wanted);
}

TEST(all_kinds_of_secret_headers_and_cookies_become_asterisks)
{
	hide_http("GET / HTTP/1.1\nSpoke-Attachment-secret: ab\nCookie: a=b; c\nset-cookie : x\n"
		  "Cookies: a\nToken.File: a\nX-Passwd:a",
		  "GET / HTTP/1.1\nSpoke-Attachment-secret: **\nCookie: **** *\nset-cookie : *\n"
		  "Cookies: a\nToken.File: a\nX-Passwd:*");
	hide_http("HTTP/1.1 200 OK\r\nSet-Cookie: ab\r\n\r\nCookie: ab",
		  "HTTP/1.1 200 OK\r\nSet-Cookie: **\r\n\r\nCookie: ab");
	hide_http("", "");
	hide_http("\n", "\n");
}

TEST(secret_parameters_of_a_query_become_asterisks)
{
	static const char head[] =
		"GET /a/b?x=1&access_token=ge+he&%70asswd=&tokens=c HTTP/1.1\r\n";
	struct spoke_frame frame = { .wire = "http", .bytes = span_of(head) };
	struct spoke_builder builder;
	struct tap_secret hidden;

	hide_http(head, "GET /a/b?x=1&access_token=*****&%70asswd=&tokens=c HTTP/1.1\r\n");
	hide_http("GET /a?token=geheim", "GET /a?token=******");
	hide_http("GET /a?token", "GET /a?token");
	hide_http("GET / HTTP/1.1\r\nReferer: http://h/?passwd=ab&c=d\r\n\r\n?token=b",
		  "GET / HTTP/1.1\r\nReferer: http://h/?passwd=**&c=d\r\n\r\n?token=b");
	hide_http("GET /a? token=b", "GET /a? token=b");
	hide_http("GET /a?%zztoken=b&c=d\n", "GET /a?%zztoken=*&c=d\n");

	/* The arguments are the values without their keys. */
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_text(&builder, "1");
	spoke_pack_text(&builder, "ge he");
	assert_int_equal(spoke_builder_finish(&builder, &frame.args), 0);
	tap_secret_hide(&frame, false, false, &hidden);
	assert_int_equal(hidden.frame.args.len, 8);
	assert_memory_equal(hidden.frame.args.data, "\xa3***\xa3***", 8);
	tap_secret_fini(&hidden);
	frame.bytes = span_of("GET /a?tokens=b HTTP/1.1\r\n\r\n?token=a");
	tap_secret_hide(&frame, false, false, &hidden);
	assert_ptr_equal(hidden.frame.args.data, frame.args.data);
	tap_secret_fini(&hidden);
	spoke_builder_fini(&builder);
}

/* Makes a request `$token` of one text of one byte, many times. */
static void pack_many(struct spoke_builder *builder, size_t count, struct spoke_frame *frame)
{
	spoke_builder_init(builder, spoke_host_env(), NULL);
	for (size_t i = 0; i < count; i++)
		spoke_pack_text(builder, "g");
	assert_int_equal(spoke_builder_finish(builder, &frame->args), 0);
}

TEST(arguments_inside_the_bytes_are_covered_in_place)
{
	struct spoke_frame frame = { .wire = "msgpack-rpc", .method = span_of("$token") };
	struct spoke_builder builder;
	struct tap_secret hidden;
	const char *shown;

	pack_many(&builder, 1000, &frame);
	frame.bytes = frame.args;
	tap_secret_hide(&frame, false, true, &hidden);
	shown = hidden.frame.bytes.data;
	assert_int_equal(hidden.frame.bytes.len, 2000);
	for (size_t i = 0; i < 2000; i++)
		assert_int_equal(shown[i], i % 2 ? '*' : '\xa1');
	tap_secret_fini(&hidden);
	spoke_builder_fini(&builder);
}

TEST(only_few_values_are_searched_for_in_all_bytes)
{
	static const char *const wanted[] = { "$token *** abc* **", "$token *** **** **" };
	struct spoke_frame frame = { .wire = "msgpack-rpc", .method = span_of("$token") };
	struct spoke_builder builder;
	struct tap_secret hidden;

	for (size_t i = 0; i < 2; i++) {
		pack_many(&builder, 8 + i, &frame);
		frame.bytes = span_of("$token ggg abcg gg");
		tap_secret_hide(&frame, false, true, &hidden);
		assert_memory_equal(hidden.frame.bytes.data, wanted[i], frame.bytes.len);
		tap_secret_fini(&hidden);
		spoke_builder_fini(&builder);
	}
}

TEST(undecoded_bytes_after_a_secret_name_become_asterisks)
{
	static const char first[5] = { 't', 'o', 'k', 'e', 'n' };
	static const char second[8] = { 'P', 'A', 'S', 'S', 'W', 'O', 'R', 'D' };
	char many[600];
	char *copy;

	guess("\x05token\x08geheim12\x01z", "\x05token\x08********\x01*");
	guess("access_secret\xa2"
	      "ab passwd=a",
	      "access_secret\xa2"
	      "** ********");
	guess(".secret=a passwd", ".secret** ******");
	guess("abc", "abc");
	guess("toke", "toke");
	guess("a \"signature\":\"gehe\"", "a \"signature********");
	/* Two names close to each other: the second covers on. */
	memset(many, 'a', sizeof(many));
	memcpy(many, first, sizeof(first));
	memcpy(many + 250, second, sizeof(second));
	copy = tap_secret_guess((struct spoke_span){ many, sizeof(many) });
	assert_non_null(copy);
	for (size_t i = 5; i < 258 + 272; i++)
		assert_int_equal(copy[i], '*');
	assert_int_equal(copy[258 + 272], 'a');
	free(copy);
}

TEST(bad_body_is_guessed_and_bytes_are_copied_on_demand)
{
	const struct spoke_frame frame = {
		.wire = "dubbo",
		.bad = true,
		.bytes = span_of("token=geheim12"),
	};
	struct tap_secret hidden;

	tap_secret_hide(&frame, true, true, &hidden);
	assert_memory_equal(hidden.frame.bytes.data, "token*********", frame.bytes.len);
	tap_secret_fini(&hidden);
	tap_secret_hide(&frame, false, false, &hidden);
	assert_null(hidden.bytes);
	assert_int_equal(hidden.frame.bytes.len, frame.bytes.len); /* its length is printed */
	tap_secret_fini(&hidden);
}
