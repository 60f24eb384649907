/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server whose environment fails each call once, or fails from that call on. */
#include "tests/support/test.h"
#include "tests/transport/http/kvrig.h"

#include <errno.h>
#include <string.h>

#define rig kvrig

static const char *const requests[] = {
	"POST /a HTTP/1.1\r\n" KVRIG_HOST "Content-Length: 3\r\n\r\none",
	KVRIG_GET("/a"),
	KVRIG_GET("/all"),
	KVRIG_GET("/watch"),
	KVRIG_GET("/later"),
	KVRIG_GET("/large"),
	"nonsense\r\n",
};

/* Runs the service with one client of each kind while any call may fail. */
static void live(void)
{
	const struct spokei_vnet_link narrow = { .capacity = 2048 };
	int fds[LENGTH(requests)];

	spokei_vnet_set_all(rig.world.net, &narrow);
	if (kvrig_serve()) {
		rig.listener = NULL;
		kvrig_stop();
		return;
	}
	for (size_t i = 0; i < LENGTH(requests); i++) {
		bool ended;

		fds[i] = kvrig_connect();
		kvrig_send(fds[i], requests[i]);
		(void)kvrig_read(fds[i], &ended);
	}
	if (rig.later)
		(void)kvrig_respond_later("now");
	kvrig_run(MS);
	spokei_engine_refresh(rig.http.engine);
	spokei_http_server_drain(&rig.http);
	kvrig_run(3 * SECOND);
	for (size_t i = 0; i < LENGTH(requests); i++)
		kvrig_hang_up(fds[i]);
	kvrig_run(MS);
	assert_true(spokei_list_empty(&rig.http.reading));
	assert_true(spokei_list_empty(&rig.http.conns));
	assert_int_equal(rig.http.stream_count, 0);
	kvrig_stop();
}

TEST(no_single_fault_leaves_anything_behind)
{
	static const struct {
		enum spokei_faults_kind kind;
		int error;
	} faults[] = {
		{ SPOKEI_FAULTS_MEMORY, -ENOMEM }, { SPOKEI_FAULTS_ACCEPT, -EIO },
		{ SPOKEI_FAULTS_READ, -EIO },      { SPOKEI_FAULTS_WRITE, -EPIPE },
		{ SPOKEI_FAULTS_SHUT, -ENOTCONN },
	};

	for (size_t i = 0; i < 2 * LENGTH(faults); i++) {
		enum spokei_faults_kind kind = faults[i / 2].kind;
		uint64_t failed = 1;

		for (uint64_t nth = 1; failed > 0; nth++) {
			kvrig_open_bare(0);
			spokei_faults_fail(&rig.faulty, kind, nth, faults[i / 2].error, i % 2 == 1);
			live();
			failed = rig.faulty.failed[kind];
			spokei_faults_heal(&rig.faulty);
			assert_int_equal(rig.faulty.fds, 0);
			rig.requests = 0;
			live();
			assert_int_equal(rig.requests, LENGTH(requests) - 1);
			kvrig_close();
			assert_in_range(nth, 1, 5000);
		}
	}
}

/* The listener needs one timer, and each connection needs one. */
TEST(wheel_without_room_closes_connections)
{
	unsigned served = 0;

	for (uint64_t timers = 1; timers < LENGTH(requests) + 3; timers++) {
		kvrig_open_bare(timers);
		live();
		assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_ACCEPTED),
				 spoke_stat_get(rig.engine, SPOKE_STAT_CLOSED));
		assert_true(rig.requests >= served);
		served = rig.requests;
		kvrig_close();
	}
	assert_int_equal(served, LENGTH(requests) - 1);
}

/* A client receives one complete response head, or nothing. */
TEST(memory_fault_gives_one_response_or_none)
{
	uint64_t failed = 1;

	for (uint64_t nth = 1; failed > 0; nth++) {
		const char *response;
		bool ended;
		int fd;

		kvrig_open();
		fd = kvrig_connect();
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		kvrig_send(fd, requests[0]);
		response = kvrig_read(fd, &ended);
		assert_true(ended);
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];
		if (response[0] != '\0') {
			assert_memory_equal(response, "HTTP/1.1 ", 9);
			assert_null(strstr(response + 9, "HTTP/1.1 "));
		}
		kvrig_hang_up(fd);
		kvrig_close();
	}
}
