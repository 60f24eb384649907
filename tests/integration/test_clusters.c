/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters of real processes: providers that are killed, restarted, join and leave while a consumer
 * keeps calling, and one provider that is away for a while. Each provider process has a number,
 * which its answers contain.
 */
#define _GNU_SOURCE
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS 5u
#define LIST_MAX 8192u

struct member {
	struct rig_process *process;
	unsigned id;
	char address[64]; /* empty: no address yet */
};

static char folder[64];
static char list_path[96];
static unsigned id_count;
static struct rig_process *caller;

static int make_folder(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/spoke-clusters-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	(void)snprintf(list_path, sizeof(list_path), "%s/providers", folder);
	id_count = 0;
	return rig_set_up(state);
}

static int remove_folder(void **state)
{
	int status = rig_tear_down(state);
	char lock_path[128];

	(void)snprintf(lock_path, sizeof(lock_path), "%s.lock", list_path);
	(void)unlink(lock_path);
	(void)unlink(list_path);
	return rmdir(folder) || status ? -1 : 0;
}

FIXTURE(make_folder, remove_folder);

/* --- members */

/* Starts it at its former address, if it had one. */
static void start_member(struct member *member, const char *options)
{
	bool again = member->address[0] != '\0';

	member->id = ++id_count;
	member->process = rig_provider(NULL, "id=%u requests=10000%s%s%s", member->id, options,
				       again ? " listen=dubbo://" : "", member->address);
	(void)snprintf(member->address, sizeof(member->address), "%s",
		       rig_address(member->process));
}

static void join(struct member *member)
{
	char options[128];

	(void)snprintf(options, sizeof(options), " registry=file://%s", list_path);
	start_member(member, options);
	rig_until(member->process, "registered", "registered 1 of 1");
}

static uint64_t answered_by(unsigned id)
{
	char pattern[32];
	const char *text;

	rig_tell(caller, "from %u", id);
	(void)snprintf(pattern, sizeof(pattern), "from %u *", id);
	text = rig_wait(caller, pattern)->text;
	return rig_number(text, " answered ") + rig_number(text, " settled ");
}

/* Drains it; all requests that it ran were answered. */
static void assert_leaves(struct member *member)
{
	const char *text;

	rig_signal(member->process, SIGTERM);
	text = rig_wait(member->process, "runs *")->text;
	assert_int_equal(rig_end(member->process), 0);
	assert_int_equal(answered_by(member->id), rig_number(text, "runs "));
}

/* --- the shared list */

static void read_list(char *text)
{
	int fd = open(list_path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	assert_true(fd >= 0);
	len = read(fd, text, LIST_MAX - 1);
	(void)close(fd);
	assert_true(len >= 0 && len < (ssize_t)LIST_MAX - 1);
	text[len] = '\0';
}

static bool is_listed(const struct member *member)
{
	char text[LIST_MAX];

	read_list(text);
	return strstr(text, member->address) != NULL;
}

/* Edits the list as a user would with an editor, while no other process writes it. */
static void write_list(const char *text, const char *line)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s.new", list_path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	(void)close(fd);
	assert_int_equal(rename(path, list_path), 0);
}

/* --- the caller */

static void until_calls(unsigned more)
{
	rig_until_stat(caller, "calls_ok", rig_stat(caller, "calls_ok") + more);
}

/* Checks that all calls have ended once and the engine's counters agree; returns the results. */
static const char *assert_ended_once(void)
{
	static const char *const ends[] = {
		"calls_ok",       "calls_remote", "calls_timeout",
		"calls_lost",     "calls_closed", "calls_timeout_unsent",
		"calls_canceled", "calls_failed", "calls_deferred",
	};
	const char *table;
	uint64_t taken;
	uint64_t all = 0;

	rig_tell(caller, "rest");
	rig_tell(caller, "table");
	table = rig_wait(caller, "table *")->text;
	taken = rig_number(table, " taken ");
	assert_int_equal(rig_number(table, " twice "), 0);
	assert_int_equal(rig_number(table, " wrong "), 0);
	assert_int_equal(rig_number(table, " other "), 0);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		all += rig_stat(caller, ends[i]);
	assert_int_equal(rig_stat(caller, "calls"), taken);
	assert_int_equal(all, taken);
	assert_int_equal(rig_stat(caller, "calls_ok"), rig_number(table, " ok "));
	assert_int_equal(rig_stat(caller, "calls_lost"), rig_number(table, " lost "));
	assert_int_equal(rig_stat(caller, "calls_remote"), rig_number(table, " refused "));
	assert_int_equal(rig_stat(caller, "calls_deferred"), rig_number(table, " deferred "));
	assert_int_equal(rig_stat(caller, "calls_timeout") +
				 rig_stat(caller, "calls_timeout_unsent"),
			 rig_number(table, " timeouts "));
	assert_int_equal(rig_stat(caller, "calls_refused"), rig_number(table, " not_taken "));
	return table;
}

/* Returns the sum over all providers that ever existed. */
static uint64_t answered_by_all(void)
{
	uint64_t all = 0;

	for (unsigned id = 1; id <= id_count; id++)
		all += answered_by(id);
	return all;
}

/* --- many */

/* Kills providers one after another, and two at once. */
static void kill_and_restart(struct member *members)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *one = &members[i];
		struct member *other = i % 2 ? &members[(i + 1) % MEMBERS] : NULL;

		rig_kill(one->process);
		if (other)
			rig_kill(other->process);
		until_calls(1000);
		join(one);
		if (other)
			join(other);
		rig_until_ready(caller, MEMBERS);
		rig_until_stat(one->process, "requests_ok", 100);
	}
}

static void add_and_remove(struct member *members)
{
	struct member added[2] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		join(&added[i]);
		rig_until_stat(added[i].process, "requests_ok", 100);
	}
	rig_until_endpoints(caller, MEMBERS + 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_leaves(&members[i]);
		assert_false(is_listed(&members[i]));
		until_calls(500);
		members[i] = added[i];
	}
	rig_until_endpoints(caller, MEMBERS);
}

/* One provider is frozen until its connection accepts no more bytes, and then killed. Unwritten
 * calls go elsewhere, although the connection had queued them. */
static void freeze_and_kill(struct member *member)
{
	uint64_t retries = rig_stat(caller, "retries");

	rig_freeze(member->process);
	rig_tell(caller, "bytes 16384");
	until_calls(8000);
	rig_tell(caller, "bytes 0");
	rig_kill(member->process);
	rig_until_stat(caller, "retries", retries + 1);
	join(member);
	rig_until_ready(caller, MEMBERS);
}

/* A user adds a provider to the list and removes it; its process stays. */
static void list_and_delist(void)
{
	struct member member = { 0 };
	char list[LIST_MAX];
	char line[128];
	uint64_t runs;

	start_member(&member, "");
	(void)snprintf(line, sizeof(line), "\ndubbo://%s/demo.EchoService?warmup=0\n",
		       member.address);
	read_list(list);
	write_list(list, line);
	rig_until_stat(member.process, "requests_ok", 100);
	write_list(list, "");
	rig_until_endpoints(caller, MEMBERS);
	rig_tell(member.process, "runs");
	runs = rig_number(rig_wait(member.process, "runs *")->text, "runs ");
	until_calls(1000);
	rig_tell(member.process, "runs");
	assert_int_equal(rig_number(rig_wait(member.process, "runs *")->text, "runs "), runs);
	assert_leaves(&member);
}

TEST(failover_loses_no_call_that_was_never_written)
{
	struct member members[MEMBERS] = { 0 };
	const char *table;

	for (unsigned i = 0; i < MEMBERS; i++)
		join(&members[i]);
	caller = rig_caller("url=consumer://any/demo.EchoService?timeout=30s&eject.time=200ms "
			    "registry=file://%s",
			    list_path);
	rig_until_ready(caller, MEMBERS);
	rig_tell(caller, "calls 5000");
	until_calls(1000);
	kill_and_restart(members);
	add_and_remove(members);
	list_and_delist();
	freeze_and_kill(&members[0]);
	kill_and_restart(members);
	table = assert_ended_once();
	assert_int_equal(rig_number(table, " not_taken "), 0);
	/* A caller that gets little CPU makes many calls at a time, and may use up its retry
	 * budget. */
	assert_in_range(rig_number(table, " unwritten "), 0, rig_stat(caller, "retries_unfunded"));
	assert_int_equal(rig_number(table, " refused "), 0);
	assert_in_range(rig_number(table, " lost "), 1, UINT32_MAX);
	assert_int_equal(answered_by_all(), rig_number(table, " ok "));
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_leaves(&members[i]);
	assert_ends_well(caller);
}

/* --- one */

TEST(failback_settles_every_ticket_when_the_provider_is_back)
{
	struct member member = { 0 };
	const char *table;
	const char *tickets;
	const char *runs;
	uint64_t deferred;

	start_member(&member, "");
	caller = rig_caller("url=dubbo://%s/demo.EchoService?cluster=failback&timeout=30s"
			    "&retries=100&retry.period=1s&retry.deadline=10m"
			    "&failback.tasks=10000",
			    member.address);
	rig_until_ready(caller, 1);
	rig_tell(caller, "calls 100");
	until_calls(100);
	rig_kill(member.process);
	rig_until_stat(caller, "calls_deferred", 60);
	start_member(&member, "");
	until_calls(20);
	table = assert_ended_once();
	deferred = rig_number(table, " deferred ");
	assert_int_equal(rig_number(table, " not_taken "), 0);
	assert_int_equal(rig_number(table, " ok ") + deferred, rig_number(table, " taken "));
	rig_tell(caller, "tickets");
	tickets = rig_wait(caller, "tickets *")->text;
	assert_int_equal(rig_number(tickets, " settled "), deferred);
	assert_int_equal(rig_number(tickets, " success "), deferred);
	assert_int_equal(rig_number(tickets, " told "), deferred);
	assert_int_equal(rig_number(tickets, " wrong "), 0);
	assert_int_equal(rig_number(tickets, " twice "), 0);
	rig_until(caller, "waiting", "waiting 0");
	assert_int_equal(answered_by_all(), rig_number(table, " taken "));
	/* The restarted provider ran no request twice. */
	rig_tell(member.process, "runs");
	runs = rig_wait(member.process, "runs *")->text;
	assert_int_equal(rig_number(runs, " different "), rig_number(runs, "runs "));
	assert_leaves(&member);
	assert_ends_well(caller);
}
