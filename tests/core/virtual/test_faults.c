/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment that fails on demand: the call that fails, the number of failures, the counters.
 */
#include <spoke/host.h>

#include "core/virtual/faults.h"
#include "core/virtual/net.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rig {
	struct spokei_vnet_user user; /* the inner environment's context */
	struct spoke_env inner;
	struct spokei_faults faulty;
};

static uint64_t rig_now(void *arg)
{
	(void)arg;
	return 5;
}

static void rig_dice(void *ctx, void *bytes, size_t len)
{
	(void)ctx;
	memset(bytes, 6, len);
}

static void *rig_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	(void)ctx;
	(void)old_len;
	if (len == 0) {
		free(memory);
		return NULL;
	}
	return realloc(memory, len);
}

static ssize_t rig_file_read(void *ctx, const char *path, void *bytes, size_t size)
{
	(void)ctx;
	(void)path;
	(void)bytes;
	return (ssize_t)size;
}

static int rig_file_append(void *ctx, const char *path, const void *bytes, size_t len)
{
	(void)ctx;
	(void)path;
	(void)bytes;
	(void)len;
	return 0;
}

static int rig_file_replace(void *ctx, const char *path, const void *bytes, size_t len,
			    bool is_private)
{
	(void)is_private;
	return rig_file_append(ctx, path, bytes, len);
}

static int rig_file_open(void *ctx, const char *path, int *ret_fd)
{
	(void)path;
	return spokei_vnet_table.spare(ctx, ret_fd);
}

static void rig_file_close(void *ctx, int fd)
{
	spokei_vnet_table.close(ctx, fd);
}

static int rig_file_ask(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
	return 0;
}

static int rig_loop_open(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
			 void **ret_loop)
{
	(void)native;
	(void)up;
	(void)arg;
	*ret_loop = ctx;
	return 0;
}

static int rig_thread_start(void *ctx, void (*run)(void *arg), void *arg, void **ret_thread)
{
	(void)run;
	(void)arg;
	*ret_thread = ctx;
	return 0;
}

static int rig_parker_open(void *ctx, void **ret_parker)
{
	*ret_parker = ctx;
	return 0;
}

static int rig_signal_open(void *ctx, int number, int *ret_fd)
{
	(void)number;
	return spokei_vnet_table.spare(ctx, ret_fd);
}

static void rig_signal_close(void *ctx, int fd)
{
	spokei_vnet_table.close(ctx, fd);
}

static int rig_host_id(void *ctx, uint64_t *ret_id)
{
	(void)ctx;
	*ret_id = 1;
	return 0;
}

static int rig_log_open(void *ctx, const char *path, bool is_new, int *ret_fd)
{
	(void)is_new;
	return rig_file_open(ctx, path, ret_fd);
}

static int rig_log_write(void *ctx, int fd, uint64_t at, const void *bytes, size_t len)
{
	(void)ctx;
	(void)fd;
	(void)at;
	(void)bytes;
	(void)len;
	return 0;
}

static int rig_log_allocate(void *ctx, int fd, uint64_t size)
{
	return rig_log_write(ctx, fd, size, NULL, 0);
}

static int rig_log_sync(void *ctx, int fd)
{
	return rig_log_write(ctx, fd, 0, NULL, 0);
}

static ssize_t rig_list(void *ctx, const char *folder, char *names, size_t size)
{
	(void)ctx;
	(void)folder;
	(void)names;
	return (ssize_t)size;
}

static const struct spoke_manager rig_manager = { .notify = rig_file_ask };
static const struct spoke_signals rig_signals = { .open = rig_signal_open,
						  .close = rig_signal_close };
static const struct spoke_threads rig_threads = { .start = rig_thread_start,
						  .open = rig_parker_open };
static const struct spoke_files rig_files = { .read = rig_file_read,
					      .replace = rig_file_replace,
					      .append = rig_file_append,
					      .watch = rig_file_open,
					      .unwatch = rig_file_close,
					      .lock = rig_file_open,
					      .unlock = rig_file_close,
					      .is_locked = rig_file_ask,
					      .sweep = rig_file_ask,
					      .open_log = rig_log_open,
					      .write_at = rig_log_write,
					      .allocate = rig_log_allocate,
					      .sync = rig_log_sync,
					      .sync_folder = rig_file_ask,
					      .list = rig_list,
					      .remove = rig_file_ask };
static const struct spoke_loop rig_loop = { .open = rig_loop_open };

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL)
		return -1;
	rig->user.net = spokei_vnet_new(&(struct spokei_vnet_options){ .now = rig_now });
	*state = rig;
	if (rig->user.net == NULL)
		return -1;
	rig->inner = (struct spoke_env){ .ctx = rig,
					 .now = rig_now,
					 .boot_now = rig_now,
					 .dice = rig_dice,
					 .resize = rig_resize,
					 .net = &spokei_vnet_table,
					 .loop = &rig_loop,
					 .files = &rig_files,
					 .threads = &rig_threads,
					 .signals = &rig_signals,
					 .manager = &rig_manager,
					 .host_id = rig_host_id };
	spokei_faults_init(&rig->faulty, &rig->inner);
	return 0;
}

STEP(tear_down)
{
	struct rig *rig = *state;

	assert_int_equal(rig->user.fds, 0);
	spokei_vnet_free(rig->user.net);
	free(rig);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

TEST(memory_is_counted_moves_and_is_not_zero)
{
	struct spokei_faults *faulty = &((struct rig *)*state)->faulty;
	const struct spoke_env *env = &faulty->env;
	unsigned char *one = env->resize(env->ctx, NULL, 0, 100);
	unsigned char *two = env->resize(env->ctx, NULL, 0, 10);
	uintptr_t before = (uintptr_t)one;

	assert_int_equal(one[0], 0xa5);
	assert_int_equal(one[99], 0xa5);
	assert_int_equal(faulty->blocks, 2);
	assert_int_equal(faulty->bytes, 110);
	memset(one, 1, 100);
	one = env->resize(env->ctx, one, 100, 1000);
	assert_true((uintptr_t)one != before);
	assert_int_equal(one[99], 1);
	assert_int_equal(one[100], 0xa5);
	assert_int_equal(faulty->bytes, 1010);
	one = env->resize(env->ctx, one, 1000, 5);
	assert_int_equal(one[4], 1);
	assert_int_equal(faulty->bytes, 15);
	assert_int_equal(faulty->largest, 1000);
	assert_null(env->resize(env->ctx, one, 5, 0));
	assert_null(env->resize(env->ctx, two, 10, 0));
	assert_int_equal(faulty->blocks, 0);
	assert_int_equal(faulty->bytes, 0);
	assert_true(faulty->bytes_peak >= 1010);
}

TEST(a_failed_demand_leaves_the_block_as_it_was)
{
	struct spokei_faults *faulty = &((struct rig *)*state)->faulty;
	const struct spoke_env *env = &faulty->env;
	char *block = env->resize(env->ctx, NULL, 0, 8);

	memcpy(block, "content", 8);
	spokei_faults_fail(faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	assert_null(env->resize(env->ctx, block, 8, 16));
	assert_string_equal(block, "content");
	assert_int_equal(faulty->bytes, 8);
	assert_null(env->resize(env->ctx, NULL, 0, SIZE_MAX));
	/* Freeing memory does not count as a request. */
	spokei_faults_fail(faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, true);
	assert_null(env->resize(env->ctx, block, 8, 0));
	assert_int_equal(faulty->blocks, 0);
}

/* Makes a call of this kind on open descriptors: 0 is connected, 1 listens. Returns its result. */
static int call_fixed(struct rig *rig, enum spokei_faults_kind kind)
{
	const struct spoke_env *env = &rig->faulty.env;
	const struct spoke_net *net = env->net;
	struct spoke_address address;
	char byte = 0;
	struct iovec part = { &byte, 1 };
	uint64_t host_id;
	struct spoke_shared shared = { NULL, 0 };
	uint32_t uid;
	uint32_t gid;
	int32_t pid;
	int fd;
	int error;

	switch ((int)kind) {
	case SPOKEI_FAULTS_FINISH:
		return net->finish(env->ctx, 0);
	case SPOKEI_FAULTS_ACCEPT:
		error = net->accept(env->ctx, 1, &fd, &address);
		return error == -EAGAIN ? 0 : error;
	case SPOKEI_FAULTS_READ:
		error = (int)net->read(env->ctx, 0, &byte, 1);
		return error == -EAGAIN ? 0 : error;
	case SPOKEI_FAULTS_WRITE:
		error = (int)net->write(env->ctx, 0, &part, 1);
		return error == 1 ? 0 : error;
	case SPOKEI_FAULTS_SHUT:
		return net->shut(env->ctx, 0);
	case SPOKEI_FAULTS_LOCAL:
		return net->local(env->ctx, 0, &address);
	case SPOKEI_FAULTS_PEER:
		return net->peer(env->ctx, 0, &address);
	case SPOKEI_FAULTS_GUARD:
		return net->guard(env->ctx, 0, 1, 1);
	case SPOKEI_FAULTS_HOST_ID:
		return env->host_id(env->ctx, &host_id);
	case SPOKEI_FAULTS_CREDENTIALS:
		return net->credentials(env->ctx, 0, &uid, &gid, &pid);
	case SPOKEI_FAULTS_SHARE:
		error = net->share(env->ctx, 0, &part, 1, &shared);
		if (!error)
			net->unshare(env->ctx, &shared);
		return error == -EPIPE ? 0 : error; /* shut by another kind before */
	case SPOKEI_FAULTS_SHARED:
		error = (int)net->shared(env->ctx, 0, &part, 1, &shared);
		if (shared.memory)
			net->unshare(env->ctx, &shared);
		return error == -EAGAIN || error == 1 ? 0 : error;
	default:
		fail();
		return 0;
	}
}

static int call_logs(const struct spoke_env *env, enum spokei_faults_kind kind)
{
	const struct spoke_files *files = env->files;
	char names[8];
	int error;
	int fd;

	switch ((int)kind) {
	case SPOKEI_FAULTS_FILE_OPEN_LOG:
		error = files->open_log(env->ctx, "x", true, &fd);
		if (!error)
			env->net->close(env->ctx, fd);
		return error;
	case SPOKEI_FAULTS_FILE_WRITE_AT:
		return files->write_at(env->ctx, 0, 0, "", 0);
	case SPOKEI_FAULTS_FILE_ALLOCATE:
		return files->allocate(env->ctx, 0, 1);
	case SPOKEI_FAULTS_FILE_SYNC:
		return files->sync(env->ctx, 0);
	case SPOKEI_FAULTS_FILE_SYNC_FOLDER:
		return files->sync_folder(env->ctx, "x");
	case SPOKEI_FAULTS_FILE_LIST:
		error = (int)files->list(env->ctx, "x", names, sizeof(names));
		return error == sizeof(names) ? 0 : error;
	case SPOKEI_FAULTS_FILE_REMOVE:
		return files->remove(env->ctx, "x");
	default:
		return 1;
	}
}

static int call_files(const struct spoke_env *env, enum spokei_faults_kind kind)
{
	char byte;
	int error;
	int fd;

	switch ((int)kind) {
	case SPOKEI_FAULTS_FILE_READ:
		error = (int)env->files->read(env->ctx, "x", &byte, 1);
		return error == 1 ? 0 : error;
	case SPOKEI_FAULTS_FILE_REPLACE:
		return env->files->replace(env->ctx, "x", "", 0, false);
	case SPOKEI_FAULTS_FILE_APPEND:
		return env->files->append(env->ctx, "x", "", 0);
	case SPOKEI_FAULTS_FILE_WATCH:
		error = env->files->watch(env->ctx, "x", &fd);
		if (!error)
			env->files->unwatch(env->ctx, fd);
		return error;
	case SPOKEI_FAULTS_FILE_LOCK:
		error = env->files->lock(env->ctx, "x", &fd);
		if (!error)
			env->files->unlock(env->ctx, fd);
		return error;
	case SPOKEI_FAULTS_FILE_IS_LOCKED:
		return env->files->is_locked(env->ctx, "x");
	case SPOKEI_FAULTS_FILE_SWEEP:
		return env->files->sweep(env->ctx, "x");
	default:
		return call_logs(env, kind);
	}
}

/* Makes a call of this kind. Returns 0 or its error. */
static int call(struct rig *rig, enum spokei_faults_kind kind)
{
	const struct spoke_env *env = &rig->faulty.env;
	const struct spoke_net *net = env->net;
	struct spoke_address address = { .len = 5, .bytes = "mem:x" };
	void *memory;
	int fd = -1;
	int error = 0;

	switch ((int)kind) {
	case SPOKEI_FAULTS_MEMORY:
		memory = env->resize(env->ctx, NULL, 0, 1);
		(void)env->resize(env->ctx, memory, memory ? 1 : 0, 0);
		return memory ? 0 : -ENOMEM;
	case SPOKEI_FAULTS_LISTEN:
		error = net->listen(env->ctx, &address, 1, &fd);
		break;
	case SPOKEI_FAULTS_SPARE:
		error = net->spare(env->ctx, &fd);
		break;
	case SPOKEI_FAULTS_SIGNAL_OPEN:
		error = env->signals->open(env->ctx, 1, &fd);
		if (!error)
			env->signals->close(env->ctx, fd);
		return error;
	case SPOKEI_FAULTS_NOTIFY:
		return env->manager->notify(env->ctx, "READY=1");
	case SPOKEI_FAULTS_CONNECT:
		error = net->connect(env->ctx, &address, &fd);
		error = error == -EINPROGRESS ? 0 : error;
		break;
	case SPOKEI_FAULTS_PARSE:
		return net->parse(env->ctx, "mem:x", &address);
	case SPOKEI_FAULTS_RESOLVE:
		error = net->resolve(env->ctx, "127.0.0.1", 1, &address, 1);
		return error == 1 ? 0 : error;
	case SPOKEI_FAULTS_LOOP_OPEN:
		error = env->loop->open(env->ctx, NULL, NULL, NULL, &memory);
		if (!error)
			assert_ptr_equal(memory, rig);
		return error;
	case SPOKEI_FAULTS_THREAD_START:
		return env->threads->start(env->ctx, NULL, NULL, &memory);
	case SPOKEI_FAULTS_PARKER_OPEN:
		return env->threads->open(env->ctx, &memory);
	default:
		error = call_files(env, kind);
		return error == 1 ? call_fixed(rig, kind) : error;
	}
	if (fd >= 0)
		net->close(env->ctx, fd);
	return error;
}
/* Opens descriptor 0, a connection to itself, and descriptor 1, a listener. */
static void open_fixed(struct rig *rig)
{
	const struct spoke_env *env = &rig->faulty.env;
	struct spoke_address self;
	struct spoke_address listening;
	int fd;

	assert_int_equal(env->net->parse(env->ctx, "unix:/self", &self), 0);
	assert_int_equal(env->net->parse(env->ctx, "mem:listening", &listening), 0);
	spokei_vnet_route(rig->user.net, "unix:/self", SPOKEI_VNET_SELF);
	assert_int_equal(env->net->connect(env->ctx, &self, &fd), -EINPROGRESS);
	assert_int_equal(fd, 0);
	assert_int_equal(env->net->listen(env->ctx, &listening, 1, &fd), 0);
	assert_int_equal(fd, 1);
}

static void close_fixed(struct rig *rig)
{
	const struct spoke_env *env = &rig->faulty.env;

	assert_int_equal(rig->faulty.fds, 2);
	env->net->close(env->ctx, 0);
	env->net->close(env->ctx, 1);
	assert_int_equal(rig->faulty.fds, 0);
}

RIG_TEST(any_kind_of_call_fails_once_at_its_turn)
{
	open_fixed(rig);
	for (enum spokei_faults_kind kind = 0; kind < SPOKEI_FAULTS_KINDS; kind++) {
		int error = kind == SPOKEI_FAULTS_MEMORY ? -ENOMEM : -EMFILE;
		uint64_t before;

		if (kind == SPOKEI_FAULTS_SHUT)
			continue; /* would close the connection; tested below */
		before = rig->faulty.calls[kind];
		spokei_faults_fail(&rig->faulty, kind, 3, error, false);
		for (int turn = 1; turn <= 5; turn++) {
			if (call(rig, kind) != (turn == 3 ? error : 0))
				fail_msg("%s %d", spokei_faults_kind_name(kind), turn);
		}
		assert_int_equal(rig->faulty.calls[kind], before + 5);
		assert_int_equal(rig->faulty.failed[kind], 1);
	}
	spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_SHUT, 1, -EMFILE, false);
	assert_int_equal(call(rig, SPOKEI_FAULTS_SHUT), -EMFILE);
	assert_int_equal(call(rig, SPOKEI_FAULTS_SHUT), 0);
	close_fixed(rig);
}

RIG_TEST(any_kind_of_call_fails_for_ever_until_it_is_healed)
{
	open_fixed(rig);
	for (enum spokei_faults_kind kind = 0; kind < SPOKEI_FAULTS_KINDS; kind++) {
		int error = kind == SPOKEI_FAULTS_MEMORY ? -ENOMEM : -ENETDOWN;

		spokei_faults_fail(&rig->faulty, kind, 1, error, true);
		for (int turn = 0; turn < 4; turn++)
			assert_int_equal(call(rig, kind), error);
		spokei_faults_heal(&rig->faulty);
		assert_int_equal(call(rig, kind), 0);
		assert_int_equal(rig->faulty.failed[kind], 4);
	}
	close_fixed(rig);
}

TEST(time_and_dice_are_those_of_the_inner_environment)
{
	const struct spoke_env *env = &((struct rig *)*state)->faulty.env;
	unsigned char byte = 0;

	assert_int_equal(env->now(env->ctx), 5);
	assert_int_equal(env->boot_now(env->ctx), 5);
	env->dice(env->ctx, &byte, 1);
	assert_int_equal(byte, 6);
	assert_null(env->log);
}

TEST(the_real_environment_can_be_wrapped_too)
{
	struct spokei_faults faulty;
	struct spoke_address address;
	char text[64];

	spokei_faults_init(&faulty, spoke_host_env());
	assert_int_equal(faulty.env.net->parse(&faulty, "127.0.0.1:80", &address), 0);
	faulty.env.net->print(&faulty, &address, text, sizeof(text));
	assert_string_equal(text, "127.0.0.1:80");
	assert_true(faulty.env.now(&faulty) > 0);
}
