/* SPDX-License-Identifier: Apache-2.0 */
/* The slot of a handshake, for which another one waits: when it is given up, and to whom. */
#include "core/engine/engine.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

#define AT "127.0.0.1:20881"

static struct tlsrig rig;

/* The stream that waits. */
static struct {
	struct spokei_stream stream;
	int fd; /* its peer's */
	int status;
} other;

static unsigned turns;

static void other_ready(struct spoke_watch *ready, unsigned io)
{
	struct spokei_stream *stream = &other.stream;

	(void)ready;
	(void)io;
	if (other.status == TLSRIG_OPENING)
		other.status = stream->kind->open(stream);
	spokei_stream_watch(stream, other.status == TLSRIG_OPENING
					    ? stream->kind->wants(stream, SPOKE_IO_READ)
					    : 0);
}

/* A handshake takes the only slot, and another one waits. `rate`: of those that begin. */
static void begin_both(uint32_t rate)
{
	static const struct tlsrig_setting accepting = { .accepts = true,
							 .verify = SPOKE_TLS_VERIFY_REQUIRED };
	const struct spokei_tls_limits limits = { .handshakes_max = 1,
						  .handshakes_per_second = rate };
	unsigned char hello[4096];
	size_t len;
	int fds[2];

	tlsrig_begin(&rig, &accepting);
	spokei_tls_limit(rig.tls, &limits);
	tlsrig_step(&rig);
	len = tlsrig_made(&rig, hello, sizeof(hello));
	tlsrig_send(&rig, hello, len);
	scene_pair(&rig.world, &rig.faulty.env, AT, fds);
	other.fd = fds[0];
	other.status = TLSRIG_OPENING;
	spokei_engine_refresh(rig.engine);
	spokei_stream_init(&other.stream, rig.engine, spokei_tls_kind(rig.tls), fds[1],
			   other_ready);
	other.stream.accepted = true;
	other_ready(&other.stream.watch, SPOKE_IO_READ);
	scene_write(&rig.process.env, other.fd, hello, len);
	tlsrig_run(&rig);
	assert_false(spokei_list_empty(&rig.tls->standing));
}

static void end_both(void)
{
	scene_hang_up(&rig.faulty.env, other.fd);
	spokei_engine_refresh(rig.engine);
	spokei_stream_close(&other.stream);
	tlsrig_end(&rig);
}

static uint64_t begun(void)
{
	return spoke_stat_get(rig.engine, SPOKE_STAT_HANDSHAKES);
}

/* Lets time pass until that long after the first handshake began. */
static void run_until(uint64_t begun_ns, uint64_t after_ms)
{
	spokei_world_run(&rig.world, begun_ns + after_ms * TLSRIG_MS);
}

/* Takes all beginnings that there are. */
static void use_up(uint32_t count)
{
	spokei_engine_refresh(rig.engine);
	assert_true(spokei_bucket_take(&rig.tls->begins, count, rig.engine->begin_ns));
}

static void count_turn(struct spokei_world_process *process)
{
	(void)process;
	turns++;
}

TEST(silent_handshake_keeps_its_slot_until_another_may_begin)
{
	uint64_t begun_ns;

	begin_both(2);
	begun_ns = tlsrig_link(&rig)->handshake->progress_ns;
	run_until(begun_ns, 900);
	use_up(2);
	run_until(begun_ns, 990);
	turns = 0;
	rig.process.turned = count_turn;
	run_until(begun_ns, 1380);
	assert_int_equal(rig.status, TLSRIG_OPENING);
	assert_in_range(turns, 0, 3); /* one looks, and none each tick */
	run_until(begun_ns, 1420);
	rig.process.turned = NULL;
	assert_int_equal(rig.status, -EPROTO);
	assert_int_equal(begun(), 2);
	end_both();
}

TEST(free_slot_is_taken_as_soon_as_another_may_begin)
{
	begin_both(10);
	use_up(9);
	tlsrig_hang_up(&rig);
	assert_int_equal(rig.status, -ECONNRESET);
	assert_int_equal(begun(), 1);
	spokei_world_run(&rig.world, rig.world.now_ns + 120 * TLSRIG_MS);
	assert_int_equal(begun(), 2);
	end_both();
}

TEST(late_turn_does_not_count_as_silence_of_a_handshake)
{
	uint64_t late_ns;

	begin_both(0);
	spokei_world_stall(&rig.world, 2000 * TLSRIG_MS);
	late_ns = rig.world.now_ns;
	run_until(late_ns, 900);
	assert_int_equal(rig.status, TLSRIG_OPENING);
	run_until(late_ns, 1100);
	assert_int_equal(rig.status, -EPROTO);
	assert_int_equal(begun(), 2);
	end_both();
}

/* Has the peer send bytes, of which the loop learns only after the handshake was to give way. */
static void send_unread(const unsigned char *bytes, size_t len)
{
	run_until(tlsrig_link(&rig)->handshake->progress_ns, 990);
	scene_write(&rig.process.env, rig.fd, bytes, len);
	spokei_world_stall(&rig.world, 20 * TLSRIG_MS);
	spokei_engine_refresh(rig.engine);
	rig.tls->ration.due(&rig.tls->ration);
	tlsrig_run(&rig);
}

/* All of the peer's messages, or all but the last one. */
TEST(unread_message_of_a_silent_handshake_keeps_its_slot)
{
	for (unsigned cut = 0; cut < 2; cut++) {
		unsigned char bytes[16384];

		begin_both(0);
		tlsrig_hear(&rig);
		tlsrig_step(&rig);
		send_unread(bytes, tlsrig_made(&rig, bytes, sizeof(bytes)) - cut);
		assert_int_equal(rig.status, cut ? TLSRIG_OPENING : 0);
		assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_HANDSHAKES_LATE), 0);
		assert_int_equal(begun(), cut ? 1 : 2);
		end_both();
	}
}

TEST(unread_bytes_of_an_unfinished_message_do_not_keep_a_slot)
{
	begin_both(0);
	send_unread((const unsigned char *)"\x17\3\3", 3);
	assert_int_equal(rig.status, -EPROTO);
	assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "completed no message for 1 s"));
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_HANDSHAKES_LATE), 1);
	assert_int_equal(begun(), 2);
	end_both();
}
