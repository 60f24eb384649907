/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real environment: clocks, random numbers, memory. Its network and files have their own tests.
 */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/host.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	THROW = 32,
	THROWS = 200,
};

TEST(the_environment_is_whole_and_does_not_log)
{
	const struct spoke_env *env = spoke_host_env();

	assert_ptr_equal(env, spoke_host_env());
	assert_non_null(env->now);
	assert_non_null(env->coarse);
	assert_non_null(env->boot_now);
	assert_non_null(env->wall);
	assert_non_null(env->dice);
	assert_non_null(env->resize);
	assert_null(env->log);
	assert_non_null(env->net->connect);
	assert_non_null(env->net->resolve);
	assert_non_null(env->net->guard);
	assert_non_null(env->signals->open);
	assert_non_null(env->files->read);
	assert_non_null(env->files->replace);
}

TEST(both_clocks_go_forward_only)
{
	const struct spoke_env *env = spoke_host_env();
	uint64_t now = env->now(env->ctx);
	uint64_t boot_now = env->boot_now(env->ctx);

	assert_true(now > 0);
	for (int i = 0; i < 10000; i++) {
		uint64_t later = env->now(env->ctx);
		uint64_t boot_later = env->boot_now(env->ctx);

		assert_true(later >= now);
		assert_true(boot_later >= boot_now);
		assert_true(env->coarse(env->ctx) <= env->now(env->ctx));
		now = later;
		boot_now = boot_later;
	}
}

static void throw(unsigned char *bytes, size_t len)
{
	const struct spoke_env *env = spoke_host_env();

	memset(bytes, 0, len);
	env->dice(env->ctx, bytes, len);
}

TEST(dice_of_any_length_fill_it_and_no_more)
{
	unsigned char bytes[2000];
	unsigned seen = 0;

	for (size_t len = 0; len < sizeof(bytes); len += 1 + len / 2) {
		memset(bytes, 0, sizeof(bytes));
		throw(bytes, len);
		for (size_t i = len; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], 0);
	}
	throw(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		seen |= bytes[i];
	assert_int_equal(seen, 0xff);
}

TEST(dice_do_not_repeat)
{
	static unsigned char thrown[THROWS][THROW];

	for (int i = 0; i < THROWS; i++) {
		throw(thrown[i], THROW);
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(thrown[i], thrown[j], THROW);
	}
}

static void *throw_there(void *arg)
{
	throw(arg, THROW);
	return NULL;
}

TEST(each_thread_throws_its_own)
{
	unsigned char here[THROW];
	unsigned char there[THROW];
	pthread_t thread;

	throw(here, THROW);
	assert_int_equal(pthread_create(&thread, NULL, throw_there, there), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	throw(here, THROW);
	assert_memory_not_equal(here, there, THROW);
}

TEST(forked_child_has_other_random_numbers_than_parent)
{
	unsigned char here[THROW];
	unsigned char there[THROW];
	int ends[2];
	int status;
	pid_t child;

	throw(here, THROW); /* fills the store of random bytes that the child inherits */
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		throw(there, THROW);
		_exit(write(ends[1], there, THROW) != THROW);
	}
	throw(here, THROW);
	assert_int_equal(read(ends[0], there, THROW), THROW);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_memory_not_equal(here, there, THROW);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

TEST(memory_grows_shrinks_and_is_freed_by_length_zero)
{
	const struct spoke_env *env = spoke_host_env();
	char *memory = env->resize(env->ctx, NULL, 0, 10);

	assert_non_null(memory);
	memcpy(memory, "123456789", 10);
	memory = env->resize(env->ctx, memory, 10, 100000);
	assert_non_null(memory);
	assert_string_equal(memory, "123456789");
	memset(memory, 'x', 100000);
	memory = env->resize(env->ctx, memory, 100000, 3);
	assert_non_null(memory);
	assert_memory_equal(memory, "xxx", 3);
	assert_null(env->resize(env->ctx, memory, 3, 0));
	assert_null(env->resize(env->ctx, NULL, 0, 0));
}
