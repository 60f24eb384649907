/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that wraps another one and lets its calls fail. */
#include "core/virtual/faults.h"
#include "timer/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- the rules by which calls fail */

/* For the wrapped calls: returns 0, or the error that this call shall have. */
static int check_rule(struct spokei_faults *faulty, enum spokei_faults_kind kind)
{
	struct spokei_faults_rule *rule = &faulty->rules[kind];
	int error = rule->error;

	faulty->calls[kind]++;
	if (error == 0)
		return 0;
	if (rule->skip > 0) {
		rule->skip--;
		return 0;
	}
	if (!rule->for_ever)
		rule->error = 0;
	faulty->failed[kind]++;
	return error;
}

void spokei_faults_fail(struct spokei_faults *faulty, enum spokei_faults_kind kind, uint64_t nth,
			int error, bool for_ever)
{
	SPOKE_ASSERT(nth > 0 && error < 0);
	faulty->rules[kind] = (struct spokei_faults_rule){ nth - 1, error, for_ever };
}

void spokei_faults_heal(struct spokei_faults *faulty)
{
	memset(faulty->rules, 0, sizeof(faulty->rules));
}

const char *spokei_faults_kind_name(enum spokei_faults_kind kind)
{
	static const char *const names[SPOKEI_FAULTS_KINDS] = {
		"memory",
		"connect",
		"finish",
		"listen",
		"accept",
		"read",
		"write",
		"shut",
		"spare",
		"local",
		"peer",
		"parse",
		"resolve",
		"file read",
		"file replace",
		"file append",
		"file watch",
		"file lock",
		"file is locked",
		"file sweep",
		"file open log",
		"file write at",
		"file allocate",
		"file sync",
		"file sync folder",
		"file list",
		"file remove",
		"loop open",
		"thread start",
		"parker open",
		"guard",
		"signal open",
		"notify",
		"credentials",
		"host id",
		"share",
		"shared",
	};

	return names[kind];
}

/* --- files */

static ssize_t files_read(void *ctx, const char *path, void *bytes, size_t size)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_READ);

	return error ? error : faulty->inner->files->read(faulty->inner->ctx, path, bytes, size);
}

static int files_replace(void *ctx, const char *path, const void *bytes, size_t len,
			 bool is_private)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_REPLACE);

	return error ? error
		     : faulty->inner->files->replace(faulty->inner->ctx, path, bytes, len,
						     is_private);
}

static int files_append(void *ctx, const char *path, const void *bytes, size_t len)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_APPEND);

	return error ? error : faulty->inner->files->append(faulty->inner->ctx, path, bytes, len);
}

static int files_watch(void *ctx, const char *path, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_WATCH);

	if (!error) {
		error = faulty->inner->files->watch(faulty->inner->ctx, path, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static bool files_changed(void *ctx, int fd)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->files->changed(inner->ctx, fd);
}

static void files_unwatch(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->files->unwatch(faulty->inner->ctx, fd);
}

static int files_lock(void *ctx, const char *path, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_LOCK);

	if (!error) {
		error = faulty->inner->files->lock(faulty->inner->ctx, path, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static void files_unlock(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->files->unlock(faulty->inner->ctx, fd);
}

static int files_is_locked(void *ctx, const char *path)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_IS_LOCKED);

	return error ? error : faulty->inner->files->is_locked(faulty->inner->ctx, path);
}

static void files_drop(void *ctx, const char *path, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->files->drop(faulty->inner->ctx, path, fd);
}

static int files_sweep(void *ctx, const char *path)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_SWEEP);

	return error ? error : faulty->inner->files->sweep(faulty->inner->ctx, path);
}

static ssize_t files_read_secret(void *ctx, const char *path, void *bytes, size_t size)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_READ);

	return error ? error
		     : faulty->inner->files->read_secret(faulty->inner->ctx, path, bytes, size);
}

static int files_open_log(void *ctx, const char *path, bool is_new, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_OPEN_LOG);

	if (!error)
		error = inner->files->open_log(inner->ctx, path, is_new, ret_fd);
	faulty->fds += !error;
	return error;
}

static int files_write_at(void *ctx, int fd, uint64_t at, const void *bytes, size_t len)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_WRITE_AT);

	return error ? error : inner->files->write_at(inner->ctx, fd, at, bytes, len);
}

static int files_allocate(void *ctx, int fd, uint64_t size)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_ALLOCATE);

	return error ? error : inner->files->allocate(inner->ctx, fd, size);
}

static int files_sync(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_SYNC);

	return error ? error : inner->files->sync(inner->ctx, fd);
}

static int files_sync_folder(void *ctx, const char *folder)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_SYNC_FOLDER);

	return error ? error : inner->files->sync_folder(inner->ctx, folder);
}

static ssize_t files_list(void *ctx, const char *folder, char *names, size_t size)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_LIST);

	return error ? error : inner->files->list(inner->ctx, folder, names, size);
}

static int files_remove(void *ctx, const char *path)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_FILE_REMOVE);

	return error ? error : inner->files->remove(inner->ctx, path);
}

static const struct spoke_files files_table = {
	.read = files_read,
	.replace = files_replace,
	.append = files_append,
	.watch = files_watch,
	.changed = files_changed,
	.unwatch = files_unwatch,
	.lock = files_lock,
	.unlock = files_unlock,
	.is_locked = files_is_locked,
	.drop = files_drop,
	.sweep = files_sweep,
	.read_secret = files_read_secret,
	.open_log = files_open_log,
	.write_at = files_write_at,
	.allocate = files_allocate,
	.sync = files_sync,
	.sync_folder = files_sync_folder,
	.list = files_list,
	.remove = files_remove,
};

#define BLOCK_MAGIC UINT64_C(0x62c1b8f0a7d35e49)
#define BLOCK_FREED UINT64_C(0xdeadb10cdeadb10c)

enum {
	NEW_BYTE = 0xa5,
	NEW_BYTES_MAX = 16384 /* of a block: of large ones, most is never used */
};

/* Stands before every block. */
union header {
	struct {
		uint64_t magic;
		size_t len;
	} block;
	max_align_t align;
};

/* --- memory */

static void free_block(struct spokei_faults *faulty, union header *header)
{
	faulty->blocks--;
	faulty->bytes -= header->block.len;
	header->block.magic = BLOCK_FREED;
	(void)faulty->inner->resize(faulty->inner->ctx, header, header->block.len + sizeof(*header),
				    0);
}

static union header *new_block(struct spokei_faults *faulty, size_t len)
{
	union header *header = NULL;

	if (len <= SIZE_MAX - sizeof(*header))
		header = faulty->inner->resize(faulty->inner->ctx, NULL, 0, len + sizeof(*header));
	if (header == NULL)
		return NULL;
	header->block.magic = BLOCK_MAGIC;
	header->block.len = len;
	memset(header + 1, NEW_BYTE, len < NEW_BYTES_MAX ? len : NEW_BYTES_MAX);
	faulty->blocks++;
	faulty->bytes += len;
	if (faulty->bytes > faulty->bytes_peak)
		faulty->bytes_peak = faulty->bytes;
	return header;
}

static void *resize(struct spokei_faults *faulty, void *memory, size_t old_len, size_t len)
{
	union header *old = memory ? (union header *)memory - 1 : NULL;
	union header *header;

	SPOKE_ASSERT(memory != NULL || old_len == 0);
	SPOKE_ASSERT(old == NULL || old->block.magic == BLOCK_MAGIC);
	SPOKE_ASSERT(old == NULL || old->block.len == old_len);
	if (len == 0) {
		if (old)
			free_block(faulty, old);
		return NULL;
	}
	if (len > faulty->largest)
		faulty->largest = len;
	if (check_rule(faulty, SPOKEI_FAULTS_MEMORY))
		return NULL;
	header = new_block(faulty, len);
	if (header == NULL)
		return NULL;
	if (old) {
		memcpy(header + 1, memory, old_len < len ? old_len : len);
		free_block(faulty, old);
	}
	return header + 1;
}

/* Only memory is used from any thread: handlers on the pool copy their answers. */
static void *faulty_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	struct spokei_faults *faulty = ctx;
	void *resized;

	while (atomic_flag_test_and_set_explicit(&faulty->busy, memory_order_acquire))
		continue;
	resized = resize(faulty, memory, old_len, len);
	atomic_flag_clear_explicit(&faulty->busy, memory_order_release);
	return resized;
}

/* --- time, dice, log */

static uint64_t faulty_now(void *ctx)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->now(inner->ctx);
}

static uint64_t faulty_coarse(void *ctx)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->coarse(inner->ctx);
}

static uint64_t faulty_boot_now(void *ctx)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->boot_now(inner->ctx);
}

static uint64_t faulty_wall(void *ctx)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->wall(inner->ctx);
}

static void faulty_dice(void *ctx, void *bytes, size_t len)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	inner->dice(inner->ctx, bytes, len);
}

static void faulty_log(void *ctx, const struct spoke_log_line *line)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	inner->log(inner->ctx, line);
}

/* --- network */

static int net_connect(void *ctx, const struct spoke_address *to, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int result = check_rule(faulty, SPOKEI_FAULTS_CONNECT);

	if (!result) {
		result = faulty->inner->net->connect(faulty->inner->ctx, to, ret_fd);
		faulty->fds += result == 0 || result == -EINPROGRESS;
	}
	return result;
}

static int net_finish(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_FINISH);

	return error ? error : faulty->inner->net->finish(faulty->inner->ctx, fd);
}

static int net_listen(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_LISTEN);

	if (!error) {
		error = faulty->inner->net->listen(faulty->inner->ctx, at, backlog, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static int net_listen_shared(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_LISTEN);

	if (!error) {
		error = faulty->inner->net->listen_shared(faulty->inner->ctx, at, backlog, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static int net_accept(void *ctx, int fd, int *ret_fd, struct spoke_address *ret_peer)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_ACCEPT);

	if (!error) {
		error = faulty->inner->net->accept(faulty->inner->ctx, fd, ret_fd, ret_peer);
		faulty->fds += !error;
	}
	return error;
}

static ssize_t net_read(void *ctx, int fd, void *bytes, size_t len)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_READ);

	return error ? error : faulty->inner->net->read(faulty->inner->ctx, fd, bytes, len);
}

static ssize_t net_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_WRITE);

	return error ? error : faulty->inner->net->write(faulty->inner->ctx, fd, parts, count);
}

static int net_shut(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_SHUT);

	return error ? error : faulty->inner->net->shut(faulty->inner->ctx, fd);
}

static void net_close(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0 || faulty->trades);
	faulty->fds--;
	faulty->inner->net->close(faulty->inner->ctx, fd);
}

static int net_spare(void *ctx, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_SPARE);

	if (!error) {
		error = faulty->inner->net->spare(faulty->inner->ctx, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static int net_local(void *ctx, int fd, struct spoke_address *ret_address)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_LOCAL);

	return error ? error : faulty->inner->net->local(faulty->inner->ctx, fd, ret_address);
}

static int net_peer(void *ctx, int fd, struct spoke_address *ret_address)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_PEER);

	return error ? error : faulty->inner->net->peer(faulty->inner->ctx, fd, ret_address);
}

static int net_parse(void *ctx, const char *text, struct spoke_address *ret_address)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_PARSE);

	return error ? error : faulty->inner->net->parse(faulty->inner->ctx, text, ret_address);
}

static void net_print(void *ctx, const struct spoke_address *address, char *text, size_t size)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	inner->net->print(inner->ctx, address, text, size);
}

static int net_resolve(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
		       int max)
{
	struct spokei_faults *faulty = ctx;
	int error = check_rule(faulty, SPOKEI_FAULTS_RESOLVE);

	if (error)
		return error;
	return faulty->inner->net->resolve(faulty->inner->ctx, host, port, ret, max);
}

static int net_guard(void *ctx, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_GUARD);

	return error ? error : inner->net->guard(inner->ctx, fd, unanswered_ns, keepalive_ns);
}

static ssize_t net_unsent(void *ctx, int fd)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->net->unsent(inner->ctx, fd);
}

static int net_passed(void *ctx, const char *name, struct spoke_address *ret_address)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->net->passed ? inner->net->passed(inner->ctx, name, ret_address) : -ENOENT;
}

static int net_send_buffer(void *ctx, int fd, uint32_t bytes)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->net->send_buffer ? inner->net->send_buffer(inner->ctx, fd, bytes) : 0;
}

static int net_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			   int32_t *ret_pid)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_CREDENTIALS);

	if (!error && inner->net->credentials == NULL)
		error = -EOPNOTSUPP;
	return error ? error : inner->net->credentials(inner->ctx, fd, ret_uid, ret_gid, ret_pid);
}

static int net_listen_mode(void *ctx, const struct spoke_address *at, int backlog, uint32_t mode,
			   int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_LISTEN);

	if (!error && inner->net->listen_mode == NULL)
		error = -EOPNOTSUPP;
	if (!error) {
		error = inner->net->listen_mode(inner->ctx, at, backlog, mode, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static int net_share(void *ctx, int fd, const struct iovec *bytes, size_t size,
		     struct spoke_shared *ret)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_SHARE);

	if (!error && inner->net->share == NULL)
		error = -EOPNOTSUPP;
	if (!error)
		error = inner->net->share(inner->ctx, fd, bytes, size, ret);
	faulty->shares += !error;
	return error;
}

static ssize_t net_shared(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
			  struct spoke_shared *ret)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	ssize_t got = check_rule(faulty, SPOKEI_FAULTS_SHARED);

	*ret = (struct spoke_shared){ NULL, 0 };
	if (!got && inner->net->shared == NULL)
		got = -EOPNOTSUPP;
	if (!got)
		got = inner->net->shared(inner->ctx, fd, bytes, size_max, ret);
	faulty->shares += ret->memory != NULL;
	return got;
}

static void net_unshare(void *ctx, struct spoke_shared *shared)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->shares > 0);
	faulty->shares--;
	faulty->inner->net->unshare(faulty->inner->ctx, shared);
}

static const struct spoke_net spokei_faults_net = {
	.connect = net_connect,
	.finish = net_finish,
	.listen = net_listen,
	.accept = net_accept,
	.read = net_read,
	.write = net_write,
	.shut = net_shut,
	.close = net_close,
	.spare = net_spare,
	.local = net_local,
	.peer = net_peer,
	.parse = net_parse,
	.print = net_print,
	.resolve = net_resolve,
	.guard = net_guard,
	.unsent = net_unsent,
	.listen_shared = net_listen_shared,
	.passed = net_passed,
	.send_buffer = net_send_buffer,
	.credentials = net_credentials,
	.listen_mode = net_listen_mode,
	.share = net_share,
	.shared = net_shared,
	.unshare = net_unshare,
};

/* --- threads */

static uintptr_t threads_self(void *ctx)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->threads->self(inner->ctx);
}

static int threads_start(void *ctx, void (*run)(void *arg), void *arg, void **ret_thread)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_THREAD_START);

	return error ? error : inner->threads->start(inner->ctx, run, arg, ret_thread);
}

static int threads_open(void *ctx, void **ret_parker)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_PARKER_OPEN);

	return error ? error : inner->threads->open(inner->ctx, ret_parker);
}

/* --- signals */

static int signals_open(void *ctx, int number, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_SIGNAL_OPEN);

	if (!error) {
		error = inner->signals->open(inner->ctx, number, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static bool signals_take(void *ctx, int fd)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->signals->take(inner->ctx, fd);
}

static void signals_close(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->signals->close(faulty->inner->ctx, fd);
}

static const struct spoke_signals spokei_faults_signals = {
	.open = signals_open,
	.take = signals_take,
	.close = signals_close,
};

/* --- the service manager */

static int manager_notify(void *ctx, const char *text)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_NOTIFY);

	return error ? error : inner->manager->notify(inner->ctx, text);
}

static uint64_t manager_watchdog(void *ctx)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->manager->watchdog(inner->ctx);
}

static const struct spoke_manager spokei_faults_manager = {
	.notify = manager_notify,
	.watchdog = manager_watchdog,
};

static int faulty_host_id(void *ctx, uint64_t *ret_id)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_HOST_ID);

	return error ? error : inner->host_id(inner->ctx, ret_id);
}

/* The loop that opens is the inner one's; its other functions do not get the context. */
static int loop_open(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		     void **ret_loop)
{
	struct spokei_faults *faulty = ctx;
	const struct spoke_env *inner = faulty->inner;
	int error = check_rule(faulty, SPOKEI_FAULTS_LOOP_OPEN);

	return error ? error : inner->loop->open(inner->ctx, native, up, arg, ret_loop);
}

void spokei_faults_init(struct spokei_faults *faulty, const struct spoke_env *inner)
{
	*faulty = (struct spokei_faults){ .inner = inner };
	faulty->env = (struct spoke_env){
		.ctx = faulty,
		.now = faulty_now,
		.coarse = faulty_coarse,
		.boot_now = faulty_boot_now,
		.wall = faulty_wall,
		.dice = faulty_dice,
		.resize = faulty_resize,
		.log = inner->log ? faulty_log : NULL,
		.net = inner->net ? &spokei_faults_net : NULL,
		.files = inner->files ? &files_table : NULL,
		.forks = inner->forks,
		.signals = inner->signals ? &spokei_faults_signals : NULL,
		.manager = inner->manager ? &spokei_faults_manager : NULL,
		.host_id = inner->host_id ? faulty_host_id : NULL,
	};
	if (inner->threads) {
		faulty->threads = *inner->threads;
		faulty->threads.self = threads_self;
		faulty->threads.start = threads_start;
		faulty->threads.open = threads_open;
		faulty->env.threads = &faulty->threads;
	}
	if (inner->loop) {
		faulty->loop = *inner->loop;
		faulty->loop.open = loop_open;
		faulty->env.loop = &faulty->loop;
	}
}
