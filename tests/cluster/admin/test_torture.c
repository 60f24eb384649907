/* SPDX-License-Identifier: Apache-2.0 */
/* The admin page whose environment fails each call once, or fails from that call on. */
#include "tests/cluster/admin/adminrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define rig adminrig
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define STREAM "GET /events HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
#define PAGE "GET / HTTP/1.1\r\n" ADMINRIG_HOST "\r\n"
#define ACT "POST /act/act HTTP/1.1\r\n" ADMINRIG_HOST ADMINRIG_BEARER "\r\n"

/* Opens, uses and frees a page while any call may fail. */
static void live(void)
{
	struct spoke_admin_options options = adminrig_options();
	static const char *const requests[] = { PAGE, STREAM, ACT, "nonsense\r\n" };
	int fds[LENGTH(requests)];

	rig.admin = NULL;
	if (spoke_admin_new(rig.engine, &options, &rig.admin))
		return;
	for (size_t i = 0; i < LENGTH(requests); i++) {
		fds[i] = adminrig_connect();
		adminrig_run(MS);
		adminrig_send(fds[i], requests[i]);
	}
	adminrig_run(2 * SECOND);
	for (size_t i = 0; i < LENGTH(requests); i++)
		adminrig_hang_up(fds[i]);
	adminrig_run(SECOND);
	spoke_admin_free(rig.admin);
	adminrig_run(MS);
}

TEST(no_single_fault_leaves_anything_behind)
{
	static const struct {
		enum spokei_faults_kind kind;
		int error;
	} faults[] = {
		{ SPOKEI_FAULTS_MEMORY, -ENOMEM }, { SPOKEI_FAULTS_LISTEN, -EADDRINUSE },
		{ SPOKEI_FAULTS_ACCEPT, -EIO },    { SPOKEI_FAULTS_READ, -EIO },
		{ SPOKEI_FAULTS_WRITE, -EPIPE },   { SPOKEI_FAULTS_SHUT, -ENOTCONN },
		{ SPOKEI_FAULTS_LOCAL, -EIO },     { SPOKEI_FAULTS_SPARE, -EMFILE },
	};

	for (size_t i = 0; i < 2 * LENGTH(faults); i++) {
		enum spokei_faults_kind kind = faults[i / 2].kind;
		uint64_t failed = 1;

		for (uint64_t nth = 1; failed > 0; nth++) {
			adminrig_open_bare();
			rig.faulty.failed[kind] = 0;
			spokei_faults_fail(&rig.faulty, kind, nth, faults[i / 2].error, i % 2 == 1);
			live();
			failed = rig.faulty.failed[kind];
			spokei_faults_heal(&rig.faulty);
			assert_int_equal(rig.faulty.fds, 0);
			live();
			assert_non_null(rig.admin);
			assert_true(rig.acted >= 1);
			adminrig_close();
			assert_in_range(nth, 1, 500);
		}
	}
}

/* A client receives one response, or none. */
TEST(memory_fault_gives_one_response_or_none)
{
	unsigned refused = 0;
	uint64_t failed = 1;

	for (uint64_t nth = 1; failed > 0; nth++) {
		const char *answer;
		bool ended;
		int fd;

		adminrig_open();
		fd = adminrig_connect();
		adminrig_run(MS);
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		adminrig_send(fd, PAGE);
		answer = adminrig_read(fd, &ended);
		assert_true(ended);
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];
		if (answer[0] != '\0') {
			assert_memory_equal(answer, "HTTP/1.1 ", 9);
			assert_null(strstr(answer + 9, "HTTP/1.1 "));
			refused += strncmp(answer + 9, "503", 3) == 0;
		}
		adminrig_hang_up(fd);
		adminrig_close();
	}
	assert_true(refused > 2);
}
