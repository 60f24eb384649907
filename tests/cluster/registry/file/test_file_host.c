/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry on a real disk: each kind of change is noticed. */
#define _GNU_SOURCE

#include <spoke/host.h>

#include "cluster/registry/registries.h"
#include "core/host/host.h"
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
	struct spoke_registry_entry *listing; /* the subscription; NULL: none */
	struct spoke_registry_entry *listed;  /* the publication of A; NULL: none */
	struct spoke_url url;                 /* of that */
	bool held;                            /* it is published */
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

static void note_state(void *arg, struct spoke_registry_entry *entry, int error)
{
	struct user *user = arg;
	bool lost = error && entry == user->listed && user->held;

	user->lost += lost;
	user->done += !lost;
	user->error = error;
	user->held = entry == user->listed ? !error : user->held;
}

static void note_list(void *arg, struct spoke_registry_entry *entry, const char *texts,
		      size_t count)
{
	struct user *user = arg;
	size_t len = 0;

	assert_ptr_equal(entry, user->listing);
	user->list[0] = '\0';
	for (; count > 0; count--) {
		len += (size_t)snprintf(user->list + len, sizeof(user->list) - len, "%s\n", texts);
		texts += strlen(texts) + 1;
	}
}

static const struct spoke_registry_up up = { .state = note_state, .list = note_list };

static void subscribe(struct user *user)
{
	user->listing = calloc(1, spokei_registry_file.entry_size);
	assert_non_null(user->listing);
	user->listing->service = "demo.Echo";
	user->listing->category = SPOKE_REGISTRY_PROVIDERS;
	spokei_registry_file.want(user->registry, user->listing);
}

static void publish(struct user *user)
{
	if (user->listed == NULL) {
		user->listed = calloc(1, spokei_registry_file.entry_size);
		assert_non_null(user->listed);
		assert_int_equal(spoke_url_parse(spoke_host_env(), A, strlen(A), &user->url, NULL),
				 0);
		user->listed->service = "demo.Echo";
		user->listed->category = SPOKE_REGISTRY_PROVIDERS;
		user->listed->url = &user->url;
		user->listed->text = A;
	}
	spokei_registry_file.want(user->registry, user->listed);
}

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

STEP(tear_down)
{
	struct rig *rig = *state;

	for (int i = 0; i < USERS; i++) {
		spokei_registry_file.close(rig->users[i].registry);
		free(rig->users[i].listing);
		free(rig->users[i].listed);
		spoke_url_fini(&rig->users[i].url);
	}
	spoke_engine_free(rig->engine);
	(void)unlink(rig->path);
	(void)unlink(rig->other);
	(void)unlink(rig->lock);
	(void)rmdir(rig->folder);
	free(rig);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

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

RIG_TEST(every_kind_of_file_change_is_seen)
{
	struct user *user = &rig->users[0];

	subscribe(user);
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

RIG_TEST(publication_is_seen_and_can_be_lost)
{
	struct user *sees = &rig->users[0];
	struct user *is_seen = &rig->users[1];

	subscribe(sees);
	publish(is_seen);
	await(rig, sees, A "\n", 1, 0);
	await(rig, is_seen, "none", 1, 0);
	assert_int_equal(is_seen->error, 0);
	put(rig->path, B "\n");
	await(rig, sees, B "\n", 1, 0);
	await(rig, is_seen, "none", 1, 1);
	publish(is_seen);
	await(rig, sees, B "\n" A "\n", 1, 0);
	/* The new file is seen before its writer is told that the disk has it. */
	await(rig, is_seen, "none", 2, 1);
	spokei_registry_file.unwant(is_seen->registry, is_seen->listed);
	await(rig, sees, B "\n", 1, 0);
	await(rig, is_seen, "none", 3, 1);
}

RIG_TEST(recreated_directory_is_found_again)
{
	struct user *user = &rig->users[0];

	put(rig->path, A "\n");
	subscribe(user);
	await(rig, user, A "\n", 1, 0);
	assert_int_equal(unlink(rig->path), 0);
	assert_int_equal(rmdir(rig->folder), 0);
	await(rig, user, "", 1, 0);
	publish(user);
	await(rig, user, "", 2, 0);
	assert_int_equal(user->error, SPOKE_ESYSTEM);
	assert_int_equal(mkdir(rig->folder, 0700), 0);
	put(rig->path, B "\n");
	await(rig, user, B "\n", 2, 0);
}

RIG_TEST(foreign_lock_is_awaited)
{
	struct user *user = &rig->users[0];
	int fd;

	assert_int_equal(spokei_host_files.lock(NULL, rig->path, &fd), 0);
	publish(user);
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

RIG_TEST(forked_child_leaves_mark_to_its_parent)
{
	struct user *user = &rig->users[0];
	int status;
	pid_t child;

	publish(user);
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
