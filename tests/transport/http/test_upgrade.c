/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of WebSocket: which requests are accepted, and the head that accepts them. */
#include "tests/support/test.h"
#include "transport/http/websocket.h"

#include <string.h>

#define KEY "dGhlIHNhbXBsZSBub25jZQ==" /* of RFC 6455, 1.3 */

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, text ? strlen(text) : 0 };
}

static struct spokei_upgrade request(const char *upgrade, const char *connection,
				     const char *version, const char *key)
{
	return (struct spokei_upgrade){ .upgrade = span(upgrade),
					.connection = span(connection),
					.version = span(version),
					.key = span(key) };
}

TEST(accept_is_that_of_the_example_of_the_rfc)
{
	char accept[SPOKEI_UPGRADE_ACCEPT];

	assert_true(spokei_upgrade_accept(span(KEY), accept));
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(key_must_be_base64_of_16_bytes)
{
	static const char *const rows[] = {
		NULL,
		"",
		"dGhlIHNhbXBsZSBub25jZQ",
		"dGhlIHNhbXBsZSBub25jZQ=",
		"dGhlIHNhbXBsZSBub25jZQ===",
		"dGhlIHNhbXBsZSBub25jZQ=a",
		"dGhlIHNhbXBsZSBub25jZQaa",
		"dGhlIHNhbXBsZSBub25jZQa=",
		"dGhlIHNhbXBsZSBub25jZR==",
		"dGhlIHNhbXBsZSBub25j!Q==",
		"dGhlIHNhbXBsZSBub25jZQ==dGhlIHNhbXBsZSBub25jZQ==",
	};
	char accept[SPOKEI_UPGRADE_ACCEPT] = "as before";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_false(spokei_upgrade_accept(span(rows[i]), accept));
		assert_string_equal(accept, "as before");
	}
}

TEST(request_gets_its_status)
{
	static const struct {
		const char *upgrade;
		const char *connection;
		const char *version;
		const char *key;
		int status;
	} rows[] = {
		{ "websocket", "Upgrade", "13", KEY, 101 },
		{ "WebSocket", "keep-alive, Upgrade", "13", KEY, 101 },
		{ "foo,websocket", "upgrade", "13", KEY, 101 },
		{ " websocket\t, h2c", ", ,UPGRADE ,", "13", KEY, 101 },
		{ NULL, "Upgrade", "13", KEY, 426 },
		{ "h2c", "Upgrade", "13", KEY, 426 },
		{ "websockets", "Upgrade", "13", KEY, 426 },
		{ "web socket", "Upgrade", "13", KEY, 426 },
		{ "websocket", NULL, "13", KEY, 400 },
		{ "websocket", "keep-alive", "13", KEY, 400 },
		{ "websocket", "upgraded", "13", KEY, 400 },
		{ "websocket", "Upgrade", NULL, KEY, 400 },
		{ "websocket", "Upgrade", "8", KEY, 426 },
		{ "websocket", "Upgrade", "13, 8", KEY, 426 },
		{ "websocket", "Upgrade", "", KEY, 426 },
		{ "websocket", "Upgrade", "13", NULL, 400 },
		{ "websocket", "Upgrade", "13", "c2hvcnQ=", 400 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_upgrade made = request(rows[i].upgrade, rows[i].connection,
						     rows[i].version, rows[i].key);

		if (spokei_upgrade_check(&made) != rows[i].status)
			fail_msg("row %zu: %d", i, spokei_upgrade_check(&made));
	}
}

TEST(subprotocol_is_found_with_its_case_only)
{
	struct spokei_upgrade made = request("websocket", "Upgrade", "13", KEY);

	assert_false(spokei_upgrade_offers(&made, "chat"));
	made.protocols = span("superchat ,\tspoke.1");
	assert_true(spokei_upgrade_offers(&made, "superchat"));
	assert_true(spokei_upgrade_offers(&made, "spoke.1"));
	assert_false(spokei_upgrade_offers(&made, "chat"));
	assert_false(spokei_upgrade_offers(&made, "Spoke.1"));
}

TEST(head_names_accept_and_chosen_subprotocol)
{
	static const char plain[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
				    "Connection: Upgrade\r\n"
				    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
	static const char chosen[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
				     "Connection: Upgrade\r\n"
				     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
				     "Sec-WebSocket-Protocol: spoke.1\r\n\r\n";
	struct spokei_upgrade made = request("websocket", "Upgrade", "13", KEY);
	char head[SPOKEI_UPGRADE_HEAD_MAX];

	made.protocols = span("a, spoke.1");
	assert_int_equal(spokei_upgrade_head(&made, NULL, head), sizeof(plain) - 1);
	assert_memory_equal(head, plain, sizeof(plain) - 1);
	assert_int_equal(spokei_upgrade_head(&made, "spoke.1", head), sizeof(chosen) - 1);
	assert_memory_equal(head, chosen, sizeof(chosen) - 1);
}

TEST(head_has_room_for_the_longest_subprotocol)
{
	struct spokei_upgrade made = request("websocket", "Upgrade", "13", KEY);
	char name[SPOKEI_UPGRADE_PROTOCOL];
	char head[SPOKEI_UPGRADE_HEAD_MAX];
	size_t without;

	memset(name, 'p', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	made.protocols = span(name);
	without = spokei_upgrade_head(&made, NULL, head);
	assert_int_equal(spokei_upgrade_head(&made, name, head),
			 without + strlen("Sec-WebSocket-Protocol: \r\n") + strlen(name));
}
