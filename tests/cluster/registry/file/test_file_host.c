/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry on a real disk: each kind of change is noticed. */
#define _GNU_SOURCE

#include <spoke/host.h>

#include "cluster/registry/file/file.h"
#include "core/host/files.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define A "dubbo://10.0.0.1:20880/demo.Echo"
#define B "dubbo://10.0.0.2:20880/demo.Echo"
#define PATIENCE_NS UINT64_C(20000000000)

enum {
	USERS = 2
};

/* A user of a registry on the engine. */
struct user {
	void *registry;
	unsigned done;
	unsigned lost;
	int error;
	char list[300];
};

struct rig {
	char folder[64];
	char path[128];
	char other[128];
	char lock[128];
	struct spoke_engine *engine;
	struct user users[USERS];
};

static void note_done(void *arg, uint64_t intent, int error)
{
	struct user *user = arg;

	(void)intent;
	user->done++;
	user->error = error;
}

static void note_list(void *arg, uint64_t intent, const char *const *urls, size_t count)
{
	struct user *user = arg;
	size_t len = 0;

	(void)intent;
	user->list[0] = '\0';
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(user->list + len, sizeof(user->list) - len, "%s\n",
					urls[i]);
}

static void note_lost(void *arg, uint64_t intent, int error)
{
	(void)intent;
	(void)error;
	((struct user *)arg)->lost++;
}

static const struct spoke_registry_up up = { .done = note_done,
					     .list = note_list,
					     .lost = note_lost };

static void open_all(struct rig *rig)
{
	char text[160];
	struct spoke_url url;

	(void)snprintf(text, sizeof(text), "file://%s", rig->path);
	assert_int_equal(spoke_url_parse(spoke_host_env(), text, strlen(text), &url, NULL), 0);
	for (int i = 0; i < USERS; i++) {
		(void)snprintf(rig->users[i].list, sizeof(rig->users[i].list), "none");
		assert_int_equal(spokei_registry_file.open(rig->engine, &url, &up, &rig->users[i],
							   &rig->users[i].registry),
				 0);
	}
	spoke_url_fini(&url);
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL)
		return -1;
	(void)snprintf(rig->folder, sizeof(rig->folder), "/tmp/spoke-test-registry-XXXXXX");
	if (mkdtemp(rig->folder) == NULL || spoke_engine_new(NULL, &rig->engine))
		return -1;
	(void)snprintf(rig->path, sizeof(rig->path), "%s/file", rig->folder);
	(void)snprintf(rig->other, sizeof(rig->other), "%s/other", rig->folder);
	(void)snprintf(rig->lock, sizeof(rig->lock), "%s/file.lock", rig->folder);
	open_all(rig);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < USERS; i++)
		spokei_registry_file.close(rig->users[i].registry);
	spoke_engine_free(rig->engine);
	(void)unlink(rig->path);
	(void)unlink(rig->other);
	(void)unlink(rig->lock);
	(void)rmdir(rig->folder);
	free(rig);
	return 0;
}

FIXTURE(set_up, tear_down);

static bool has_list(const struct user *user, const char *list)
{
	return strcmp(user->list, list) == 0;
}

/* Turns until the user has this list and these numbers of completions and losses. */
static void await(struct rig *rig, const struct user *user, const char *list, unsigned done,
		  unsigned lost)
{
	const struct spoke_env *env = spoke_host_env();
	uint64_t end_ns = env->now(env->ctx) + PATIENCE_NS;

	while (!has_list(user, list) || user->done < done || user->lost < lost) {
		assert_true(env->now(env->ctx) < end_ns);
		assert_int_equal(spoke_engine_turn(rig->engine, true), 0);
	}
	assert_int_equal(user->done, done);
	assert_int_equal(user->lost, lost);
}

static void put(const char *path, const char *text)
{
	(void)unlink(path);
	assert_int_equal(spokei_host_files.append(NULL, path, text, strlen(text)), 0);
}

TEST(every_kind_of_file_change_is_seen)
{
	struct rig *rig = *state;
	struct user *user = &rig->users[0];

	assert_int_equal(spokei_registry_file.subscribe(user->registry, 1, "demo.Echo"), 0);
	await(rig, user, "", 1, 0);
	put(rig->path, A "\n");
	await(rig, user, A "\n", 1, 0);
	assert_int_equal(spokei_host_files.append(NULL, rig->path, B "\n", strlen(B "\n")), 0);
	await(rig, user, A "\n" B "\n", 1, 0);
	put(rig->other, B "\n");
	assert_int_equal(rename(rig->other, rig->path), 0);
	await(rig, user, B "\n", 1, 0);
	assert_int_equal(unlink(rig->path), 0);
	await(rig, user, "", 1, 0);
	put(rig->path, A "\n");
	await(rig, user, A "\n", 1, 0);
	assert_int_equal(truncate(rig->path, 0), 0);
	await(rig, user, "", 1, 0);
}

TEST(publication_is_seen_and_can_be_lost)
{
	struct rig *rig = *state;
	struct user *sees = &rig->users[0];
	struct user *is_seen = &rig->users[1];

	assert_int_equal(spokei_registry_file.subscribe(sees->registry, 1, "demo.Echo"), 0);
	assert_int_equal(spokei_registry_file.publish(is_seen->registry, 1, "demo.Echo", A), 0);
	await(rig, sees, A "\n", 1, 0);
	await(rig, is_seen, "none", 1, 0);
	assert_int_equal(is_seen->error, 0);
	put(rig->path, B "\n");
	await(rig, sees, B "\n", 1, 0);
	await(rig, is_seen, "none", 1, 1);
	assert_int_equal(spokei_registry_file.publish(is_seen->registry, 2, "demo.Echo", A), 0);
	await(rig, sees, B "\n" A "\n", 1, 0);
	assert_int_equal(spokei_registry_file.withdraw(is_seen->registry, 3, 2), 0);
	await(rig, sees, B "\n", 1, 0);
	await(rig, is_seen, "none", 3, 1);
}

TEST(recreated_directory_is_found_again)
{
	struct rig *rig = *state;
	struct user *user = &rig->users[0];

	put(rig->path, A "\n");
	assert_int_equal(spokei_registry_file.subscribe(user->registry, 1, "demo.Echo"), 0);
	await(rig, user, A "\n", 1, 0);
	assert_int_equal(unlink(rig->path), 0);
	assert_int_equal(rmdir(rig->folder), 0);
	await(rig, user, "", 1, 0);
	assert_int_equal(spokei_registry_file.publish(user->registry, 2, "demo.Echo", A), 0);
	await(rig, user, "", 2, 0);
	assert_int_equal(user->error, SPOKE_ESYSTEM);
	assert_int_equal(mkdir(rig->folder, 0700), 0);
	put(rig->path, B "\n");
	await(rig, user, B "\n", 2, 0);
}

TEST(foreign_lock_is_awaited)
{
	struct rig *rig = *state;
	struct user *user = &rig->users[0];
	int fd;

	assert_int_equal(spokei_host_files.lock(NULL, rig->path, &fd), 0);
	assert_int_equal(spokei_registry_file.publish(user->registry, 1, "demo.Echo", A), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(spoke_engine_turn(rig->engine, true), 0);
	assert_int_equal(user->done, 0);
	spokei_host_files.unlock(NULL, fd);
	await(rig, user, "none", 1, 0);
	assert_int_equal(user->error, 0);
}

/* Returns the path of the mark in the file, valid until the next call. */
static const char *mark_of(const struct rig *rig)
{
	static char path[160];
	char text[300] = "";
	const char *at;

	assert_true(spokei_host_files.read(NULL, rig->path, text, sizeof(text) - 1) > 0);
	at = strstr(text, "lock=");
	assert_non_null(at);
	(void)snprintf(path, sizeof(path), "%s.%.16s", rig->path, at + 5);
	return path;
}

TEST(forked_child_leaves_mark_to_its_parent)
{
	struct rig *rig = *state;
	struct user *user = &rig->users[0];
	int status;
	pid_t child;

	assert_int_equal(spokei_registry_file.publish(user->registry, 1, "demo.Echo", A), 0);
	await(rig, user, "none", 1, 0);
	child = fork();
	if (child == 0) {
		spokei_registry_file.close(user->registry);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(spokei_host_files.is_locked(NULL, mark_of(rig)), 1);
}
