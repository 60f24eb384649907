/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of handshakes on a thread, and what happens to their stream meanwhile. */
#include "core/engine/engine.h"
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <errno.h>
#include <string.h>

static const struct tlsrig_setting accepting = { .accepts = true };
static const struct tlsrig_setting connecting = { .accepts = false };

static struct tlsrig rig;
static unsigned char bytes[262144];

static size_t make_hello(void)
{
	tlsrig_step(&rig);
	return tlsrig_made(&rig, bytes, sizeof(bytes));
}

/* Begins a step that its thread does not take yet. */
static void begin_waiting(const struct tlsrig_setting *setting)
{
	tlsrig_begin(&rig, setting);
	rig.process.background_waits = true;
	if (setting->accepts)
		tlsrig_send(&rig, bytes, make_hello());
	else
		tlsrig_run(&rig);
	assert_int_equal(rig.status, TLSRIG_OPENING);
	assert_int_equal(rig.tls->away, 1);
	spokei_engine_refresh(rig.engine);
}

static void let_threads_work(void)
{
	rig.process.background_waits = false;
	rig.process.env.loop->wake(rig.engine->loop);
	tlsrig_run(&rig);
}

TEST(stream_asks_for_nothing_until_its_step_is_over)
{
	unsigned turns;

	begin_waiting(&accepting);
	turns = rig.turns;
	assert_int_equal(rig.stream.io, 0);
	tlsrig_send(&rig, bytes, 100); /* nonsense, which is read later */
	assert_int_equal(rig.turns, turns);
	assert_int_equal(rig.stream.kind->flush(&rig.stream), 0);
	assert_int_equal(rig.answered, 0);
	let_threads_work();
	assert_int_equal(rig.tls->away, 0);
	tlsrig_hear(&rig);
	assert_true(rig.answered > 0);
	tlsrig_hang_up(&rig);
	assert_int_equal(rig.status, -EPROTO);
	tlsrig_end(&rig);
}

TEST(stream_opens_when_its_thread_is_late)
{
	for (unsigned accepts = 0; accepts < 2; accepts++) {
		begin_waiting(accepts ? &accepting : &connecting);
		let_threads_work();
		tlsrig_open(&rig);
		tlsrig_end(&rig);
	}
}

TEST(stream_may_be_closed_during_its_step)
{
	for (unsigned accepts = 0; accepts < 2; accepts++) {
		char host[] = TLSRIG_HOST;

		begin_waiting(accepts ? &accepting : &(struct tlsrig_setting){ .host = host });
		spokei_stream_close(&rig.stream);
		memset(host, 'x', sizeof(host) - 1);
		assert_int_equal(rig.tls->slots, 0);
		assert_int_equal(rig.tls->away, 1);
		let_threads_work();
		assert_int_equal(rig.tls->away, 0);
		tlsrig_end(&rig);
	}
}

TEST(owner_may_be_freed_during_a_step)
{
	for (unsigned retires = 0; retires < 2; retires++) {
		begin_waiting(&accepting);
		spokei_stream_close(&rig.stream);
		spokei_tls_free(rig.tls);
		rig.tls = NULL;
		if (!retires)
			let_threads_work();
		tlsrig_end(&rig); /* the engine ends steps that have not begun */
	}
}

/* A forked child ends works that a thread of its parent has. */
static struct spoke_work *held;

static int hold(void *loop, struct spoke_work *work)
{
	(void)loop;
	held = work;
	return 0;
}

TEST(child_leaves_what_a_thread_of_its_parent_has)
{
	struct spokei_tls_pipe was;

	tlsrig_begin(&rig, &accepting);
	rig.faulty.loop.offload = hold;
	tlsrig_send(&rig, bytes, make_hello());
	held->run(held);
	was = tlsrig_link(&rig)->handshake->step.pipe;
	held->status = -ECANCELED;
	held->done(held);
	assert_null(tlsrig_link(&rig)->pipe.ssl);
	assert_int_equal(rig.status, TLSRIG_OPENING);
	spokei_engine_refresh(rig.engine);
	spokei_stream_close(&rig.stream);
	SSL_free(was.ssl); /* as the parent does */
	spokei_buffer_fini(&was.raw);
	spokei_buffer_fini(&was.lag);
	tlsrig_end(&rig);
}

static int refuse(void *loop, struct spoke_work *work)
{
	(void)loop;
	(void)work;
	return -EAGAIN;
}

TEST(loop_takes_steps_that_no_thread_takes)
{
	for (unsigned accepts = 0; accepts < 2; accepts++) {
		tlsrig_begin(&rig, accepts ? &accepting : &connecting);
		rig.faulty.loop.offload = refuse;
		tlsrig_open(&rig);
		assert_int_equal(rig.tls->away, 0);
		tlsrig_peer_write(&rig, "x", 1);
		tlsrig_pass(&rig);
		assert_int_equal(rig.got_len, 1);
		tlsrig_end(&rig);
	}
}
