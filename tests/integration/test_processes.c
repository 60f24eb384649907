/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 35, 44, 45, 47, 55 and 68 of the table of faults, with real processes: providers that are
 * killed, replaced or drained, and consumers that are frozen while they read, or reset at once.
 */
#define _GNU_SOURCE
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rig_process *provider;
static struct rig_process *consumer;
static char address[64];

static void provide(const char *options)
{
	provider = rig_provider(NULL, "%s", options);
	(void)snprintf(address, sizeof(address), "%s", rig_address(provider));
}

static void consume(const char *options)
{
	consumer = rig_consumer(NULL, "url=dubbo://%s/demo.EchoService %s", address, options);
	(void)rig_wait(consumer, "link connected *");
	(void)rig_wait(provider, "link connected *");
}

static void provide_again(const char *options)
{
	provider = rig_provider(NULL, "listen=dubbo://%s %s", address, options);
	(void)rig_address(provider);
}

static void stop(void)
{
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

FIXTURE(rig_set_up, rig_tear_down);

TEST(row_35_killed_provider_is_reconnected_after_restart)
{
	struct rig_table table;

	provide("heartbeat=500");
	consume("every=2 heartbeat=500");
	rig_until_stat(consumer, "calls_ok", 10);
	rig_kill(provider);
	(void)rig_wait(consumer, "link closed missed 0 error ELOST *");
	(void)rig_wait(consumer, "link reconnecting * error ELOST attempt 1 *");
	(void)rig_wait(consumer, "link reconnecting * error ECONNECT attempt 2 *");
	provide_again("heartbeat=500");
	(void)rig_wait(consumer, "link connected *");
	rig_until_stat(provider, "requests_ok", 10);
	table = assert_all_ended_once(consumer);
	assert_in_range(table.ok, 20, table.taken);
	stop();
}

/* --- row 44 */

static struct sockaddr_in address_of(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10));
	return to;
}

/* Lets another program take the port. */
static int take_port(void)
{
	struct sockaddr_in at = address_of();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

/* Checks that each pause has its length, a fifth more or less, whatever the other program answers.
 */
static void assert_pause_grows(unsigned attempt, const char *text)
{
	const char *pause = strstr(text, " pause ");
	unsigned long ms = pause ? strtoul(pause + 7, NULL, 10) : 0;
	double wanted = 100;

	for (unsigned i = 1; i < attempt; i++)
		wanted *= 1.6;
	assert_true((double)ms >= wanted * 0.79 && (double)ms <= wanted * 1.21);
}

static void speak_garbage(int listener)
{
	static const char *const garbage[] = {
		"SSH-2.0-OpenSSH_9.2p1\r\n",
		"HTTP/1.1 400 Bad Request\r\n\r\n",
		"\xda\xbb\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"220 mail ESMTP\r\n",
	};

	for (unsigned i = 0; i < 4; i++) {
		int fd = accept(listener, NULL, NULL);
		char pattern[64];

		assert_true(fd >= 0);
		(void)!write(fd, garbage[i], strlen(garbage[i]));
		(void)snprintf(pattern, sizeof(pattern), "link reconnecting * attempt %u *", i + 2);
		assert_pause_grows(i + 2, rig_wait(consumer, pattern)->text);
		(void)close(fd);
	}
	(void)close(listener);
}

TEST(row_44_port_of_another_program_is_retried_with_backoff)
{
	provide("heartbeat=500");
	consume("every=10 heartbeat=500");
	rig_kill(provider);
	speak_garbage(take_port());
	provide_again("heartbeat=500");
	/* The consumer has reported connections to the other program, too. */
	(void)rig_wait(provider, "link connected *");
	rig_until_ready(consumer, 1);
	assert_call_works(consumer);
	(void)assert_all_ended_once(consumer);
	stop();
}

/* --- row 45 */

#define RESETS 10000u

static void connect_and_reset(const struct sockaddr_in *to)
{
	const struct linger at_once = { .l_onoff = 1 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
	(void)close(fd);
}

TEST(row_45_ten_thousand_resets_disturb_no_other_connection)
{
	struct sockaddr_in to;
	struct rig_table table;
	uint64_t accepted;
	size_t before;

	provide("heartbeat=5000");
	consume("every=5 heartbeat=5000 timeout=30000");
	to = address_of();
	before = rig_descriptors(provider);
	for (unsigned i = 0; i < RESETS; i++) {
		connect_and_reset(&to);
		if (i % 1000 == 0)
			assert_call_works(consumer);
	}
	assert_call_works(consumer);
	/* The provider has forgotten all accepted ones; the kernel forgets some before accept(). */
	do {
		accepted = rig_stat(provider, "accepted");
		rig_until_stat(provider, "closed", accepted - 1);
	} while (accepted < rig_stat(provider, "accepted"));
	assert_int_equal(rig_descriptors(provider), before);
	assert_int_equal(rig_stat(provider, "accepts_shed"), 0);
	table = assert_all_ended_once(consumer);
	assert_int_equal(table.ok, table.taken);
	stop();
}

/* --- row 47 */

/* The wall clock jumps by two days, forwards or backwards, at each reading. */
TEST(row_47_jumps_of_the_wall_clock_have_no_effect)
{
	struct rig_table table;

	/* The consumer asks first: a link that the provider's probes keep busy needs none of its.
	 */
	provider = rig_astray_provider("heartbeat=800");
	(void)snprintf(address, sizeof(address), "%s", rig_address(provider));
	consumer = rig_astray_consumer(
		"url=dubbo://%s/demo.EchoService heartbeat=400 timeout=30000 every=600", address);
	rig_until_stat(consumer, "calls_ok", 10);
	rig_until_stat(consumer, "probe_answers_read", 2);
	table = assert_all_ended_once(consumer);
	assert_int_equal(table.ok, table.taken);
	assert_int_equal(rig_count(consumer, "wall") + rig_count(provider, "wall"), 2);
	assert_int_equal(rig_count(consumer, "link closed *"), 0);
	stop();
}

/* --- row 55 */

#define LARGE (1u << 20)
#define LARGES 7u

/* A reader is frozen while its answers, more than sockets hold, are on their way. */
TEST(row_55_consumer_frozen_with_unread_replies_is_closed)
{
	struct rig_table table;

	provide("heartbeat=500");
	consume("heartbeat=500 timeout=60000");
	rig_tell(provider, "block 1000");
	(void)rig_wait(provider, "blocked");
	for (unsigned i = 0; i < LARGES; i++)
		rig_tell(consumer, "large %u", LARGE);
	rig_until_stat(consumer, "messages_written", LARGES + 1);
	rig_freeze(consumer);
	(void)rig_wait(provider, "link closed * error ESILENT *");
	rig_thaw(consumer);
	(void)rig_wait(consumer, "link reconnecting *");
	(void)rig_wait(consumer, "link connected *");
	assert_call_works(consumer);
	table = assert_all_ended_once(consumer);
	assert_int_equal(table.taken, LARGES + 1);
	stop();
}

/* --- row 68 */

TEST(row_68_draining_provider_answers_running_requests)
{
	struct rig_table table;

	provide("heartbeat=500 drain=60000");
	consume("heartbeat=500 timeout=60000");
	rig_tell(consumer, "hold 1");
	(void)rig_wait(provider, "held 1");
	rig_signal(provider, SIGTERM);
	(void)rig_wait(consumer, "link readonly *");
	rig_tell(consumer, "hold 2");
	(void)rig_wait(consumer, "end hold 2 * not taken*");
	rig_tell(provider, "release");
	(void)rig_wait(consumer, "end hold 1 OK written 1");
	assert_int_equal(rig_end(provider), 0);
	assert_int_equal(rig_count(provider, "held *"), 1);
	provide_again("heartbeat=500");
	(void)rig_wait(consumer, "link connected *");
	assert_call_works(consumer);
	table = assert_all_ended_once(consumer);
	assert_int_equal(table.ok, table.taken);
	stop();
}

/* Calls made while the drain notice is unread are refused by one of the sides, and not run. */
TEST(row_68_calls_with_an_unread_drain_notice_are_never_run)
{
	provide("heartbeat=5000 drain=60000");
	consume("heartbeat=5000 timeout=60000");
	rig_tell(consumer, "hold 1");
	(void)rig_wait(provider, "held 1");
	/* The consumer is stalled and does not read the notice; afterwards it writes the queued
	 * calls before it reads. */
	rig_tell(consumer, "block 3000");
	(void)rig_wait(consumer, "blocked");
	for (unsigned i = 2; i < 12; i++)
		rig_tell(consumer, "hold %u", i);
	rig_signal(provider, SIGTERM);
	rig_until_stat(provider, "readonly_written", 1);
	for (unsigned i = 2; i < 12; i++)
		(void)rig_wait(consumer, "end hold *");
	rig_tell(provider, "release");
	(void)rig_wait(consumer, "end hold 1 OK written 1");
	assert_int_equal(rig_end(provider), 0);
	assert_int_equal(rig_count(provider, "held *"), 1);
	assert_int_equal(rig_count(consumer, "end hold * EREFUSED *") +
				 rig_count(consumer, "end hold * not taken*"),
			 10);
	provide_again("heartbeat=500");
	(void)rig_wait(consumer, "link connected *");
	assert_call_works(consumer);
	stop();
}

/* --- push */

/* Pushes reach all connected consumers: disconnected ones are forgotten, and reconnected ones are
 * found. */
TEST(pushes_reach_consumers_that_come_and_go)
{
	struct rig_process *second;

	provide("heartbeat=500");
	consume("heartbeat=500");
	second = rig_consumer(NULL, "url=dubbo://%s/demo.EchoService heartbeat=500", address);
	(void)rig_wait(provider, "link connected *");
	rig_tell(provider, "push 1");
	(void)rig_wait(provider, "push OK to 2");
	(void)rig_wait(consumer, "told 1");
	(void)rig_wait(second, "told 1");
	rig_kill(second);
	(void)rig_wait(provider, "link closed *");
	rig_tell(provider, "push 2");
	(void)rig_wait(provider, "push OK to 1");
	(void)rig_wait(consumer, "told 2");
	/* A frozen consumer that is given up ends its pending push, once. */
	rig_freeze(consumer);
	rig_tell(provider, "ask 3");
	(void)rig_wait(provider, "link closed * error ESILENT *");
	rig_thaw(consumer);
	(void)rig_wait(provider, "link connected *");
	rig_tell(provider, "ask 4");
	(void)rig_wait(consumer, "told 4");
	(void)rig_wait(provider, "asked OK");
	assert_int_equal(rig_count(provider, "asked *"), 2);
	assert_int_equal(rig_count(provider, "asked E*"), 1);
	stop();
}
