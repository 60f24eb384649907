/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that behave as real Java ones (Dubbo 2.7 and 3.2), byte by byte. */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"

#include "transport/wire/dubbo/dubbo.h"

#include <spoke/call.h>

#include <stdio.h>
#include <string.h>

#define HEAD 16u
#define SECOND_AT "127.0.0.1:20881"
#define CALLS 50u

/* How a provider answers. */
enum manner {
	ECHO,      /* requests with null, heartbeats in their own serialization */
	EXHAUSTED, /* requests with status 100 and a text in hessian2 */
	PUZZLED,   /* heartbeats with status 40 and a text in hessian2, as 3.2 answers msgpack */
	MUTE,
};

struct java {
	enum manner manner;
	int listener;
	struct peer_conn conn;
	unsigned connections;
	unsigned requests;
	unsigned probes[32]; /* by serialization */
	unsigned kinds[SPOKEI_EVENT + 1];
	uint64_t last_id; /* of the last request */
};

static struct java javas[2];

/* --- the provider */

static void put_bytes(struct java *java, const void *bytes, size_t len)
{
	peer_put_bytes(&java->conn, (struct spoke_span){ bytes, len });
	(void)peer_write(&java->conn, SIZE_MAX);
}

static void send_frame(struct java *java, unsigned flags, unsigned status, uint64_t id,
		       const char *body, size_t len)
{
	unsigned char frame[256] = { 0xda, 0xbb, (unsigned char)flags, (unsigned char)status };

	assert_true(len < sizeof(frame) - HEAD);
	for (unsigned i = 0; i < 8; i++)
		frame[4 + i] = (unsigned char)(id >> (56 - 8 * i));
	frame[15] = (unsigned char)len;
	memcpy(frame + HEAD, body, len);
	put_bytes(java, frame, HEAD + len);
}

/* The beginning of Java's text, which is longer. */
static const char exhausted[] = "\x30\x33Server side(127.0.0.1,20880) thread pool is exhaust";
static const char puzzled[] = "\x1e"
			      "Fail to decode request due to:";

static void answer_request(struct java *java, uint64_t id)
{
	java->requests++;
	java->last_id = id;
	if (java->manner == EXHAUSTED)
		send_frame(java, 0x02, 100, id, exhausted, sizeof(exhausted) - 1);
	else if (java->manner == ECHO)
		send_frame(java, 0x1b, 20, id, "\x02", 1);
}

static void answer_probe(struct java *java, const struct spokei_message *message)
{
	const char *null = message->codec == 2 ? "\x4e" : "\xc0";

	java->probes[message->codec]++;
	if (java->manner == PUZZLED)
		send_frame(java, 0x02, 40, message->id, puzzled, sizeof(puzzled) - 1);
	else if (java->manner != MUTE)
		send_frame(java, 0x20 | message->codec, 20, message->id, null, 1);
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	struct java *java = arg;

	(void)conn;
	java->kinds[message->kind]++;
	if (message->kind == SPOKEI_REQUEST)
		answer_request(java, message->id);
	else if (message->kind == SPOKEI_PROBE)
		answer_probe(java, message);
}

/* Accepts a connection, reads, answers, and closes after the consumer's end. */
static void serve(struct java *java)
{
	int fd = -1;

	if (java->conn.fd < 0 && java->listener >= 0)
		fd = peer_accept(&linkrig.peer, java->listener);
	if (fd >= 0) {
		java->connections++;
		peer_open(&linkrig.peer, &java->conn, fd, &spokei_wire_dubbo);
	}
	if (java->conn.fd < 0)
		return;
	peer_read(&java->conn, take, java);
	if (java->conn.ended)
		peer_close(&java->conn);
}

static void pass(uint64_t ns)
{
	for (uint64_t end_ns = linkrig.world.now_ns + ns; linkrig.world.now_ns < end_ns;) {
		linkrig_pass(5 * MS);
		serve(&javas[0]);
		serve(&javas[1]);
	}
}

static void provide(struct java *java, const char *at, enum manner manner)
{
	java->listener = peer_listen(&linkrig.peer, at);
	assert_true(java->listener >= 0);
	java->manner = manner;
}

static void note(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	linkrig.told[event->change]++;
}

/* Connects a consumer to the first provider, or to both. */
static void consume(bool both, const struct spoke_consumer_options *options)
{
	static const char *const more[] = { "dubbo://" SECOND_AT "/demo.Echo" };
	struct spoke_consumer_options with = *options;

	with.url = "dubbo://" LINKRIG_AT "/demo.Echo";
	with.changed = note;
	with.more_urls = more;
	with.more_count = both;
	assert_int_equal(spoke_consumer_new(linkrig.engine, &with, &linkrig.consumer), 0);
	pass(50 * MS);
}

/* --- calls */

static struct {
	unsigned begun;
	unsigned ok;
	int error; /* of the last call that failed */
	char text[80];
} calls;

static void call_ended(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error == SPOKE_OK)
		calls.ok++;
	else
		calls.error = result->error;
	(void)snprintf(calls.text, sizeof(calls.text), "%.*s", (int)result->error_text.len,
		       (const char *)result->error_text.data);
}

static void call(void)
{
	static struct spoke_method *method;

	if (calls.begun++ == 0)
		assert_int_equal(spoke_consumer_method(linkrig.consumer, "echo", NULL, &method), 0);
	assert_int_equal(spoke_call(method, (struct spoke_span){ NULL, 0 }, NULL, call_ended, NULL,
				    NULL),
			 0);
}

static int set_up(void **state)
{
	memset(&calls, 0, sizeof(calls));
	memset(javas, 0, sizeof(javas));
	javas[0].conn.fd = -1;
	javas[1].conn.fd = -1;
	javas[0].listener = -1;
	javas[1].listener = -1;
	return linkrig_set_up(state);
}

static int tear_down(void **state)
{
	peer_close(&javas[0].conn);
	peer_close(&javas[1].conn);
	return linkrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

/* --- errors in hessian2 */

TEST(exhausted_pool_loses_no_call)
{
	provide(&javas[0], LINKRIG_AT, EXHAUSTED);
	provide(&javas[1], SECOND_AT, ECHO);
	consume(true, &(struct spoke_consumer_options){ .heartbeat_ns = SPOKE_OFF });
	for (unsigned i = 0; i < CALLS; i++) {
		call();
		pass(20 * MS);
	}
	assert_int_equal(calls.ok, CALLS);
	assert_true(javas[0].requests > 0);
	assert_int_equal(linkrig_stat(SPOKE_STAT_BAD_REPLIES), 0);
}

TEST(status_in_hessian2_is_error_of_its_call)
{
	static const struct {
		unsigned status;
		int error;
	} rows[] = { { 40, SPOKE_EBADREQUEST }, { 70, SPOKE_ESERVER }, { 80, SPOKE_ESERVER } };

	provide(&javas[0], LINKRIG_AT, MUTE);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SPOKE_OFF });
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		call();
		pass(20 * MS);
		send_frame(&javas[0], 0x02, rows[i].status, javas[0].last_id, puzzled,
			   sizeof(puzzled) - 1);
		pass(20 * MS);
		assert_int_equal(calls.error, rows[i].error);
		assert_string_equal(calls.text, "Fail to decode request due to:");
	}
	assert_int_equal(javas[0].connections, 1);
}

/* --- cycles */

/* A list that contains itself. */
#define CYCLE "\x79Q\x90"

static void reply_with_cycle(bool ends_well, const struct spoke_consumer_options *options)
{
	provide(&javas[0], LINKRIG_AT, MUTE);
	consume(false, options);
	call();
	call();
	pass(20 * MS);
	send_frame(&javas[0], 0x02, 20, javas[0].last_id, "\x91" CYCLE, sizeof("\x91" CYCLE) - 1);
	pass(20 * MS);
	assert_int_equal(calls.ok, ends_well);
	if (!ends_well) {
		assert_int_equal(calls.error, SPOKE_EBADREPLY);
		assert_string_equal(calls.text, spoke_strerror(SPOKE_ECYCLE));
	}
	/* The other call goes on. */
	send_frame(&javas[0], 0x02, 20, javas[0].last_id - 1, "\x92", 1);
	pass(20 * MS);
	assert_int_equal(calls.ok, ends_well + 1);
	assert_int_equal(javas[0].connections, 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 0);
}

TEST(cycle_in_reply_ends_only_its_call)
{
	reply_with_cycle(false, &(struct spoke_consumer_options){ .heartbeat_ns = SPOKE_OFF });
}

TEST(cycle_in_reply_is_accepted_if_allowed)
{
	reply_with_cycle(true, &(struct spoke_consumer_options){ .heartbeat_ns = SPOKE_OFF,
								 .values_cycles = true });
}

/* --- heartbeats */

TEST(heartbeat_answered_with_status_40_is_sign_of_life)
{
	provide(&javas[0], LINKRIG_AT, PUZZLED);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SECOND });
	pass(60 * SECOND);
	assert_int_equal(javas[0].connections, 1);
	assert_in_range(javas[0].probes[2], 50, 61);
	assert_int_equal(linkrig.told[SPOKE_LINK_SUSPECT], 0);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 0);
	assert_int_equal(spoke_consumer_ready(linkrig.consumer), 1);
}

TEST(heartbeats_use_codec_of_peer)
{
	provide(&javas[0], LINKRIG_AT, ECHO);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SECOND });
	pass(3 * SECOND);
	assert_in_range(javas[0].probes[2], 2, 4);
	assert_int_equal(javas[0].probes[27], 0);
	call();
	pass(3 * SECOND);
	assert_in_range(javas[0].probes[2], 2, 4);
	assert_in_range(javas[0].probes[27], 2, 3);
	javas[0].manner = EXHAUSTED; /* its errors are in its own serialization */
	javas[0].probes[2] = 0;
	call();
	pass(3 * SECOND);
	assert_in_range(javas[0].probes[2], 2, 4);
}

/* Plays a provider that sends a valid frame on each connection and then nonsense. */
TEST(broken_protocol_is_followed_by_backoff)
{
	provide(&javas[0], LINKRIG_AT, ECHO);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SECOND });
	for (unsigned i = 0; i < 3000; i++) {
		pass(20 * MS);
		if (javas[0].conn.fd >= 0)
			put_bytes(&javas[0], "nonsense", 8);
	}
	assert_in_range(javas[0].connections, 8, 16);
	/* The backoff begins again once a connection has been open for long. */
	pass(100 * SECOND);
	assert_int_equal(spoke_consumer_ready(linkrig.consumer), 1);
	put_bytes(&javas[0], "nonsense", 8);
	pass(200 * MS);
	assert_int_equal(spoke_consumer_ready(linkrig.consumer), 1);
}

/* A Java consumer sends nothing before its first call or its own interval of 60 s. */
TEST(silent_java_consumer_is_kept_for_4_minutes)
{
	static const unsigned char probe[] = "\xda\xbb\xe2\0\0\0\0\0\0\0\0\x17\0\0\0\x01\x4e";

	linkrig_provide("dubbo", &(struct spoke_provider_options){ .heartbeat_ns = SECOND });
	linkrig_connect();
	linkrig_pass(230 * SECOND);
	assert_int_equal(spoke_provider_connections(linkrig.provider), 1);
	linkrig_write(probe, sizeof(probe) - 1);
	linkrig_pass(10 * MS);
	linkrig_read();
	assert_int_equal(linkrig.read[SPOKEI_PROBE_ANSWER], 1);
}

/* --- drains */

static void send_readonly(struct java *java)
{
	put_bytes(java, "\xda\xbb\xa2\0\0\0\0\0\0\0\0\0\0\0\0\x02\x01R", 18);
}

static void send_writable(struct java *java)
{
	put_bytes(java, "\xda\xbb\xa2\0\0\0\0\0\0\0\0\0\0\0\0\x02\x01W", 18);
}

TEST(idle_link_of_draining_provider_is_closed)
{
	provide(&javas[0], LINKRIG_AT, ECHO);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SECOND });
	send_readonly(&javas[0]);
	pass(20 * MS);
	assert_int_equal(javas[0].conn.fd, -1);
	assert_int_equal(javas[0].kinds[SPOKEI_READONLY], 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_READONLY], 1);
	assert_int_equal(linkrig.told[SPOKE_LINK_CLOSED], 1);
}

TEST(last_reply_ends_link_of_draining_provider)
{
	provide(&javas[0], LINKRIG_AT, MUTE);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SPOKE_OFF });
	call();
	pass(20 * MS);
	send_readonly(&javas[0]);
	pass(500 * MS);
	assert_true(javas[0].conn.fd >= 0);
	send_frame(&javas[0], 0x1b, 20, javas[0].last_id, "\x02", 1);
	pass(20 * MS);
	assert_int_equal(calls.ok, 1);
	assert_int_equal(javas[0].conn.fd, -1);
}

TEST(provider_that_takes_readonly_back_keeps_link)
{
	provide(&javas[0], LINKRIG_AT, MUTE);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SPOKE_OFF });
	call();
	pass(20 * MS);
	send_readonly(&javas[0]);
	pass(20 * MS);
	assert_int_equal(spoke_consumer_ready(linkrig.consumer), 0);
	send_writable(&javas[0]);
	send_frame(&javas[0], 0x1b, 20, javas[0].last_id, "\x02", 1);
	pass(SECOND);
	assert_int_equal(calls.ok, 1);
	assert_int_equal(spoke_consumer_ready(linkrig.consumer), 1);
	assert_int_equal(javas[0].connections, 1);
}

/* A provider in its shutdown accepts connections and sends READONLY on each. */
TEST(draining_provider_is_reconnected_with_backoff)
{
	provide(&javas[0], LINKRIG_AT, ECHO);
	consume(false, &(struct spoke_consumer_options){ .heartbeat_ns = SECOND });
	for (unsigned i = 0; i < 500; i++) {
		pass(20 * MS);
		if (javas[0].conn.fd >= 0)
			send_readonly(&javas[0]);
	}
	assert_in_range(javas[0].connections, 5, 12);
	pass(30 * SECOND);
	call();
	pass(SECOND);
	assert_int_equal(calls.ok, 1);
}
