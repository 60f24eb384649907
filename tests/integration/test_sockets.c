/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 40 and 45 of the table of faults: short writes, and connections that are reset before
 * accept().
 */
#define _GNU_SOURCE
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/listen/group.h"
#include "transport/listen/quota.h"

#include <spoke/host.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* --- row 40 */

#define LONG_TEXT 3000u
#define SMALL_BUFFER 1024

/* A network on which a write accepts one byte, and every other write none. */
static struct spoke_net stingy;
static const struct spoke_net *generous;
static unsigned writes;

static ssize_t write_a_byte(void *ctx, int fd, const struct iovec *parts, int count)
{
	struct iovec first = parts[0];

	if (++writes % 2)
		return -EAGAIN;
	while (first.iov_len == 0 && count-- > 1)
		first = *++parts;
	first.iov_len = 1;
	return generous->write(ctx, fd, &first, 1);
}

static ssize_t read_a_byte(void *ctx, int fd, void *bytes, size_t len)
{
	return generous->read(ctx, fd, bytes, len > 1 ? 1 : len);
}

static void shrink(int fd)
{
	const int size = SMALL_BUFFER;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* From here on the side under test writes and reads single bytes. */
static void be_stingy(struct stage *stage)
{
	static const struct spokei_vnet_link thin = {
		.capacity = 64, .write_max = 1, .read_max = 1, .eagain_permille = 900
	};

	if (stage_is_virtual(stage)) {
		spokei_vnet_set_all(stage->world.net, &thin);
		return;
	}
	generous = stage->faulty.env.net;
	stingy = *generous;
	stingy.write = write_a_byte;
	stingy.read = read_a_byte;
	stage->faulty.env.net = &stingy;
}

RUNNER(stage_run_rows);

ROW(row_40_single_bytes_and_eagain_do_not_stall_a_provider, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message message;
	struct spokei_buffer frames;
	char text[LONG_TEXT + 1];
	struct spoke_span said;

	memset(text, 'x', LONG_TEXT);
	text[LONG_TEXT] = '\0';
	be_stingy(stage);
	frames_init(&frames);
	for (uint64_t id = 1; id <= 3; id++)
		frames_request(&frames, id, "echo", text);
	raw_send_buffer(raw, &frames);
	for (uint64_t id = 1; id <= 3; id++) {
		assert_reply(raw, id, 20, &message);
		assert_int_equal(spoke_value_str(message.value, &said), 0);
		assert_true(spokei_span_is(said, text));
	}
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 3);
	assert_true(stage_up(stage, SPOKE_STAT_READS) >= 3 * LONG_TEXT);
	assert_true(stage_up(stage, SPOKE_STAT_WRITES) >= 3 * LONG_TEXT);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
	assert_nothing_closed(stage);
}

ROW(row_40_single_bytes_and_eagain_do_not_stall_a_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending endings[3];
	uint64_t ids[3];

	be_stingy(stage);
	for (size_t i = 0; i < LENGTH(endings); i++)
		stage_call(stage, stage->echo, "a call of a few more bytes", &endings[i], NULL);
	for (size_t i = 0; i < LENGTH(endings); i++) {
		raw_frame(raw, &request);
		ids[i] = request.id;
	}
	for (size_t i = LENGTH(endings); i-- > 0;) {
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_reply(&frames, ids[i], 20, "y");
		raw_send_buffer(raw, &frames);
	}
	for (size_t i = 0; i < LENGTH(endings); i++) {
		assert_ends(stage, &endings[i], SPOKE_OK);
		assert_string_equal(endings[i].value, "\"y\"");
	}
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
	assert_nothing_closed(stage);
}

ROW(row_40_a_send_buffer_of_1_kib_is_enough_for_large_answers, STAGE_REAL)
{
	struct spoke_list *conns;
	struct spokei_message message;
	struct spokei_buffer frames;
	struct raw *raw = stage_raw_to_provider(stage);

	conns = &stage->provider->link->conns;
	for (struct spoke_list *at = conns->next; at != conns; at = at->next)
		shrink(spoke_container_of(at, struct spokei_conn, node)->stream.watch.fd);
	for (uint64_t id = 1; id <= 4; id++) {
		frames_init(&frames);
		frames_request_with(&frames, id, STAGE_SERVICE, "large",
				    (struct spoke_span){ "\xce\0\1\0\0", 5 });
		raw_send_buffer(raw, &frames);
	}
	for (uint64_t id = 1; id <= 4; id++) {
		assert_second_connection_works(stage);
		assert_reply(raw, id, 20, &message);
		assert_int_equal(message.value.len, (1u << 16) + 5);
	}
	assert_true(stage_up(stage, SPOKE_STAT_WRITES) > 2 * 4);
	assert_raw_lives(raw);
	assert_nothing_closed(stage);
}

/* --- row 45 */

#define BATCH 100u

/* A connection among many that are reset is served in the usual time. */
static void assert_welcome(struct stage *stage, struct raw **batch)
{
	uint64_t begun_ns = stage_now(stage);
	struct raw *raw;

	for (unsigned i = 0; i < BATCH; i++)
		raw_reset(batch[i]);
	raw = raw_start(stage);
	assert_raw_lives(raw);
	if (stage->on == STAGE_MEMORY)
		assert_true(stage_now(stage) - begun_ns <= MS);
	assert_second_connection_works(stage);
	raw_close(raw);
}

static bool alone_is_the_second(void *arg)
{
	const struct stage *stage = arg;

	return spoke_provider_connections(stage->provider) == 1;
}

ROW(row_45_immediate_resets_do_not_affect_other_connections, STAGE_ALL)
{
	unsigned batches = stage_is_virtual(stage) ? 100 : 10;
	struct raw *batch[BATCH];
	size_t blocks = 0;
	size_t fds;

	stage_set_provider(stage, NULL);
	fds = stage->faulty.fds;
	stage_mark(stage);
	for (unsigned i = 0; i < batches; i++) {
		for (unsigned k = 0; k < BATCH; k++)
			batch[k] = raw_start(stage);
		if (stage_is_virtual(stage))
			stage_pass(stage, 5 * MS);
		assert_welcome(stage, batch);
		stage_until(stage, alone_is_the_second, stage);
		if (i == 0)
			blocks = stage->faulty.blocks;
	}
	/* The kernel may have dropped some of them before accept(). */
	assert_in_range(stage_up(stage, SPOKE_STAT_ACCEPTED), batches, batches * (BATCH + 1));
	if (stage_is_virtual(stage))
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTED, (uint64_t)batches * (BATCH + 1));
	assert_closed_times(stage, SPOKE_STAT_CLOSED_BY_PEER, stage_up(stage, SPOKE_STAT_ACCEPTED));
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_SHED, 0);
	assert_int_equal(spokei_listen_group_quota(stage->provider->listeners)->count, 1);
	assert_int_equal(stage->faulty.fds, fds);
	/* The memory kept for later connections is bounded. */
	assert_true(stage->faulty.blocks <= blocks + BATCH);
	assert_second_connection_works(stage);
}
