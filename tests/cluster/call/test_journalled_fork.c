/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer with a journal whose process forks: the child writes nothing to the journal and leaves
 * its lock to the parent, whether it frees the engine or just ends.
 */
#define _GNU_SOURCE
#include "cluster/journal/log.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/journal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX ((size_t)16 << 20)

static struct {
	char folder[FOLDER_PATH];
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	unsigned deferred;
	unsigned ended;
	unsigned recoveries;
	unsigned char *before;
	unsigned char *after;
} rig;

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.deferred += result->error == SPOKE_EDEFERRED;
}

static void recovered(void *arg, const struct spoke_recovered *found)
{
	(void)arg;
	assert_int_equal(found->error, SPOKE_OK);
	rig.recoveries++;
}

static int set_up(void **state)
{
	struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:1/demo.Echo?cluster=failback&retry.period=1h&"
		       "journal.wait=60s&journal.sync=1h",
		.recovered = recovered,
	};

	(void)state;
	memset(&rig, 0, sizeof(rig));
	folder_make(rig.folder);
	rig.before = malloc(FILES_MAX);
	rig.after = malloc(FILES_MAX);
	assert_true(rig.before && rig.after);
	options.journal = rig.folder;
	assert_int_equal(spoke_engine_new(NULL, &rig.engine), 0);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.method), 0);
	while (rig.recoveries == 0)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (rig.engine)
		spoke_engine_free(rig.engine);
	free(rig.before);
	free(rig.after);
	folder_remove(rig.folder);
	return 0;
}

FIXTURE(set_up, tear_down);

static void begin_call(void)
{
	static const unsigned char one[] = { 0x01 };
	unsigned ended = rig.ended;

	if (spoke_call(rig.method, (struct spoke_span){ one, 1 }, NULL, done, NULL, NULL) != 0)
		fail_msg("%s", spoke_engine_why(rig.engine));
	assert_int_equal(rig.ended, ended);
}

static void defer_call(void)
{
	unsigned deferred = rig.deferred;

	begin_call();
	while (rig.deferred == deferred)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
}

/* Reads all segments. */
static size_t read_files(unsigned char *bytes)
{
	const struct spoke_env *env = spoke_host_env();
	size_t len = 0;

	for (unsigned number = 1; number < 4; number++) {
		char path[96];
		ssize_t got;

		(void)snprintf(path, sizeof(path), "%s/%08u.spokej", rig.folder, number);
		got = env->files->read(env->ctx, path, bytes + len, FILES_MAX - len);
		len += got > 0 ? (size_t)got : 0;
	}
	return len;
}

static void assert_locked(void)
{
	struct spokei_journal_log other;
	int status;

	assert_int_equal(spokei_log_lock(&other, spoke_host_env(), rig.folder, &status),
			 SPOKE_EEXIST);
}

/* Forks, with a record that waits to be written, and lets the child end. */
static void fork_child(bool frees)
{
	size_t len = read_files(rig.before);
	int status = 0;
	pid_t child;

	begin_call();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (frees)
			spoke_engine_free(rig.engine);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read_files(rig.after), len);
	assert_memory_equal(rig.after, rig.before, len);
	assert_locked();
}

/* The parent goes on: all tickets are in its journal. */
static void check_parent(void)
{
	struct spoke_journal_report report;

	while (rig.deferred < 2)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	defer_call();
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	assert_int_equal(spoke_journal_read(NULL, rig.folder, NULL, NULL, &report), 0);
	assert_int_equal(report.tickets, 3);
	assert_false(report.used || report.torn || report.damaged);
}

TEST(child_that_frees_the_engine_leaves_the_journal_alone)
{
	defer_call();
	fork_child(true);
	check_parent();
}

TEST(child_that_ends_leaves_the_journal_alone)
{
	defer_call();
	fork_child(false);
	check_parent();
}
