/* SPDX-License-Identifier: Apache-2.0 */
/* Percent encoding and decoding of URL components. */
#include "tests/support/test.h"

#include <spoke/url.h>

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Expected output of URLEncoder.encode() of Java, which Dubbo uses for ZooKeeper node names. */
static const char *const components[][2] = {
	{ "dubbo://192.168.0.2:20880/demo.EchoService?anyhost=true&methods=say,echo&side=provider",
	  "dubbo%3A%2F%2F192.168.0.2%3A20880%2Fdemo.EchoService%3Fanyhost%3Dtrue%26methods%3D"
	  "say%2Cecho%26side%3Dprovider" },
	{ "consumer://10.0.0.1/a.B?mock=return null", "consumer%3A%2F%2F10.0.0.1%2Fa.B%3Fmock%3D"
						      "return+null" },
	{ "", "" },
	{ " ", "+" },
	{ "  a  ", "++a++" },
	{ "1+1", "1%2B1" },
	{ "a-b_c.d*e~f", "a-b_c.d*e%7Ef" },
	{ "%41", "%2541" },
	{ "\xe2\x82\xac\n", "%E2%82%AC%0A" },
};

TEST(component_is_encoded_as_java_does_and_decoded_again)
{
	for (size_t i = 0; i < COUNT(components); i++) {
		size_t len = strlen(components[i][0]);
		char encoded[512];
		char decoded[512];
		size_t encoded_len = spoke_url_encode(components[i][0], len, encoded,
						      sizeof(encoded));
		size_t decoded_len = 77;

		assert_string_equal(encoded, components[i][1]);
		assert_int_equal(encoded_len, strlen(encoded));
		assert_int_equal(spoke_url_decode(encoded, encoded_len, decoded, encoded_len + 1,
						  &decoded_len),
				 SPOKE_OK);
		assert_string_equal(decoded, components[i][0]);
		assert_int_equal(decoded_len, len);
		assert_int_equal(spoke_url_encode(components[i][0], len, NULL, 0), encoded_len);
	}
}

TEST(url_survives_encoding_as_node_name)
{
	static const char text[] = "dubbo://u:p@[::1]:80/a.B?k=%20%26%25+v&m=x,y";
	char encoded[256];
	char decoded[256];
	size_t len = spoke_url_encode(text, sizeof(text) - 1, encoded, sizeof(encoded));

	assert_null(strpbrk(encoded, "/:?&= "));
	assert_int_equal(spoke_url_decode(encoded, len, decoded, sizeof(decoded), NULL), SPOKE_OK);
	assert_string_equal(decoded, text);
}

TEST(component_that_is_not_encoded_is_rejected)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
		{ "%", 1 },
		{ "a%2", 3 },
		{ "%2g", 3 },
		{ "%g2", 3 },
		{ "%2G", 3 },
		{ "%G2", 3 },
		{ "%%41", 4 },
		{ "%00", 3 },
		{ "a\0b", 3 },
		{ "a\nb", 3 },
		{ "a\x7f"
		  "b",
		  3 },
		{ "%-1", 3 },
		{ "%412%", 5 },
		{ "% 1", 3 },
	};
	char out[64];
	size_t len = 77;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(spoke_url_decode(cases[i].text, cases[i].len, out, sizeof(out),
						  &len),
				 SPOKE_ESYNTAX);
	assert_int_equal(spoke_url_decode("abc", 3, out, 3, &len), SPOKE_ETOOLARGE);
	assert_int_equal(spoke_url_decode("", 0, out, 0, &len), SPOKE_ETOOLARGE);
	assert_int_equal(len, 77);
	assert_int_equal(spoke_url_decode("a%2fb%2F", 8, out, 9, &len), SPOKE_OK);
	assert_string_equal(out, "a/b/");
	assert_int_equal(len, 4);
}

TEST(encoding_is_cut_to_size_and_returns_full_length)
{
	static const char whole[] = "a+%2Fb%00";

	for (size_t size = 0; size < sizeof(whole) + 2; size++) {
		char out[sizeof(whole) + 3];
		size_t kept = size < sizeof(whole) ? size : sizeof(whole);

		memset(out, '#', sizeof(out));
		assert_int_equal(spoke_url_encode("a /b\0", 5, out, size), sizeof(whole) - 1);
		assert_int_equal(out[kept], '#');
		if (size > 0)
			assert_memory_equal(out, whole, kept - 1);
	}
}
