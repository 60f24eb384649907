/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with ids of a Dubbo peer that is not spoke: it says nothing of itself, and cancels
 * nothing. */
#include "cluster/provider/parts.h"
#include "cluster/serve/dedupe.h"
#include "tests/cluster/filter/filterrig.h"
#include "tests/cluster/peer.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"
#include "transport/conn/link.h"
#include "transport/wire/dubbo/dubbo.h"
#include "transport/wire/message.h"

#include <string.h>

#define AT "127.0.0.1:20880"

static struct {
	struct peer peer;
	struct peer_conn conn;
	uint64_t asked;
	/* The last reply. */
	unsigned replies;
	uint64_t id;
	int error;
	char text[256];
	unsigned events; /* that no program but spoke knows */
} java;

static int set_up(void **state)
{
	const struct spoke_provider_options with = { .dedupe_ns = 10 * SECOND };

	if (filterrig_set_up(state))
		return 1;
	assert_int_equal(filterrig_begin(&with), 0);
	memset(&java, 0, sizeof(java));
	peer_init(&java.peer, &rig.world);
	peer_open(&java.peer, &java.conn, peer_connect(&java.peer, AT), &spokei_wire_dubbo);
	filterrig_pass(10 * MS);
	return 0;
}

static int tear_down(void **state)
{
	peer_close(&java.conn);
	peer_fini(&java.peer);
	filterrig_answer_all();
	return filterrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	struct spoke_span text = message->error_text;

	(void)arg;
	(void)conn;
	java.events += message->kind == SPOKEI_EVENT;
	if (message->kind != SPOKEI_REPLY)
		return;
	java.replies++;
	java.id = message->id;
	java.error = message->error;
	if (message->error == SPOKE_OK && spoke_value_str(message->value, &text))
		text.len = 0;
	memset(java.text, 0, sizeof(java.text));
	if (text.len > 0)
		memcpy(java.text, text.data, text.len < sizeof(java.text) ? text.len : 255);
}

static void pass(uint64_t ns)
{
	for (uint64_t end_ns = rig.world.now_ns + ns; rig.world.now_ns < end_ns;) {
		filterrig_pass(MS);
		peer_read(&java.conn, take, NULL);
	}
}

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

/* Writes a request whose attachments have this value as the id, and what follows in the map. */
static void put(const char *method, struct spoke_value attachments, int64_t timeout_ms)
{
	unsigned char memory[64];
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.two_way = true,
		.codec = SPOKEI_CODEC_HESSIAN2,
		.id = ++java.asked,
		.service = span_of("S"),
		.version = span_of("1.0"),
		.method = span_of(method),
		.arg_count = 1,
		.attachments = attachments,
		.timeout_ms = timeout_ms,
	};
	struct spoke_builder builder;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "hello");
	assert_int_equal(spoke_builder_finish(&builder, &message.args), 0);
	peer_put(&java.conn, &message);
	assert_int_equal(peer_write(&java.conn, SIZE_MAX), 0);
}

static void ask(const char *method, const char *id, int64_t timeout_ms)
{
	unsigned char memory[128];
	struct spoke_builder builder;
	struct spoke_value map;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, "spoke.id");
	spoke_pack_text(&builder, id);
	assert_int_equal(spoke_builder_finish_value(&builder, &map), 0);
	put(method, map, timeout_ms);
}

/* Asks with an id that is no text. */
static void ask_oddly(void (*pack)(struct spoke_builder *builder))
{
	unsigned char memory[256];
	struct spoke_builder builder;
	struct spoke_value map;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, "spoke.id");
	pack(&builder);
	assert_int_equal(spoke_builder_finish_value(&builder, &map), 0);
	put("echo", map, 1000);
	pass(10 * MS);
}

TEST(peer_of_another_language_gets_the_answer_of_the_first)
{
	ask("echo", "16fd2706-8baf-433b-82eb-8c7fada847da", 1000);
	pass(10 * MS);
	assert_int_equal(java.replies, 1);
	assert_string_equal(java.text, "hello");
	ask("echo", "16fd2706-8baf-433b-82eb-8c7fada847da", 1000);
	pass(10 * MS);
	assert_int_equal(java.replies, 2);
	assert_int_equal(java.id, 2);
	assert_string_equal(java.text, "hello");
	assert_int_equal(rig.handled, 1);
}

TEST(repeat_that_nobody_cancels_ends_with_its_own_deadline)
{
	ask("later", "a", 60000);
	pass(SECOND);
	ask("later", "a", 2000);
	pass(1950 * MS);
	assert_int_equal(java.replies, 0);
	pass(100 * MS);
	assert_int_equal(java.replies, 1);
	assert_int_equal(java.id, 2);
	assert_int_not_equal(java.error, SPOKE_OK);
	assert_non_null(strstr(java.text, "the deadline passed"));
	filterrig_answer(0);
	pass(10 * MS);
	assert_int_equal(java.replies, 2);
	assert_int_equal(java.id, 1);
	assert_int_equal(java.error, SPOKE_OK);
	assert_int_equal(rig.handled, 1);
}

TEST(repeat_without_a_deadline_waits_for_the_answer)
{
	ask("later", "a", 60000);
	pass(SECOND);
	ask("later", "a", 0);
	pass(30 * SECOND);
	assert_int_equal(java.replies, 0);
	filterrig_answer(0);
	pass(10 * MS);
	assert_int_equal(java.replies, 2);
	assert_int_equal(rig.handled, 1);
}

static void pack_number(struct spoke_builder *builder)
{
	spoke_pack_i64(builder, 7);
}

static void pack_nothing(struct spoke_builder *builder)
{
	spoke_pack_nil(builder);
}

static void pack_list(struct spoke_builder *builder)
{
	spoke_pack_array(builder, 1);
	spoke_pack_text(builder, "a");
}

static void pack_empty(struct spoke_builder *builder)
{
	spoke_pack_text(builder, "");
}

static void pack_long(struct spoke_builder *builder)
{
	spoke_pack_text(builder,
			"01234567890123456789012345678901234567890123456789012345678901234");
}

TEST(malformed_ids_are_refused_and_the_connection_is_kept)
{
	static void (*const packs[])(struct spoke_builder * builder) = {
		pack_number, pack_nothing, pack_list, pack_empty, pack_long,
	};

	for (unsigned i = 0; i < sizeof(packs) / sizeof(packs[0]); i++) {
		ask_oddly(packs[i]);
		assert_int_equal(java.replies, i + 1);
		assert_int_equal(java.error, SPOKE_EREMOTE);
		assert_non_null(strstr(java.text, "not a text of 1 to 64 bytes"));
	}
	assert_int_equal(rig.handled, 0);
	assert_int_equal(rig.provider->dedupe->table.ids.count, 0);
	ask("echo", "a", 1000);
	pass(10 * MS);
	assert_string_equal(java.text, "hello");
	assert_false(java.conn.ended);
}

TEST(peer_of_another_language_is_not_told_the_instance)
{
	ask("echo", "a", 1000);
	pass(10 * MS);
	assert_int_equal(java.replies, 1);
	assert_int_equal(java.events, 0);
}
