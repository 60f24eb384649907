/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in a file with real processes that are killed: their lines go, for living consumers
 * and in the file, and nothing is left beside it.
 */
#define _GNU_SOURCE
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 4096u
#define MEMBERS 3u
#define OLD "dubbo://127.0.0.1:1/demo.Old?pid=1"

static char folder[64];
static char path[96];
static struct rig_process *members[MEMBERS];
static char addresses[MEMBERS][64];
static struct rig_process *caller;

static const char *beside(const char *suffix)
{
	static char name[128];

	(void)snprintf(name, sizeof(name), "%s%s", path, suffix);
	return name;
}

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static int set_up(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/spoke-registry-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/providers", folder);
	return rig_set_up(state);
}

/* Returns the number of entries of the folder whose names end like this; removes them if asked to.
 */
static unsigned entries(const char *end, bool removes)
{
	DIR *all = opendir(folder);
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(all);
	while ((entry = readdir(all)) != NULL) {
		size_t len = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || len < strlen(end) ||
		    strcmp(entry->d_name + len - strlen(end), end) != 0)
			continue;
		count++;
		if (removes)
			(void)unlinkat(dirfd(all), entry->d_name, 0);
	}
	(void)closedir(all);
	return count;
}

static int tear_down(void **state)
{
	int status = rig_tear_down(state);

	(void)entries("", true);
	return rmdir(folder) || status ? -1 : 0;
}

FIXTURE(set_up, tear_down);

static const char *read_file(void)
{
	static char text[TEXT_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	assert_true(len >= 0);
	text[len] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return text;
}

static unsigned lines(void)
{
	unsigned count = 0;

	for (const char *at = read_file(); (at = strchr(at, '\n')) != NULL; at++)
		count++;
	return count;
}

static void start_all(void)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		members[i] = rig_provider(NULL, "id=%u registry=file://%s", i + 1, path);
		(void)snprintf(addresses[i], sizeof(addresses[i]), "%s", rig_address(members[i]));
		rig_until(members[i], "registered", "registered 1 of 1");
	}
	caller = rig_caller("url=consumer://any/demo.EchoService registry=file://%s", path);
	rig_until_ready(caller, MEMBERS);
}

/* Waits until the file has this many lines and the folder this many marks, and no member writes a
 * list: the caller's engine turns meanwhile. */
static void until_lines(unsigned count, unsigned marks)
{
	uint64_t end_ns = rig_now() + 30 * SECOND;

	while (lines() != count || entries(".lock", false) != marks + 1 ||
	       entries(".tmp", false) > 0) {
		assert_true(rig_now() < end_ns);
		rig_tell(caller, "endpoints");
		(void)rig_wait(caller, "endpoints *");
	}
}

TEST(killed_provider_vanishes_for_all_others)
{
	write_file(path, OLD "\n");
	start_all();
	assert_int_equal(lines(), MEMBERS + 1);
	assert_int_equal(entries(".lock", false), MEMBERS + 1);
	write_file(beside(".4194304-7.tmp"), "half a li");
	rig_kill(members[0]);
	rig_until_endpoints(caller, MEMBERS - 1);
	until_lines(MEMBERS, MEMBERS - 1);
	assert_null(strstr(read_file(), addresses[0]));
	assert_non_null(strstr(read_file(), addresses[1]));
	/* A line that no living or dead process has marked belongs to nobody. */
	assert_non_null(strstr(read_file(), OLD "\n"));
	assert_ends_well(caller);
}

TEST(last_killed_provider_is_removed_by_its_consumer)
{
	start_all();
	for (unsigned i = 0; i < MEMBERS; i++)
		rig_kill(members[i]);
	until_lines(0, 0);
	assert_ends_well(caller);
}

TEST(stopped_provider_stays_listed)
{
	start_all();
	rig_freeze(members[0]);
	rig_kill(members[1]);
	until_lines(MEMBERS - 1, MEMBERS - 1);
	assert_non_null(strstr(read_file(), addresses[0]));
	rig_thaw(members[0]);
	assert_ends_well(members[0]);
	until_lines(1, 1);
	assert_ends_well(caller);
}

/* Lets a provider step aside until others have served a while, and come back. */
static void step_aside(struct rig_process *member, struct rig_process *consumer)
{
	uint64_t served;

	rig_tell(member, "offline");
	(void)rig_wait(member, "offline 0");
	rig_until(member, "registered", "registered 0 of 0");
	rig_until_ready(consumer, MEMBERS - 1);
	/* No call is in flight for a moment, so the member has counted all that were sent to it. */
	(void)rig_table(consumer);
	served = rig_stat(member, "requests");
	rig_until_stat(consumer, "calls_ok", rig_stat(consumer, "calls_ok") + 200);
	assert_int_equal(rig_stat(member, "requests"), served);
	rig_tell(member, "online");
	(void)rig_wait(member, "online 0");
	rig_until(member, "registered", "registered 1 of 1");
	rig_until_ready(consumer, MEMBERS);
	rig_until_stat(member, "requests", served + 10);
}

/* Each call has one attempt, so none is saved by a retry. */
TEST(providers_step_aside_in_turn_without_a_failed_call)
{
	struct rig_process *consumer;
	struct rig_table table;
	uint64_t not_taken;

	start_all();
	consumer = rig_consumer(NULL,
				"url=consumer://any/demo.EchoService?cluster=failfast "
				"registry=file://%s every=2 timeout=30000",
				path);
	rig_until_ready(consumer, MEMBERS);
	rig_until_stat(consumer, "calls_ok", 100);
	/* Calls before the first list were refused. */
	not_taken = rig_table(consumer).not_taken;
	for (unsigned i = 0; i < MEMBERS; i++)
		step_aside(members[i], consumer);
	table = assert_all_ended_once(consumer);
	assert_int_equal(table.not_taken, not_taken);
	assert_int_equal(table.ok, table.taken);
	assert_ends_well(consumer);
	assert_ends_well(caller);
}
