/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes from the callback that reports a provider's connections. */
#include "tests/cluster/provider/pushrig.h"
#include "tests/support/test.h"

#include <string.h>

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

RUNNER(stage_run);

TEST(changed_callback_can_push_to_new_peer)
{
	static const struct spoke_provider_options telling = { .changed = push_to_it };
	struct stage *stage = stage_bare(state);
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

TEST(changed_callback_can_push_and_free_provider)
{
	static const struct spoke_provider_options telling = { .changed = free_it };
	struct stage *stage = stage_bare(state);
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
