/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the client of Redis of `spoke lock`, with a server that follows a script. */
#include "examples/spoke/lock_redis.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LIMIT_NS UINT64_C(30000000000)
#define MASTER "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
#define HOLDER "285475da-9152-4c83-822a-67ee2f116a79:52"
#define LOCK "*4\r\n:60000\r\n$39\r\n" HOLDER "\r\n$1\r\n1\r\n$1\r\n7\r\n"

/* One step of the server: a command that is read, and its reply; a reply of NULL ends the
 * connection. */
struct step {
	const char *command; /* a part of its bytes */
	const char *reply;
};

static struct {
	char folder[32];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int listener;
	pthread_t thread;
	const struct step *steps;
	unsigned done; /* steps */
	struct locker locker;
	struct lock_redis redis;
	char names[256]; /* that were listed, with a space behind each */
} stage;

/* The stage's, in place of that of lock_store.c. */
bool lock_store_read(const struct locker *locker, struct lock_store *ret)
{
	(void)locker;
	*ret = (struct lock_store){ .path = stage.path };
	return true;
}

void lock_store_free(struct lock_store *store)
{
	(void)store;
}

/* --- the server */

/* Reads until the bytes contain the command and end like one, and removes what was read. */
static bool took(int fd, const char *command, char *bytes, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		/* One byte at a time, so that the next command stays in the socket. */
		ssize_t got = read(fd, bytes + len, 1);

		if (got <= 0)
			return false;
		bytes[++len] = '\0';
		if (len > 2 && strcmp(bytes + len - 2, "\r\n") == 0 && strstr(bytes, command))
			return true;
	}
	return false;
}

static void *serve(void *arg)
{
	static char bytes[65536];
	const struct step *step = stage.steps;
	int fd = -1;

	(void)arg;
	for (; step->command; step++) {
		if (fd < 0)
			fd = accept(stage.listener, NULL, NULL);
		if (!took(fd, step->command, bytes, sizeof(bytes)))
			break;
		stage.done++;
		if (step->reply && write(fd, step->reply, strlen(step->reply)) < 0)
			break;
		if (!step->reply) {
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* Begins to play. The last step has no command. */
static void play(const struct step *steps)
{
	stage.steps = steps;
	assert_int_equal(pthread_create(&stage.thread, NULL, serve, NULL), 0);
}

static void end_play(void)
{
	lock_redis_close(&stage.redis);
	assert_int_equal(pthread_join(stage.thread, NULL), 0);
}

STEP(set_up)
{
	static const char folder[] = "/tmp/spoke.XXXXXX";
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	memset(&stage, 0, sizeof(stage));
	assert_non_null(mkdtemp(memcpy(stage.folder, folder, sizeof(folder))));
	(void)snprintf(stage.path, sizeof(stage.path), "%s/socket", stage.folder);
	memcpy(at.sun_path, stage.path, sizeof(stage.path));
	stage.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stage.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(stage.listener, 4), 0);
	stage.locker.env = *spoke_host_env();
	stage.redis.locker = &stage.locker;
	stage.redis.limit_ns = LIMIT_NS;
}

STEP(tear_down)
{
	close(stage.listener);
	(void)unlink(stage.path);
	(void)rmdir(stage.folder);
}

static bool note(void *arg, const struct lock_info *info)
{
	size_t len = strlen(stage.names);

	assert_ptr_equal(arg, &stage);
	assert_int_equal(info->holder.len, strlen(HOLDER));
	assert_int_equal(info->fence, 7);
	assert_int_equal(info->count, 1);
	assert_int_equal(info->left_ns, UINT64_C(60000000000));
	(void)snprintf(stage.names + len, sizeof(stage.names) - len, "%.*s ", (int)info->name.len,
		       (const char *)info->name.data);
	return true;
}

static int list(const char *pattern)
{
	return lock_redis_list(&stage.redis, pattern, note, &stage);
}

FIXTURE(set_up, tear_down);

/* --- listings */

TEST(listing_goes_through_all_steps)
{
	static const struct step steps[] = {
		{ "ROLE", MASTER },
		{ "\r\n0\r\n$5\r\nMATCH\r\n$1\r\n*\r\n", "*2\r\n$1\r\n7\r\n*1\r\n$1\r\na\r\n" },
		{ "redisson_lock_token:{a}", LOCK },
		{ "\r\n7\r\n", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$3\r\n{c}\r\n" },
		{ "redisson_lock_token:{b}", "$-1\r\n" },
		{ "redisson_lock_token:{c}", LOCK },
		{ NULL, NULL },
	};

	play(steps);
	assert_int_equal(list(NULL), SPOKE_OK);
	end_play();
	assert_string_equal(stage.names, "a {c} ");
	assert_int_equal(stage.done, 6);
}

TEST(store_without_the_option_type_is_listed)
{
	static const struct step steps[] = {
		{ "ROLE", "-ERR unknown command 'ROLE'\r\n" },
		{ "\r\nTYPE\r\n$4\r\nhash\r\n", "-ERR syntax error\r\n" },
		{ "\r\nCOUNT\r\n$3\r\n512\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n" },
		{ "redisson_lock_token:{a}", LOCK },
		{ NULL, NULL },
	};

	play(steps);
	assert_int_equal(list("?"), SPOKE_OK);
	end_play();
	assert_string_equal(stage.names, "a ");
}

TEST(single_name_is_looked_at_without_a_walk)
{
	static const struct step steps[] = {
		{ "ROLE", MASTER },
		{ "redisson_lock_token:{a*b}", LOCK },
		{ NULL, NULL },
	};

	play(steps);
	assert_int_equal(list("a\\*b"), SPOKE_OK);
	end_play();
	assert_string_equal(stage.names, "a*b ");
}

/* Names that were looked at before are not listed twice. */
TEST(unanswered_command_of_a_listing_is_sent_once_more)
{
	static const struct step steps[] = {
		{ "ROLE", MASTER },
		{ "SCAN", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n" },
		{ "redisson_lock_token:{a}", LOCK },
		{ "redisson_lock_token:{b}", NULL },
		{ "ROLE", MASTER },
		{ "redisson_lock_token:{b}", LOCK },
		{ NULL, NULL },
	};

	play(steps);
	assert_int_equal(list(NULL), SPOKE_OK);
	end_play();
	assert_string_equal(stage.names, "a b ");
}

TEST(listing_ends_after_two_lost_connections)
{
	static const struct step steps[] = {
		{ "ROLE", MASTER }, { "SCAN", NULL }, { "ROLE", MASTER },
		{ "SCAN", NULL },   { NULL, NULL },
	};

	play(steps);
	assert_int_equal(list(NULL), SPOKE_EUNAVAILABLE);
	end_play();
	assert_int_equal(stage.done, 4);
}

TEST(name_that_may_not_be_looked_at_is_left_out)
{
	static const struct step steps[] = {
		{ "ROLE", MASTER },
		{ "SCAN", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n" },
		{ "redisson_lock_token:{a}", "-NOPERM no permissions\r\n" },
		{ "redisson_lock_token:{b}", LOCK },
		{ NULL, NULL },
	};

	play(steps);
	assert_int_equal(list(NULL), SPOKE_OK);
	end_play();
	assert_string_equal(stage.names, "b ");
}

TEST(replies_that_are_no_resp_end_the_listing)
{
	static const char *const replies[] = {
		"HTTP/1.1 400 Bad Request\r\n", ":\r\n",         "*1x\r\n",
		"$99999999999999999999\r\n",    "$20000000\r\n", "+OK\n",
	};

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		const struct step steps[] = { { "ROLE", replies[i] }, { NULL, NULL } };

		stage.done = 0;
		play(steps);
		assert_int_equal(list(NULL), SPOKE_EUNAVAILABLE);
		assert_string_equal(stage.redis.why, "the server sent no reply of RESP2");
		end_play();
	}
}

TEST(replica_is_refused)
{
	static const struct step steps[] = {
		{ "ROLE", "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:1\r\n" },
		{ NULL, NULL },
	};

	play(steps);
	assert_int_equal(list(NULL), SPOKE_EUNAVAILABLE);
	assert_string_equal(stage.redis.why, "the server is a replica; leases need the primary");
	end_play();
}

TEST(server_that_does_not_answer_ends_the_listing)
{
	static const struct step steps[] = { { "never", NULL }, { NULL, NULL } };

	stage.redis.limit_ns = UINT64_C(20000000);
	play(steps);
	assert_int_equal(list(NULL), SPOKE_EUNAVAILABLE);
	assert_string_equal(stage.redis.why, "no answer in 20 ms");
	end_play();
}

/* --- breaks */

TEST(break_has_the_answer_of_the_store)
{
	static const struct {
		const char *reply;
		int error;
	} rows[] = {
		{ ":1\r\n", SPOKE_OK },
		{ ":0\r\n", SPOKE_ENOENT },
		{ "-WRONGTYPE Operation\r\n", SPOKE_ESTORE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct step steps[] = {
			{ "ROLE", MASTER },
			{ "redisson_lock__channel:{a}", rows[i].reply },
			{ NULL, NULL },
		};

		play(steps);
		assert_int_equal(lock_redis_break(&stage.redis, "a"), rows[i].error);
		end_play();
	}
}

/* Sent again it could break the lease of the next holder. */
TEST(break_with_a_lost_answer_is_not_repeated)
{
	static const struct step steps[] = {
		{ "ROLE", MASTER },
		{ "redisson_lock__channel:{a}", NULL },
		{ NULL, NULL },
	};
	struct pollfd next;

	play(steps);
	assert_int_equal(lock_redis_break(&stage.redis, "a"), SPOKE_EUNAVAILABLE);
	end_play();
	next = (struct pollfd){ .fd = stage.listener, .events = POLLIN };
	assert_int_equal(poll(&next, 1, 0), 0);
}
