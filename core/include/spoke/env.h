/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment: a table of functions through which spoke reaches the machine, and its only way
 * to do so. spoke_host_env() is the real environment. A test can bring its own and run everything
 * above on it unchanged. No function blocks unless its comment says so.
 *
 * Functions that can fail return 0 or a count, or a negative errno value (-EAGAIN: try again
 * later). Unless a comment says otherwise, functions are called on the thread of the engine, and
 * pointers are borrowed for the call.
 */
#ifndef SPOKE_ENV_H
#define SPOKE_ENV_H

#include <spoke/error.h>

#include <sys/uio.h>

SPOKE_BEGIN_DECLS

/* The address of a socket. Made by net->parse() or net->resolve(); copied by value. */
struct spoke_address {
	uint32_t len;             /* bytes of `bytes` in use */
	unsigned char bytes[128]; /* a struct sockaddr of the system, or of a test's own network */
};

/* Severity of a log line, the most severe first. */
enum spoke_log_level {
	SPOKE_LOG_ERROR,
	SPOKE_LOG_WARN,
	SPOKE_LOG_INFO,
	SPOKE_LOG_DEBUG,
};

/* One line for the log; borrowed for the call. Text from peers is already escaped and cut. */
struct spoke_log_line {
	enum spoke_log_level level;
	const char *module;  /* e.g. "conn" */
	const char *text;    /* without a line end */
	uint64_t suppressed; /* similar lines that the rate limit dropped before this one */
};

/* Events of a descriptor, as bits: the events to watch for, and the events that have occurred. */
enum spoke_io {
	SPOKE_IO_READ = 1,
	SPOKE_IO_WRITE = 2,
};

/* A watched descriptor; embedded in a struct of its owner, which keeps it until it is unwatched. */
struct spoke_watch {
	/* Called by the loop, on its thread, with the events that have occurred. May unwatch and
	 * free any watch, this one too. */
	void (*ready)(struct spoke_watch *watch, unsigned io);
	int fd;
	unsigned io;   /* events watched for; the loop's */
	uint64_t turn; /* that served it last, see begin() of struct spoke_loop_up; the loop's */
	/* The loop's. As large as a watcher of libev, because each connection has one. */
	struct {
		void *pointers[3];
		int numbers[5];
	} loop;
};

/* Memory that two processes share. */
struct spoke_shared {
	void *memory; /* aligned to a page; NULL: none */
	size_t size;  /* which neither process can change */
};

/* The network: sockets at the level of system calls. Descriptors are non-blocking and are not
 * inherited by other programs. `ctx` is that of the environment. */
struct spoke_net {
	/* Starts a connection. Returns 0: connected; -EINPROGRESS: the descriptor becomes writable
	 * when the attempt has succeeded or failed, then call finish(). The caller owns *ret_fd. */
	int (*connect)(void *ctx, const struct spoke_address *to, int *ret_fd);
	/* Returns the result of a connection attempt in progress: 0 or a negative errno. */
	int (*finish)(void *ctx, int fd);
	/* Listens at an address; `backlog` as for listen(2). Replaces the unix socket of a dead
	 * listener, but no other file at that path. Takes over a listening socket with this address
	 * that was passed to the process, see passed(). The caller owns *ret_fd. */
	int (*listen)(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd);
	/* Accepts one connection of a listener. Returns 0, -EAGAIN (none is waiting) or another
	 * errno. The caller owns *ret_fd. */
	int (*accept)(void *ctx, int fd, int *ret_fd, struct spoke_address *ret_peer);
	/* Reads at most `len` bytes. Returns their number, 0 at the end of the stream, or a
	 * negative errno. */
	ssize_t (*read)(void *ctx, int fd, void *bytes, size_t len);
	/* Writes `count` parts in order. Returns the number of bytes written, which may be less
	 * than all, or a negative errno; never raises SIGPIPE. */
	ssize_t (*write)(void *ctx, int fd, const struct iovec *parts, int count);
	/* Closes the sending direction (half-close). */
	int (*shut)(void *ctx, int fd);
	/* Closes a descriptor, which is unwatched. */
	void (*close)(void *ctx, int fd);
	/* Opens a descriptor without a use. A listener keeps one in reserve: closing it makes room
	 * for one accept() when the process has run out of descriptors. */
	int (*spare)(void *ctx, int *ret_fd);
	/* Writes the socket's own address. */
	int (*local)(void *ctx, int fd, struct spoke_address *ret_address);
	/* Writes the address of the peer. */
	int (*peer)(void *ctx, int fd, struct spoke_address *ret_address);
	/* Converts an address in digits or a path, without name resolution: "127.0.0.1:20880",
	 * "[::1]:1", "unix:/run/x". Returns 0, or -EINVAL for any other text. */
	int (*parse)(void *ctx, const char *text, struct spoke_address *ret_address);
	/* Writes the text of an address, as parse() accepts it, cut to `size` with the NUL. */
	void (*print)(void *ctx, const struct spoke_address *address, char *text, size_t size);
	/* Resolves a host name to at most `max` addresses. Blocks: run it with loop->offload(), on
	 * any thread. Returns the number of addresses or a negative errno. */
	int (*resolve)(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
		       int max);
	/* Has the system detect a dead peer, in addition to heartbeats. Sent bytes that are not
	 * acknowledged for `unanswered_ns` break the connection with -ETIMEDOUT. After
	 * `keepalive_ns` without data the system probes the peer, and drops it about as long again
	 * after that. 0: the system's default, and no probes. Times are rounded up to units of the
	 * system (Linux: ms, and whole seconds). Returns 0 and does nothing on transports without
	 * these options, e.g. unix sockets; options that the system lacks are skipped. A socket
	 * that listens at a port passes them on to those that it accepts later. */
	int (*guard)(void *ctx, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns);
	/* Returns the number of bytes written that the peer's system has not accepted yet, or a
	 * negative errno if the number is not known. */
	ssize_t (*unsent)(void *ctx, int fd);
	/* Like listen(), but other listeners of the same user, in this process or another one, may
	 * share the port if they also use this function. Each new connection goes to one of them.
	 * For addresses with a port; -EOPNOTSUPP: this address has none. NULL: not available. */
	int (*listen_shared)(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd);
	/* Writes the address of a listening socket that the process was started with, by the name
	 * or the number of its descriptor: socket activation, sd_listen_fds(3). Returns 0; -ENOENT:
	 * there is no such descriptor, or listen() has taken it; -ENOTSOCK: it is no listening
	 * stream socket. NULL: not available. */
	int (*passed)(void *ctx, const char *name, struct spoke_address *ret_address);
	/* Limits the bytes that the system keeps for a socket until the peer has accepted them; the
	 * system may round the limit up. Passed on like the times of guard(). Returns 0 or a
	 * negative errno. NULL: not available. */
	int (*send_buffer)(void *ctx, int fd, uint32_t bytes);
	/* Writes the user, the group and the process at the other end of a unix socket, as they
	 * were when it connected. The process may be another one by now. Returns 0, or a negative
	 * errno; -EOPNOTSUPP: this socket has none. NULL: not available. */
	int (*credentials)(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			   int32_t *ret_pid);
	/* Like listen() at the path of a unix socket, whose file has these permission bits at every
	 * moment, at most, and when the function returns exactly. -EOPNOTSUPP: the address has no
	 * file. NULL: not available. */
	int (*listen_mode)(void *ctx, const struct spoke_address *at, int backlog, uint32_t mode,
			   int *ret_fd);
	/* Makes `size` bytes of memory, all zero, and sends it with `bytes`, at most 64, over a
	 * connected unix socket, all or nothing. The caller owns *ret until unshare(). Returns 0;
	 * -EAGAIN: the socket takes nothing now; or another errno. NULL: not available, like the
	 * next two. */
	int (*share)(void *ctx, int fd, const struct iovec *bytes, size_t size,
		     struct spoke_shared *ret);
	/* Receives the first bytes of a connection, and the memory that share() has sent with them.
	 * Returns the number of bytes, which is less than asked for if the peer has not used
	 * share(); 0: its end; or a negative errno. ret->memory is NULL if none came, or more than
	 * one; -EBADMSG: it could shrink, or has more than `size_max` bytes, or none. The caller
	 * owns it until unshare(). */
	ssize_t (*shared)(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
			  struct spoke_shared *ret);
	/* Gives the memory up, and empties *shared. The peer keeps it for as long as it needs it.
	 */
	void (*unshare)(void *ctx, struct spoke_shared *shared);
};

/* Work for another thread; embedded, borrowed by the loop from offload() until done(). */
struct spoke_work {
	void (*run)(struct spoke_work *work);  /* on a thread of the pool; may block */
	void (*done)(struct spoke_work *work); /* afterwards, on the loop's thread; may free it */
	/* For done(): 0; -ECANCELED: the loop was closed before run() began, or the work was left
	 * to the parent of this process; -EINPROGRESS: see release(). */
	int status;
	/* Other objects wait for this work, and it is not code of the user, e.g. name resolution.
	 * Urgent works are started first, and the others never occupy every thread. */
	bool urgent;
	/* It computes for long, and should not delay the loops, e.g. a step of a handshake: such
	 * works have a thread of their own with a lower priority. A loop may ignore this. Not with
	 * `urgent`. */
	bool background;
	void *loop[4]; /* the loop's */
	/* NULL: closing the loop waits for run(). Otherwise the loop may leave a running work
	 * behind when it is retired: done() is called with -EINPROGRESS, and release() after run(),
	 * on its thread, even after the loop is closed. The work may be freed after both. Then
	 * run() and release() touch nothing but the work and the functions of the environment. */
	void (*release)(struct spoke_work *work);
};

#define SPOKE_POOL_THREADS 4u         /* threads of a pool by default */
#define SPOKE_POOL_THREADS_MAX 256u   /* largest number that can be set */
#define SPOKE_POOL_QUEUE 256u         /* works that wait, by default */
#define SPOKE_POOL_QUEUE_MAX 1048576u /* largest number that can be set */

/* Limits and load of a loop's pool, without works that are urgent or in the background. */
struct spoke_pool {
	uint32_t threads_max; /* works that run at one time */
	uint32_t queue_max;   /* works that may wait */
	uint32_t threads;     /* started so far, with one more for urgent works */
	uint32_t running;
	uint32_t queued;
};

/* The result of a poll for things that no descriptor tells. */
enum spoke_loop_found {
	SPOKE_LOOP_ALL_TELL, /* there is nothing that no descriptor would tell */
	SPOKE_LOOP_NOTHING,
	SPOKE_LOOP_COME, /* the round begins, with or without ready descriptors */
};

/*
 * The functions that a loop calls, always on its own thread. One round is: settle, wait, begin,
 * ready() of every ready descriptor, turn. In a forked child a loop reads, writes and changes
 * nothing that it shares with its parent; the child can only retire and close it.
 */
struct spoke_loop_up {
	/* The loop is about to wait: the last chance to write, and to set the time with wake_at().
	 */
	void (*settle)(void *arg);
	/* The wait is over and nothing has been read yet. Watches may be changed here. Returns the
	 * number of the turn; several rounds may be one turn. The loop notes it in each watch that
	 * it serves. */
	uint64_t (*begin)(void *arg);
	/* The round is over; `ready` descriptors were served in it for the first time in this turn.
	 */
	void (*turn)(void *arg, unsigned ready);
	/* The next two are for loops with `prepares_to_sleep`, and may be NULL. Bytes may come that
	 * no descriptor tells, in memory that is shared with another process. This one looks for
	 * them: it makes no system call, and a wait that polls calls it between two polls. */
	enum spoke_loop_found (*poll)(void *arg);
	/* The loop is about to sleep: asks the peers to wake it. Returns whether that is too late:
	 * something has come, and the loop must not sleep. */
	bool (*prepare_to_sleep)(void *arg);
};

#define SPOKE_LOOP_SPIN_AUTO UINT64_MAX /* ns of spin(): as long as it has paid lately */

/* The event loop. `loop` is the handle that open() returned. All functions but wake() are called on
 * the loop's thread. */
struct spoke_loop {
	/* Opens a loop. `native`: a loop of the user (struct ev_loop *), borrowed; NULL: a loop of
	 * its own. `up` and `arg` are borrowed until close(). Returns 0 or a negative errno. */
	int (*open)(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		    void **ret_loop);
	/* Stops accepting work, and calls done() of all pending work before it returns. Blocks
	 * while works without a release() run. Must not be called from a function that the loop
	 * called. */
	void (*retire)(void *loop);
	/* Frees the loop. Called after retire(), when no descriptor is watched any more. */
	void (*close)(void *loop);
	/* Watches a descriptor for the events `io`, or changes the events; 0: stops watching. */
	void (*watch)(void *loop, struct spoke_watch *watch, unsigned io);
	/* Sets the time of env->now() at which the wait ends at the latest. UINT64_MAX: no time. */
	void (*wake_at)(void *loop, uint64_t ns);
	/* Makes the next round skip its wait. */
	void (*again)(void *loop);
	/* Makes every later wait poll for `ns` before it sleeps, which keeps a CPU busy. 0, the
	 * default: it sleeps at once. SPOKE_LOOP_SPIN_AUTO: the loop decides by what its polls have
	 * found. For the caller all are one wait. Not for a loop of the user. NULL: the loop cannot
	 * poll. */
	void (*spin)(void *loop, uint64_t ns);
	/* Ends the present wait, or the next one at once. Any thread. Does nothing in a forked
	 * child. */
	void (*wake)(void *loop);
	/* Runs rounds until stop(); blocks. After a stop() in settle() there is no wait. */
	void (*run)(void *loop);
	/* Runs one round, which waits only if `wait` is set. */
	void (*round)(void *loop, bool wait);
	/* Ends run() after the present round. */
	void (*stop)(void *loop);
	/* Runs the work on a thread of the pool, then done() on the loop's thread. Returns 0,
	 * -EAGAIN (the queue of the pool is full) or -ECANCELED (retired); after an error done() is
	 * not called. */
	int (*offload)(void *loop, struct spoke_work *work);
	/* Sets the limits of the pool; 0: the default. Called at most once, before the first
	 * offload(). NULL: the loop has its own limits. */
	void (*pool_limit)(void *loop, uint32_t threads_max, uint32_t queue_max);
	/* Reports the pool's limits and load. NULL: the loop cannot. */
	void (*pool_look)(void *loop, struct spoke_pool *ret);
	/* The loop calls poll() and prepare_to_sleep(). Else settle() does the work of the latter,
	 * with again(). */
	bool prepares_to_sleep;
};

/*
 * Threads, and objects to wait at (parkers). The caller owns a handle until join() or close(). A
 * forked child has none of its parent's threads: there join() and close() only free memory, and
 * unpark() does nothing. park() then works only with parkers that the child opened.
 */
struct spoke_threads {
	/* Returns a number of the calling thread, unique among living threads; never 0. Any thread.
	 */
	uintptr_t (*self)(void *ctx);
	/* Starts a thread that calls run(arg) with all signals blocked, and does not wait for it.
	 * `arg` is borrowed until run() returns. Returns 0 or a negative errno. Any thread. */
	int (*start)(void *ctx, void (*run)(void *arg), void *arg, void **ret_thread);
	/* Waits until run() has returned; blocks. Exactly once for every start(), from any other
	 * thread. */
	void (*join)(void *thread);
	/* Opens a parker, at which one thread at a time waits for unpark(). Returns 0 or a negative
	 * errno. Any thread. */
	int (*open)(void *ctx, void **ret_parker);
	/* Waits for an unpark(), which may have come before, or until `until_ns` of env->now();
	 * UINT64_MAX: without a limit. Blocks. Returns 0 or -ETIMEDOUT. After 0 the parker may be
	 * closed at once. */
	int (*park)(void *parker, uint64_t until_ns);
	/* Lets the present or the next park() return; several calls before one park() count as one.
	 * Any thread; does not block. */
	void (*unpark)(void *parker);
	/* Frees a parker at which no thread waits, and that no thread will unpark. Any thread. */
	void (*close)(void *parker);
	/* Unparks several parkers, cheaper than one after the other. NULL: not available. */
	void (*unpark_all)(void *const *parkers, size_t count);
};

#define SPOKE_MARK_DIGITS 16u /* of a lock's path that sweep() knows */

/* Files, for caches, logs and registries. read(), replace() and append() block for as long as
 * the disk does, and are called on any thread, e.g. of the pool. */
struct spoke_files {
	/* Reads a whole file of at most `size` bytes. Returns the number of bytes or a negative
	 * errno; -EFBIG: the file is larger. */
	ssize_t (*read)(void *ctx, const char *path, void *bytes, size_t size);
	/* Writes a temporary file next to `path` and renames it: readers see the old or the new
	 * content, never a part. If the file is missing and `is_private` is set, only its owner may
	 * read the new one. Returns 0 or a negative errno. */
	int (*replace)(void *ctx, const char *path, const void *bytes, size_t len, bool is_private);
	/* Appends to a file, which is created if it is missing. Returns 0 or a negative errno;
	 * after an error a part may have been written. `len` 0: returns what an append now would,
	 * as far as permissions and folder decide, and creates nothing. */
	int (*append)(void *ctx, const char *path, const void *bytes, size_t len);
	/* Watches a file, which need not exist, in a folder, which must. The descriptor becomes
	 * readable when the file may have changed, or the holder of a lock that sweep() knows may
	 * have ended; removal of the folder is reported last. Changes that the system does not
	 * report are missed, so a caller should also poll at times. Returns 0 or a negative errno;
	 * end it with unwatch(). */
	int (*watch)(void *ctx, const char *path, int *ret_fd);
	/* Returns whether the file may have changed since the last call. */
	bool (*changed)(void *ctx, int fd);
	/* Ends a watch() and closes its descriptor. */
	void (*unwatch)(void *ctx, int fd);
	/* Takes the lock of a path, a file next to it, until unlock() or the end of the process.
	 * The lock excludes all other users, in this and other processes. Returns 0, -EAGAIN (the
	 * lock is taken) or another errno. */
	int (*lock)(void *ctx, const char *path, int *ret_fd);
	/* Releases a lock and closes its descriptor. */
	void (*unlock)(void *ctx, int fd);
	/* Returns 1 if a living process holds the lock of a path, 0 if none does or the lock's file
	 * is missing, or a negative errno if this is not known. Creates nothing; a lock() at the
	 * same time may get -EAGAIN. NULL: not available, like the next two. */
	int (*is_locked)(void *ctx, const char *path);
	/* Like unlock(), and removes the lock's file. For paths that no process locks again. */
	void (*drop)(void *ctx, const char *path, int fd);
	/* Removes the files that dead processes left beside `path`: temporary files of replace(),
	 * and files of free locks, of paths that are `path`, a dot and SPOKE_MARK_DIGITS
	 * hexadecimal digits. The caller holds the lock of `path`; so does each process that
	 * replaces it or locks such a path. Returns 0 or a negative errno. */
	int (*sweep)(void *ctx, const char *path);
	/* Like read(), for secrets: a file that its group or others may read is refused with
	 * -EPERM, before a byte of it is read. If it belongs to root, its group may read it. NULL:
	 * not available. */
	ssize_t (*read_secret)(void *ctx, const char *path, void *bytes, size_t size);
	/* The functions from here on are for logs that survive the loss of power. They block like
	 * read(), and are called on any thread, but by one at a time for a file. NULL: none of them
	 * is available.
	 *
	 * Opens a file for the next three. `is_new`: makes the file, for its owner only; -EEXIST:
	 * it exists. Otherwise -ENOENT: it does not exist. The caller owns *ret_fd until
	 * net->close(). Returns 0 or a negative errno. */
	int (*open_log)(void *ctx, const char *path, bool is_new, int *ret_fd);
	/* Writes all bytes, the first one at offset `at`; -EFBIG: beyond 2 GiB. Until sync() a loss
	 * of power may undo them, in part and in any order. Returns 0 or a negative errno; after an
	 * error a part may have been written. */
	int (*write_at)(void *ctx, int fd, uint64_t at, const void *bytes, size_t len);
	/* Makes a file of fewer than `size` bytes this long, with zeros, and reserves the room on
	 * the disk: later writes inside do not fail with -ENOSPC, unless the file system copies on
	 * write. Returns 0 or a negative errno. */
	int (*allocate)(void *ctx, int fd, uint64_t size);
	/* Returns 0 once the disk has all that was written to the file. After a negative errno some
	 * of that is lost, and a later sync() may return 0 all the same: give the file up. */
	int (*sync)(void *ctx, int fd);
	/* Returns 0 once the disk has all changes of names in the folder, or a negative errno. */
	int (*sync_folder)(void *ctx, const char *folder);
	/* Writes the names of the files in a folder, each with its NUL, in any order; folders are
	 * left out. Returns the number of bytes, or a negative errno; -EFBIG: `size` is too small.
	 */
	ssize_t (*list)(void *ctx, const char *folder, char *names, size_t size);
	/* Removes a file. Returns 0 or a negative errno. */
	int (*remove)(void *ctx, const char *path);
};

/* Signals of the process. Any thread. */
struct spoke_signals {
	/* Catches a signal from now on, in place of the process's own disposition. The descriptor
	 * becomes readable when the signal has arrived. A signal may be opened several times; each
	 * descriptor is notified. Returns 0, or -EINVAL (no such signal, or it cannot be caught).
	 */
	int (*open)(void *ctx, int number, int *ret_fd);
	/* Returns whether the signal has arrived since the last call. */
	bool (*take)(void *ctx, int fd);
	/* Closes a descriptor of open(). The last one of a signal restores the disposition that was
	 * in place before the first. */
	void (*close)(void *ctx, int fd);
};

/* The service manager that started the process, e.g. systemd: see sd_notify(3). Any thread. */
struct spoke_manager {
	/* Sends it a message, e.g. "READY=1". Returns 0; -ENOENT: there is no service manager, or
	 * it does not listen; -EAGAIN: its queue is full; or another errno. Does not block. */
	int (*notify)(void *ctx, const char *text);
	/* Returns the time, ns, within which it wants a "WATCHDOG=1"; 0: it has no watchdog. */
	uint64_t (*watchdog)(void *ctx);
};

/* Greatest age of the coarse clock: 20 ms. */
#define SPOKE_COARSE_NS UINT64_C(20000000)

/* The environment. Borrowed by every object made with it, for the object's life; the tables must
 * not change meanwhile. */
struct spoke_env {
	/* Given to every function of this table and of `net`, `files`, `threads`, `signals` and
	 * `manager`. */
	void *ctx;
	/* Returns the monotonic time, ns; stands still while the machine sleeps. Any thread. */
	uint64_t (*now)(void *ctx);
	/* Returns now() as of at most SPOKE_COARSE_NS ago, at less cost. */
	uint64_t (*coarse)(void *ctx);
	/* Returns the monotonic time, ns, that includes sleep of the machine. Any thread. */
	uint64_t (*boot_now)(void *ctx);
	/* Returns ns since 1970, for people and other machines. The time may jump; no timer uses
	 * it.
	 */
	uint64_t (*wall)(void *ctx);
	/* Fills `bytes` with random bytes. */
	void (*dice)(void *ctx, void *bytes, size_t len);
	/* Like realloc(): returns the memory, or NULL if there is none and `memory` is unchanged.
	 * len == 0 frees and returns NULL. `old_len` is the length requested before. Any thread. */
	void *(*resize)(void *ctx, void *memory, size_t old_len, size_t len);
	/* Takes a line for the log, borrowed for the call. NULL: no log. */
	void (*log)(void *ctx, const struct spoke_log_line *line);
	const struct spoke_net *net;
	const struct spoke_loop *loop;
	const struct spoke_files *files;
	const struct spoke_threads *threads; /* NULL: only the caller's threads exist */
	/* A number that changes in the child when the process forks, and at no other time; NULL:
	 * the process does not fork. Read by any thread: it changes while there is only one. */
	const unsigned *forks;
	const struct spoke_signals *signals; /* NULL: not available */
	/* Writes a log line to the standard error output, for programs that have no `log`: see
	 * spoke_engine_options.log. Never waits for the reader; drops the line instead. Any thread.
	 * NULL: not available. */
	void (*print)(void *ctx, const struct spoke_log_line *line);
	/* Returns a variable of the process's environment, e.g. SPOKE_LOG, or NULL. Borrowed until
	 * the program changes its environment. Any thread. NULL: there are none. */
	const char *(*variable)(void *ctx, const char *name);
	const struct spoke_manager *manager; /* NULL: not available */
	/* Writes a number, never 0, that stands for this host and the process's view of its files.
	 * Processes with the same number see the same file at the same absolute path; those of
	 * another host, container or root have other numbers. Returns 0, or a negative errno: the
	 * number is not known. Any thread. NULL: it never is. */
	int (*host_id)(void *ctx, uint64_t *ret_id);
};

SPOKE_END_DECLS

#endif
