/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of the HTTP wire: status, headers and body of each kind of reply, byte by byte. */
#include "tests/support/test.h"
#include "transport/wire/http/http.h"
#include "transport/wire/http/parts.h"

#include "tests/core/memory.h"

#include <spoke/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX 65536u
#define REST                                                                                       \
	"Content-Type: application/json\r\nCache-Control: no-store\r\n"                            \
	"X-Content-Type-Options: nosniff\r\nContent-Length: "

static const struct spokei_http_rules rules = { "https://a.example, https://b.example", "" };
static const struct spokei_wire_limits limits = { .frame_max = 32768, .http = &rules };

static struct spoke_span span(const char *text)
{
	return spokei_span(text, strlen(text));
}

/* Writes a reply behind other bytes, which must stay. Returns the result; `out` gets the text. */
static int write_reply(const struct spokei_message *message, char out[OUT_MAX])
{
	struct memory memory;
	struct spokei_buffer buffer;
	size_t len;
	int error;

	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, OUT_MAX - 1);
	assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
	error = spokei_wire_http.write(&limits, message, &buffer);
	len = spokei_buffer_len(&buffer);
	assert_memory_equal(spokei_buffer_data(&buffer), "before", 6);
	memcpy(out, spokei_buffer_data(&buffer) + 6, len - 6);
	out[len - 6] = '\0';
	spokei_buffer_fini(&buffer);
	assert_int_equal(memory.bytes, 0);
	return error;
}

static struct spoke_value value(const char *bytes, size_t len)
{
	return (struct spoke_value){ (const unsigned char *)bytes, len };
}

TEST(replies_have_expected_bytes)
{
	const struct {
		struct spokei_message message;
		const char *text;
	} rows[] = {
		{ { .value = value("\xa5world", 6) },
		  "HTTP/1.1 200 OK\r\n" REST "8\r\n\r\n\"world\"\n" },
		{ { .value = { NULL, 0 } }, "HTTP/1.1 200 OK\r\n" REST "5\r\n\r\nnull\n" },
		{ { .id = SPOKEI_HTTP_ID_HEAD, .value = value("\xa5world", 6) },
		  "HTTP/1.1 200 OK\r\n" REST "8\r\n\r\n" },
		{ { .id = SPOKEI_HTTP_ID_LAST, .value = value("\x01", 1) },
		  "HTTP/1.1 200 OK\r\nConnection: close\r\n" REST "2\r\n\r\n1\n" },
		{ { .last = true, .value = value("\x01", 1) },
		  "HTTP/1.1 200 OK\r\nConnection: close\r\n" REST "2\r\n\r\n1\n" },
		{ { .id = SPOKEI_HTTP_ID_OLD, .value = value("\x01", 1) },
		  "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n" REST "2\r\n\r\n1\n" },
		{ { .id = 2u << SPOKEI_HTTP_ID_ORIGIN, .value = value("\x01", 1) },
		  "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://b.example\r\n"
		  "Vary: Origin\r\n" REST "2\r\n\r\n1\n" },
		{ { .value = value("\x01", 1),
		    .attachments = value("\x83\xa1"
					 "a\xa3x\ny\xa3"
					 "b c\xa1z\xa1"
					 "d\x07",
					 15) },
		  "HTTP/1.1 200 OK\r\nSpoke-Attachment-a: x%0Ay\r\n" REST "2\r\n\r\n1\n" },
		{ { .id = SPOKEI_HTTP_ID_CONTINUE }, "HTTP/1.1 100 Continue\r\n\r\n" },
		{ { .id = SPOKEI_HTTP_ID_OPTIONS },
		  "HTTP/1.1 204 No Content\r\nAllow: POST, GET, HEAD, OPTIONS\r\n\r\n" },
		{ { .id = SPOKEI_HTTP_ID_OPTIONS, .error = SPOKE_EUNSUPPORTED },
		  "HTTP/1.1 204 No Content\r\nAllow: POST, OPTIONS\r\n\r\n" },
		{ { .id = 2u << SPOKEI_HTTP_ID_ORIGIN | SPOKEI_HTTP_ID_OPTIONS,
		    .error = SPOKE_EUNSUPPORTED },
		  "HTTP/1.1 204 No Content\r\nAllow: POST, OPTIONS\r\n"
		  "Access-Control-Allow-Methods: POST\r\n"
		  "Access-Control-Allow-Headers: *, Authorization\r\n"
		  "Access-Control-Max-Age: 600\r\n"
		  "Access-Control-Allow-Origin: https://b.example\r\nVary: Origin\r\n\r\n" },
	};
	char out[OUT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_message message = rows[i].message;

		message.kind = SPOKEI_REPLY;
		assert_int_equal(write_reply(&message, out), SPOKE_OK);
		assert_string_equal(out, rows[i].text);
	}
}

TEST(errors_have_status_and_tell_whether_handler_may_have_run)
{
	const struct {
		struct spokei_message message;
		const char *begin;
		const char *body;
	} rows[] = {
		{ { .error = SPOKE_EREMOTE, .error_code = 7 },
		  "HTTP/1.1 500 Internal Server Error\r\n",
		  "{\"error\":\"EREMOTE\",\"code\":7,\"text\":\"t\",\"written\":true}\n" },
		{ { .error = SPOKE_EREMOTE, .error_code = SPOKE_ETYPE },
		  "HTTP/1.1 400 Bad Request\r\n",
		  "{\"error\":\"EREMOTE\",\"code\":-9,\"text\":\"t\",\"written\":true}\n" },
		{ { .error = SPOKE_EREMOTE, .forbidden = true },
		  "HTTP/1.1 403 Forbidden\r\n",
		  "{\"error\":\"EREMOTE\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EFORBIDDEN, .error_code = 4 },
		  "HTTP/1.1 403 Forbidden\r\n",
		  "{\"error\":\"EFORBIDDEN\",\"code\":4,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EFORBIDDEN, .error_code = 13, .forbidden = true },
		  "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n",
		  "{\"error\":\"EFORBIDDEN\",\"code\":13,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EREFUSED, .forbidden = true },
		  "HTTP/1.1 403 Forbidden\r\n",
		  "{\"error\":\"EREFUSED\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EREFUSED },
		  "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n",
		  "{\"error\":\"EREFUSED\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EREFUSED, .error_code = SPOKE_ELIMIT },
		  "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n",
		  "{\"error\":\"EREFUSED\",\"code\":-8,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EEXPIRED },
		  "HTTP/1.1 504 Gateway Timeout\r\n",
		  "{\"error\":\"EEXPIRED\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_ENOSERVICE },
		  "HTTP/1.1 404 Not Found\r\n",
		  "{\"error\":\"ENOSERVICE\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EUNSUPPORTED },
		  "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, OPTIONS\r\n",
		  "{\"error\":\"EUNSUPPORTED\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
		{ { .error = SPOKE_EBADREQUEST, .id = 415u << SPOKEI_HTTP_ID_STATUS },
		  "HTTP/1.1 415 Unsupported Media Type\r\n",
		  "{\"error\":\"EBADREQUEST\",\"code\":0,\"text\":\"t\",\"written\":false}\n" },
	};
	char out[OUT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_message message = rows[i].message;

		message.kind = SPOKEI_REPLY;
		message.error_text = span("t");
		assert_int_equal(write_reply(&message, out), SPOKE_OK);
		assert_memory_equal(out, rows[i].begin, strlen(rows[i].begin));
		assert_non_null(strstr(out, "\r\n\r\n"));
		assert_string_equal(strstr(out, "\r\n\r\n") + 4, rows[i].body);
	}
}

TEST(errors_met_by_the_handler_have_their_status)
{
	static const struct {
		int error;
		int32_t code;
		const char *begin;
	} rows[] = {
		{ SPOKE_EREMOTE, SPOKE_ETOOLARGE, "HTTP/1.1 413 Content Too Large\r\nContent-" },
		{ SPOKE_EREMOTE, SPOKE_EINVAL, "HTTP/1.1 400 Bad Request\r\nContent-" },
		{ SPOKE_EREMOTE, SPOKE_ELIMIT,
		  "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n" },
		{ SPOKE_EREMOTE, SPOKE_ECLOSED,
		  "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n" },
		{ SPOKE_ETIMEOUT, 0, "HTTP/1.1 504 Gateway Timeout\r\nContent-" },
	};
	char out[OUT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct spokei_message message = {
			.kind = SPOKEI_REPLY,
			.error = rows[i].error,
			.error_code = rows[i].code,
		};

		assert_int_equal(write_reply(&message, out), SPOKE_OK);
		assert_memory_equal(out, rows[i].begin, strlen(rows[i].begin));
		assert_non_null(strstr(out, "\"written\":true"));
	}
}

TEST(status_line_names_each_status_of_refused_request)
{
	static const char *const lines[] = {
		"400 Bad Request",
		"403 Forbidden",
		"404 Not Found",
		"405 Method Not Allowed",
		"413 Content Too Large",
		"414 URI Too Long",
		"415 Unsupported Media Type",
		"417 Expectation Failed",
		"421 Misdirected Request",
		"431 Request Header Fields Too Large",
		"501 Not Implemented",
		"505 HTTP Version Not Supported",
	};
	char out[OUT_MAX];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct spokei_message message = { .kind = SPOKEI_REPLY,
						  .error = SPOKE_EBADREQUEST };

		message.id = (uint64_t)strtoul(lines[i], NULL, 10) << SPOKEI_HTTP_ID_STATUS;
		assert_int_equal(write_reply(&message, out), SPOKE_OK);
		*strchr(out, '\r') = '\0';
		assert_string_equal(out + 9, lines[i]);
	}
}

TEST(attachment_whose_name_is_no_token_is_left_out)
{
	struct spokei_message message = { .kind = SPOKEI_REPLY, .value = value("\x01", 1) };
	char packed[4] = "\x81\xa1?\xa0"; /* {"?": ""} */
	char out[OUT_MAX];

	message.attachments = value(packed, sizeof(packed));
	for (int c = 0; c < 256; c++) {
		bool is_token = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
				(c >= 'a' && c <= 'z') ||
				(c > ' ' && c < 127 && strchr("!#$%&'*+-.^_`|~", c));

		packed[2] = (char)c;
		assert_int_equal(write_reply(&message, out), SPOKE_OK);
		assert_int_equal(strstr(out, "Spoke-Attachment-") != NULL, is_token);
	}
}

TEST(long_attachment_or_body_is_too_large_and_leaves_nothing)
{
	char text[40000];
	char out[OUT_MAX];
	struct spokei_message message = { .kind = SPOKEI_REPLY, .value = value("\x01", 1) };

	memset(text, 'a', sizeof(text));
	memcpy(text, "\x81\xa1k\xda\x23\x28", 6); /* {"k": 9,000 bytes} */
	message.attachments = value(text, 9006);
	assert_int_equal(write_reply(&message, out), SPOKE_ETOOLARGE);
	assert_string_equal(out, "");
	memcpy(text, "\xda\x88\xb8", 3); /* 35,000 bytes */
	message.attachments = value(NULL, 0);
	message.value = value(text, 35003);
	assert_int_equal(write_reply(&message, out), SPOKE_ETOOLARGE);
	assert_string_equal(out, "");
}

TEST(requests_cannot_be_written)
{
	struct spokei_message message = { .kind = SPOKEI_REQUEST, .method = span("m") };
	char out[OUT_MAX];

	assert_int_equal(write_reply(&message, out), SPOKE_EUNSUPPORTED);
	assert_string_equal(out, "");
}
