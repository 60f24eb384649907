/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes of a provider to its consumers, on every network and wire. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/provider/pushrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/future.h>

#include <string.h>

/* --- pushes of a provider to its consumers, on every network and wire */

static const struct spoke_call_options one_way = { .one_way = true };

/* The error of a consumer without a service; MessagePack-RPC does not carry its kind. */
static int no_service(const struct stage *stage)
{
	return stage->setting->dubbo ? SPOKE_ENOSERVICE : SPOKE_EREMOTE;
}

RUNNER(stage_run);

TEST(push_is_answered)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = stage_push(stage, rig.echo, rig.peer, stage_text(stage, "news"),
					     NULL);

	stage_assert_text(stage_end_of(stage, push), "news");
	assert_true(push->result.written);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_PUSHES), 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS), 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS_OK), 1);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REQUESTS_OK), 1);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PUSHES), 0);
}

TEST(push_handler_reads_names_and_arguments)
{
	static const struct spoke_method_options options = { .service = "demo.Push" };
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct spoke_method *who;
	struct stage_call *push;
	char text[256];

	assert_int_equal(spoke_provider_method(stage->provider, "who", &options, &who), 0);
	push = stage_push(stage, who, rig.peer, (struct spoke_span){ "\x01\xc0", 2 }, NULL);
	assert_int_equal(stage_end_of(stage, push)->error, SPOKE_OK);
	(void)spoke_value_print(push->result.value, text, sizeof(text));
	assert_string_equal(text, "[\"demo.Push\", \"\", \"\", \"who\", true, 2, true]");
}

TEST(one_way_push_gets_no_answer)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	unsigned before = stage->handled;
	struct stage_call *push = stage_push(stage, rig.echo, rig.peer, stage_text(stage, "x"),
					     &one_way);

	assert_int_equal(stage_end_of(stage, push)->error, SPOKE_OK);
	stage_until(stage, &stage->handled, before + 1);
	pushrig_speak(stage);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REPLIES_LATE), 0);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REPLIES_UNKNOWN), 0);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
}

TEST(push_can_be_answered_later)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct stage_call *first = stage_push(stage, rig.later, rig.peer, stage_text(stage, "1"),
					      NULL);
	struct stage_call *second = stage_push(stage, rig.later, rig.peer, stage_text(stage, "2"),
					       NULL);

	stage_until_held(stage, 2);
	assert_int_equal(spoke_request_from(stage->held[0]).handle, 0);
	stage_answer(stage, 1);
	stage_assert_text(stage_end_of(stage, second), "2");
	assert_int_equal(first->ends, 0);
	stage_answer(stage, 0);
	stage_assert_text(stage_end_of(stage, first), "1");
}

TEST(push_without_handler_is_refused_and_connection_stays)
{
	struct pushrig rig = pushrig_begin_unserved(state);
	struct stage *stage = rig.stage;
	struct stage_call *push = stage_push(stage, rig.echo, rig.peer, stage_no_args(), NULL);
	struct stage_call *quiet = stage_push(stage, rig.echo, rig.peer, stage_no_args(), &one_way);

	assert_int_equal(stage_end_of(stage, push)->error, no_service(stage));
	assert_int_equal(stage_end_of(stage, quiet)->error, SPOKE_OK);
	pushrig_speak(stage);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REQUESTS_UNWANTED), 2);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_ACCEPTED), 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
	assert_int_equal(pushrig_peer(stage).handle, rig.peer.handle);
}

/* --- peers */

TEST(peer_has_its_remote_address)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct spoke_peer peers[2] = { { 7 }, { 7 } };
	char listed[128];
	char seen[128];

	(void)stage_call(stage, stage_method(stage, "later"), stage_no_args());
	stage_until_held(stage, 1);
	assert_int_equal(spoke_request_from(stage->held[0]).handle, rig.peer.handle);
	assert_int_equal(spoke_provider_peers(stage->provider, peers, 0), 1);
	assert_int_equal(peers[0].handle, 7);
	assert_int_equal(spoke_provider_peers(stage->provider, peers, 2), 1);
	assert_int_equal(peers[0].handle, rig.peer.handle);
	assert_int_equal(peers[1].handle, 7);
	assert_true(spoke_request_peer(stage->held[0], seen, sizeof(seen)) > 0);
	assert_int_equal(spoke_peer_print(stage->provider, peers[0], listed, sizeof(listed)),
			 strlen(seen));
	assert_string_equal(listed, seen);
	assert_int_equal(spoke_peer_print(stage->provider, peers[0], listed, 0), 0);
	stage_answer(stage, 0);
}

TEST(push_to_closed_peer_is_unavailable)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	char text[128];

	stage_free_consumer(stage);
	pushrig_until_peers(stage, 0);
	assert_int_equal(stage_try_push(stage, rig.echo, rig.peer, stage_no_args(), NULL),
			 SPOKE_EUNAVAILABLE);
	assert_int_equal(stage_try_push(stage, rig.echo, (struct spoke_peer){ 0 }, stage_no_args(),
					NULL),
			 SPOKE_EUNAVAILABLE);
	assert_int_equal(spoke_peer_print(stage->provider, rig.peer, text, sizeof(text)), 0);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS_REFUSED), 2);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_PUSHES), 0);
	/* The next peer does not get its handle. */
	stage_consume(stage, NULL);
	pushrig_speak(stage);
	assert_true(pushrig_peer(stage).handle != rig.peer.handle);
	assert_int_equal(stage_try_push(stage, rig.echo, rig.peer, stage_no_args(), NULL),
			 SPOKE_EUNAVAILABLE);
}

/* The wire of a connection is unknown before its first byte. */
BARE_STAGE_TEST(silent_connection_is_no_peer)
{
	struct pushrig rig = { .stage = stage };
	size_t count = 7;
	int fd;

	stage_provide(stage, NULL);
	pushrig_methods(&rig);
	fd = pushrig_mute(stage);
	assert_int_equal(spoke_provider_peers(stage->provider, NULL, 0), 0);
	assert_int_equal(spoke_push_all(rig.echo, stage_no_args(), NULL, &count), 0);
	assert_int_equal(count, 0);
	pushrig_close_mute(stage, fd);
}

/* --- callers of pushes */

static struct pushrig *acting;

static void push_and_reply(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;
	struct spoke_peer from = spoke_request_from(request);

	assert_int_equal(from.handle, pushrig_peer(stage).handle);
	(void)stage_push(stage, acting->echo, from, stage_text(stage, "pushed"), NULL);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

/* The peer has a name from its first request on. */
BARE_STAGE_TEST(handler_can_push_to_its_caller)
{
	static const struct spoke_service_options service = { .name = "demo.Own" };
	static const struct spoke_method_options of = { .service = "demo.Own" };
	const struct spoke_handler handler = { .method = "go",
					       .handle = push_and_reply,
					       .arg = stage };
	const struct spoke_consumer_options options = { .handle = stage_handle,
							.handle_arg = stage };
	struct pushrig rig = { .stage = stage };

	stage_provide(stage, NULL);
	stage_consume(stage, &options);
	pushrig_methods(&rig);
	acting = &rig;
	assert_int_equal(spoke_provider_add(stage->provider, &service, &handler, 1), 0);
	(void)stage_call(stage, stage_method_with(stage, "go", &of), stage_no_args());
	stage_until(stage, &stage->ended, 2);
	assert_int_equal(stage->calls[0].result.error, SPOKE_OK);
	stage_assert_text(&stage->calls[1].result, "pushed");
}

static void push_once_more(struct stage_call *call)
{
	(void)stage_push(call->stage, acting->echo, acting->peer, stage_text(call->stage, "again"),
			 NULL);
}

TEST(push_callback_can_push_again)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	unsigned first = stage->call_count;

	acting = &rig;
	stage->calls[first].then = push_once_more;
	(void)stage_push(stage, rig.echo, rig.peer, stage_no_args(), NULL);
	stage_until(stage, &stage->ended, first + 2);
	stage_assert_text(&stage->calls[first + 1].result, "again");
}

static void free_and_push(struct stage_call *call)
{
	struct stage *stage = call->stage;

	stage_free_provider(stage);
	assert_int_equal(stage_try_push(stage, acting->echo, acting->peer, stage_no_args(), NULL),
			 SPOKE_ECLOSED);
	assert_int_equal(spoke_push_all(acting->echo, stage_no_args(), NULL, NULL), SPOKE_ECLOSED);
}

/* The provider and its methods remain valid until the callback returns. */
TEST(push_after_free_is_refused)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	unsigned first = stage->call_count;

	acting = &rig;
	stage->calls[first].then = free_and_push;
	(void)stage_push(stage, rig.echo, rig.peer, stage_no_args(), NULL);
	stage_end_all(stage);
	assert_int_equal(stage->calls[first].result.error, SPOKE_OK);
}

static void call_back(struct stage *stage)
{
	(void)stage_call(stage, stage_method(stage, "echo"), stage_text(stage, "back"));
}

/* Calls and pushes cross on one connection. */
TEST(push_handler_can_call_the_provider)
{
	static const struct spoke_method_options of = { .service = "demo.Push" };
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	unsigned first = stage->call_count;
	struct spoke_method *act;

	stage->in_handler = call_back;
	assert_int_equal(spoke_provider_method(stage->provider, "act", &of, &act), 0);
	(void)stage_push(stage, act, rig.peer, stage_text(stage, "now"), NULL);
	stage_until(stage, &stage->ended, first + 2);
	stage_assert_text(&stage->calls[first + 1].result, "back");
	stage_assert_text(&stage->calls[first].result, "now");
}

/* --- ids are each direction's own */

static struct spokei_conn *served_conn(const struct stage *stage)
{
	return spoke_container_of(stage->provider->link->conns.next, struct spokei_conn, node);
}

static struct spokei_conn *calling_conn(const struct stage *stage)
{
	return spoke_container_of(stage->consumer->link->conns.next, struct spokei_conn, node);
}

/* The next call and the next push get the same id. */
static uint64_t same_id(const struct stage *stage)
{
	uint64_t id = calling_conn(stage)->pendings.next;

	served_conn(stage)->pendings.next = id;
	return id;
}

TEST(reply_never_ends_call_of_other_direction)
{
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct spoke_method *later = stage_method(stage, "later");

	for (unsigned round = 0; round < 2; round++) {
		uint64_t id = same_id(stage);
		struct stage_call *call = stage_call(stage, later, stage_text(stage, "call"));
		struct stage_call *push;

		stage_until_held(stage, 1);
		push = stage_push(stage, rig.later, rig.peer, stage_text(stage, "push"), NULL);
		stage_until_held(stage, 2);
		assert_int_equal(calling_conn(stage)->pendings.next, id + 1);
		assert_int_equal(served_conn(stage)->pendings.next, id + 1);
		/* The provider answers first, then the consumer. */
		stage_answer(stage, round);
		stage_assert_text(stage_end_of(stage, round ? push : call),
				  round ? "push" : "call");
		stage_pass(stage, 2 * MS);
		assert_int_equal((round ? call : push)->ends, 0);
		stage_answer(stage, 0);
		stage_assert_text(stage_end_of(stage, round ? call : push),
				  round ? "call" : "push");
	}
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
}

/* --- to all */

static void other_url(struct stage *stage, char *text, size_t size)
{
	const struct stage_setting *setting = stage->setting;
	struct stage_setting other = *setting;

	other.dubbo = !other.dubbo;
	stage->setting = &other;
	stage_url(stage, 0, "", text, size);
	stage->setting = setting;
}

static void say_hello(struct stage *stage, struct spoke_consumer *consumer)
{
	struct spoke_consumer *own = stage->consumer;

	stage->consumer = consumer;
	pushrig_speak(stage);
	stage->consumer = own;
}

/* A peer with a handler, one without, one of the other wire, a closed one, one that sends nothing.
 */
BARE_STAGE_TEST(push_to_all_reaches_every_ready_peer)
{
	static const struct spoke_method_options versioned = { .service = "demo.Push",
							       .version = "1.0" };
	struct spoke_consumer_options options = { .handle = stage_handle, .handle_arg = stage };
	struct spoke_consumer *more[3];
	struct spoke_method *method;
	struct pushrig rig;
	size_t count = 0;
	unsigned handled;
	char url[256];
	int fd;

	stage_provide(stage, NULL);
	rig = pushrig_on(stage, &options);
	options.url = stage->url;
	more[2] = stage_consumer(stage, &options);
	options.handle = NULL;
	more[0] = stage_consumer(stage, &options);
	options.handle = stage_handle;
	other_url(stage, url, sizeof(url));
	options.url = url;
	more[1] = stage_consumer(stage, &options);
	for (unsigned i = 0; i < LENGTH(more); i++)
		say_hello(stage, more[i]);
	fd = pushrig_mute(stage);
	spoke_consumer_free(more[2]);
	pushrig_until_peers(stage, 3);
	(void)stage_end_of(stage, stage_push(stage, rig.echo, rig.peer, stage_no_args(), NULL));
	handled = stage->handled;
	assert_int_equal(spoke_push_all(rig.echo, stage_no_args(), NULL, &count), 0);
	assert_int_equal(count, 3);
	stage_until(stage, &stage->handled, handled + 2);
	/* Only Dubbo has versions. */
	assert_int_equal(spoke_provider_method(stage->provider, "echo", &versioned, &method), 0);
	assert_int_equal(spoke_push_all(method, stage_no_args(), NULL, &count), 0);
	assert_int_equal(count, stage->setting->dubbo ? 2 : 1);
	stage_until(stage, &stage->handled, handled + 3);
	say_hello(stage, more[0]);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REQUESTS_UNWANTED),
			 stage->setting->dubbo ? 2 : 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_PUSHES),
			 stage->setting->dubbo ? 6 : 5);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS_OK),
			 stage->setting->dubbo ? 6 : 5);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_REPLIES_LATE), 0);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_REQUESTS_OK), 1 + 3);
	pushrig_close_mute(stage, fd);
	spoke_consumer_free(more[0]);
	spoke_consumer_free(more[1]);
}

/* --- refusals */

TEST(method_of_other_side_is_rejected)
{
	static const struct spoke_method_options unnamed = { .timeout_ns = SECOND };
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	struct spoke_method *calls = stage_method(stage, "echo");
	struct spoke_future *future;
	struct spoke_method *method;

	assert_int_equal(stage_try(stage, rig.echo, stage_no_args(), NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_future_start(rig.echo, stage_no_args(), NULL, &future),
			 SPOKE_EINVAL);
	assert_int_equal(stage_try_push(stage, calls, rig.peer, stage_no_args(), NULL),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_push_all(calls, stage_no_args(), NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_provider_method(stage->provider, "x", NULL, &method), SPOKE_EINVAL);
	assert_int_equal(spoke_provider_method(stage->provider, "x", &unnamed, &method),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(stage->server_engine), "no service"));
}

TEST(invalid_push_is_rejected)
{
	static const struct spoke_call_options long_time = { .timeout_ns = UINT64_MAX };
	struct pushrig rig = pushrig_begin(state);
	struct stage *stage = rig.stage;
	size_t count = 7;

	assert_int_equal(stage_try_push(stage, rig.echo, rig.peer, (struct spoke_span){ "\xc1", 1 },
					NULL),
			 SPOKE_ECORRUPT);
	assert_int_equal(stage_try_push(stage, rig.echo, rig.peer, stage_no_args(), &long_time),
			 SPOKE_ERANGE);
	assert_int_equal(spoke_push_all(rig.echo, (struct spoke_span){ "\x91", 1 }, NULL, &count),
			 SPOKE_ETRUNCATED);
	assert_int_equal(count, 7);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CALLS_REFUSED), 3);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_PUSHES), 0);
}

/* --- pushes from the callback that reports a provider's connections */

static struct told {
	struct stage *stage;
	struct spoke_method *echo;
	unsigned connected;
	unsigned closed;
	struct spoke_peer peer;
	struct stage_call *push;
} told;

/* The peer has its name from its first report to its last. */
static void push_to_it(void *arg, const struct spoke_link_event *event)
{
	struct stage *stage = told.stage;
	char text[128];

	(void)arg;
	if (event->change != SPOKE_LINK_CONNECTED && event->change != SPOKE_LINK_CLOSED)
		return;
	assert_int_equal(spoke_peer_print(stage->provider, event->peer, text, sizeof(text)),
			 strlen(event->name));
	assert_string_equal(text, event->name);
	if (event->change == SPOKE_LINK_CONNECTED) {
		told.connected++;
		told.peer = event->peer;
		told.push = stage_push(stage, told.echo, event->peer, stage_text(stage, "welcome"),
				       NULL);
		return;
	}
	told.closed++;
	assert_int_equal(event->peer.handle, told.peer.handle);
	assert_int_equal(stage_try_push(stage, told.echo, event->peer, stage_no_args(), NULL),
			 SPOKE_EUNAVAILABLE);
}

BARE_STAGE_TEST(changed_callback_can_push_to_new_peer)
{
	static const struct spoke_provider_options telling = { .changed = push_to_it };
	const struct spoke_consumer_options options = { .handle = stage_handle,
							.handle_arg = stage };
	struct pushrig rig = { .stage = stage };

	memset(&told, 0, sizeof(told));
	told.stage = stage;
	stage_provide(stage, &telling);
	pushrig_methods(&rig);
	told.echo = rig.echo;
	stage_consume(stage, &options);
	pushrig_speak(stage);
	stage_until(stage, &told.connected, 1);
	stage_assert_text(stage_end_of(stage, told.push), "welcome");
	assert_int_equal(pushrig_peer(stage).handle, told.peer.handle);
	stage_free_consumer(stage);
	stage_until(stage, &told.closed, 1);
	assert_int_equal(stage_try_push(stage, told.echo, told.peer, stage_no_args(), NULL),
			 SPOKE_EUNAVAILABLE);
	assert_int_equal(told.connected, 1);
}

static void free_it(void *arg, const struct spoke_link_event *event)
{
	struct stage *stage = told.stage;

	(void)arg;
	if (event->change != SPOKE_LINK_CONNECTED)
		return;
	told.connected++;
	told.push = stage_push(stage, told.echo, event->peer, stage_no_args(), NULL);
	stage_free_provider(stage);
}

BARE_STAGE_TEST(changed_callback_can_push_and_free_provider)
{
	static const struct spoke_provider_options telling = { .changed = free_it };
	struct pushrig rig = { .stage = stage };

	memset(&told, 0, sizeof(told));
	told.stage = stage;
	stage_provide(stage, &telling);
	pushrig_methods(&rig);
	told.echo = rig.echo;
	stage_consume(stage, NULL);
	(void)stage_call(stage, stage_method(stage, "echo"), stage_no_args());
	stage_until(stage, &told.connected, 1);
	assert_int_equal(stage_end_of(stage, told.push)->error, SPOKE_ECLOSED);
	assert_false(told.push->result.written);
	stage_end_all(stage);
}
