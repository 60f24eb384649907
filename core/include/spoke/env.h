/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outside world as a table of functions: the only way out of spoke. The real one is
 * spoke_host_env(); a test brings its own, and everything above runs on it unchanged. None of the
 * functions blocks, except where it says so.
 *
 * Functions that can fail return 0 or a count, or a negative errno of the system (-EAGAIN: later).
 */
#ifndef SPOKE_ENV_H
#define SPOKE_ENV_H

#include <spoke/error.h>

#include <sys/uio.h>

SPOKE_BEGIN_DECLS

/* Where a socket is or should be. Made by net->parse() or net->resolve(). */
struct spoke_address {
	uint32_t len;             /* bytes of `bytes` in use */
	unsigned char bytes[128]; /* a struct sockaddr of the system, or of a test's own network */
};

enum spoke_log_level {
	SPOKE_LOG_ERROR,
	SPOKE_LOG_WARN,
	SPOKE_LOG_INFO,
	SPOKE_LOG_DEBUG,
};

/* One line for the log; borrowed for the call. Text from peers is escaped and cut already. */
struct spoke_log_line {
	enum spoke_log_level level;
	const char *module;  /* as "conn" */
	const char *text;    /* without a line end */
	uint64_t suppressed; /* lines of this kind that were left out before this one */
};

/* Interest in a descriptor, and what came of it. */
enum spoke_io {
	SPOKE_IO_READ = 1,
	SPOKE_IO_WRITE = 2,
};

/* A descriptor that the loop watches; embedded in its owner, who keeps it until it is unwatched. */
struct spoke_watch {
	void (*ready)(struct spoke_watch *watch, unsigned io);
	int fd;
	unsigned io;   /* wanted now; the loop's */
	void *loop[8]; /* the loop's */
};

struct spoke_net {
	/* Starts a connection. 0: it stands; -EINPROGRESS: it is writable when it stands or has
	 * failed, see finish(). The new descriptor does not block and is not inherited. */
	int (*connect)(void *ctx, const struct spoke_address *to, int *ret_fd);
	/* What became of a connection in progress: 0 or a negative errno. */
	int (*finish)(void *ctx, int fd);
	/* Listens; `backlog` as the system has it. A stale unix socket of a dead listener is
	 * replaced, anything else at that path is not. */
	int (*listen)(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd);
	int (*accept)(void *ctx, int fd, int *ret_fd, struct spoke_address *ret_peer);
	/* Bytes read, 0 at the end, or a negative errno. */
	ssize_t (*read)(void *ctx, int fd, void *bytes, size_t len);
	/* Bytes written, or a negative errno; never raises SIGPIPE. */
	ssize_t (*write)(void *ctx, int fd, const struct iovec *parts, int count);
	/* Ends the direction that writes. */
	int (*shut)(void *ctx, int fd);
	void (*close)(void *ctx, int fd);
	/* A descriptor that does nothing. A listener keeps one: closing it makes room for one
	 * accept() when the process has run out of descriptors. */
	int (*spare)(void *ctx, int *ret_fd);
	int (*local)(void *ctx, int fd, struct spoke_address *ret_address);
	int (*peer)(void *ctx, int fd, struct spoke_address *ret_address);
	/* An address in digits or a path, without asking anybody: "127.0.0.1:20880", "[::1]:1",
	 * "unix:/run/x". -EINVAL: it is none. */
	int (*parse)(void *ctx, const char *text, struct spoke_address *ret_address);
	/* The text of an address, as parse() takes it. */
	void (*print)(void *ctx, const struct spoke_address *address, char *text, size_t size);
	/* The addresses of a host's name; blocks: run it by loop->offload(). Returns how many, at
	 * most `max`, or a negative errno. */
	int (*resolve)(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
		       int max);
	/* Has the system itself notice a peer that is gone, beside whoever judges above: bytes that
	 * it does not acknowledge for `unanswered_ns` break the connection with -ETIMEDOUT, and
	 * when nothing has come for `keepalive_ns` it is asked, and is dead within about as long
	 * again. 0: as the system has it, and it is not asked. Times are rounded up to what the
	 * system takes (Linux: ms, and whole seconds). Does nothing, and returns 0, where the
	 * transport has no such thing, as unix sockets, and goes without what the system lacks. */
	int (*guard)(void *ctx, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns);
	/* Bytes that were written and that the peer's system has not taken yet, or a negative
	 * errno: nobody knows. */
	ssize_t (*unsent)(void *ctx, int fd);
	/* As listen(), but others of the same user, of this process or another, may listen at the
	 * same port if they ask for it in the same way: each new connection goes to one of them. Of
	 * addresses with a port; -EOPNOTSUPP: this one has none. NULL: there is no such thing. */
	int (*listen_shared)(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd);
};

/* Work for another thread. */
struct spoke_work {
	void (*run)(struct spoke_work *work);  /* there; may block */
	void (*done)(struct spoke_work *work); /* back on the loop's thread */
	/* For done(): 0, or -ECANCELED: the loop is closed and it never ran, or was left to the
	 * parent of this process. */
	int status;
	/* Others wait for it, and it is not the user's code, as a name to be resolved. It goes
	 * first, and works that are not urgent never take every thread. */
	bool urgent;
	void *loop[4]; /* the loop's */
};

/*
 * What the loop calls, always on its own thread. In a forked child a loop reads, writes and sets
 * nothing it shares with its parent; there it is good for being retired and closed. A round is:
 * settle, wait, begin, ready() of every descriptor that is, turn.
 */
struct spoke_loop_up {
	/* The loop is about to wait: the last chance to write, and to say until when. */
	void (*settle)(void *arg);
	/* The wait is over, nothing has been read yet. What is watched may change here. */
	void (*begin)(void *arg);
	/* `ready` descriptors have been served in this round. */
	void (*turn)(void *arg, unsigned ready);
};

struct spoke_loop {
	/* `native`: a loop of the user's (struct ev_loop *), or NULL for one of its own. */
	int (*open)(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		    void **ret_loop);
	/* Takes no more work, and hands back all that is left before it returns. Not in a function
	 * that the loop called. */
	void (*retire)(void *loop);
	/* After retire, when nothing is watched any more. */
	void (*close)(void *loop);
	/* Watches for `io`, or changes what is watched for; 0: no longer. */
	void (*watch)(void *loop, struct spoke_watch *watch, unsigned io);
	/* Makes the wait end at `ns` of env->now(), or a little earlier; UINT64_MAX: not for that.
	 */
	void (*wake_at)(void *loop, uint64_t ns);
	/* The next round does not wait. */
	void (*again)(void *loop);
	/* From now on every wait looks again and again for `ns` whether it is over, which keeps a
	 * CPU busy, and only then sleeps; 0, as at first: it sleeps at once. To the loop's owner it
	 * is one wait in either case. Not of a user's loop. NULL: the loop cannot. */
	void (*spin)(void *loop, uint64_t ns);
	/* Ends the wait, or keeps the next one from waiting. The only function for any thread. In a
	 * forked child it does nothing. */
	void (*wake)(void *loop);
	/* Rounds until stop(); or one, which waits only if `wait`. After a stop() in settle() there
	 * is no wait. */
	void (*run)(void *loop);
	void (*round)(void *loop, bool wait);
	void (*stop)(void *loop);
	/* Runs the work on a thread of the pool; -EAGAIN: the pool's queue is
	 * full; -ECANCELED: retired. */
	int (*offload)(void *loop, struct spoke_work *work);
};

/*
 * Threads, and places where one waits for another. Handles belong to whoever asked for them, until
 * join() or close() takes them back. In a forked child the threads of the parent are not there:
 * join() and close() free the memory only, unpark() does nothing, park() is for its parkers alone.
 */
struct spoke_threads {
	/* A number of the calling thread that no other living one has; never 0. Any thread. */
	uintptr_t (*self)(void *ctx);
	/* Runs run(arg), borrowed until it returns, on a new thread, to which no signal is
	 * delivered. 0 or a negative errno. Any thread; does not wait for it. */
	int (*start)(void *ctx, void (*run)(void *arg), void *arg, void **ret_thread);
	/* Waits until run() has returned; blocks. Once for every start, from any other thread. */
	void (*join)(void *thread);
	/* A parker: where one thread at a time waits until another calls it. 0 or a negative errno.
	 * Any thread. */
	int (*open)(void *ctx, void **ret_parker);
	/* Waits for an unpark, which may have come before, or until `until_ns` of env->now();
	 * UINT64_MAX: for ever. 0 or -ETIMEDOUT. Blocks. After 0 the parker may be closed at once.
	 */
	int (*park)(void *parker, uint64_t until_ns);
	/* Lets park() return, now or the next time; several before one park count as one. Any
	 * thread; does not block. */
	void (*unpark)(void *parker);
	/* When nobody waits at it and nobody will unpark it. Any thread. */
	void (*close)(void *parker);
	/* Unparks several, for less than one after the other would cost. NULL: there is no such
	 * thing. */
	void (*unpark_all)(void *const *parkers, size_t count);
};

/* Small files, for caches and registries. */
struct spoke_files {
	/* Up to `size` bytes; the count, or a negative errno, -EFBIG if there are more. Blocks for
	 * as long as the disk does. */
	ssize_t (*read)(void *ctx, const char *path, void *bytes, size_t size);
	/* Writes beside the file and renames: readers see the old or the new, never a part. */
	int (*replace)(void *ctx, const char *path, const void *bytes, size_t len);
	/* Writes behind what is there; makes the file if there is none. Blocks. After an error a
	 * part may be there. */
	int (*append)(void *ctx, const char *path, const void *bytes, size_t len);
	/* The descriptor is readable when something may have become of the file, which need not be
	 * there; its folder must, and when that goes, that is told and is the last. What is seen is
	 * what the system tells of: who has to know looks now and then. 0 or a negative errno. */
	int (*watch)(void *ctx, const char *path, int *ret_fd);
	/* Has something become of it since this was asked last? */
	bool (*changed)(void *ctx, int fd);
	void (*unwatch)(void *ctx, int fd);
	/* Keeps out all others, of other processes too, who ask for the same path, until unlock()
	 * or the end of the process. Beside the file. -EAGAIN: somebody has it. */
	int (*lock)(void *ctx, const char *path, int *ret_fd);
	void (*unlock)(void *ctx, int fd);
};

/* Signals of the process. Any thread. */
struct spoke_signals {
	/* Catches a signal from now on, in place of what the process did with it before. The
	 * descriptor is readable when it has come. Several may be opened for one signal: each is
	 * told. -EINVAL: there is no such signal, or it cannot be caught. */
	int (*open)(void *ctx, int number, int *ret_fd);
	/* Has the signal come since it was taken last? */
	bool (*take)(void *ctx, int fd);
	/* The last one of a signal brings back what was before the first. */
	void (*close)(void *ctx, int fd);
};

#define SPOKE_COARSE_NS UINT64_C(20000000)

struct spoke_env {
	void *ctx;                  /* given to every function of this table and of net, files */
	uint64_t (*now)(void *ctx); /* ns, monotonic; stands still while the machine sleeps */
	/* now() as of at most SPOKE_COARSE_NS ago, at less cost. */
	uint64_t (*coarse)(void *ctx);
	uint64_t (*boot_now)(void *ctx); /* ns, monotonic; goes on meanwhile */
	/* ns since 1970, as other machines and people have it; may jump. Nothing is timed by it. */
	uint64_t (*wall)(void *ctx);
	void (*dice)(void *ctx, void *bytes, size_t len);
	/* As realloc(); len == 0 frees and returns NULL. old_len is what was asked for before. */
	void *(*resize)(void *ctx, void *memory, size_t old_len, size_t len);
	void (*log)(void *ctx, const struct spoke_log_line *line); /* NULL: no log */
	const struct spoke_net *net;
	const struct spoke_loop *loop;
	const struct spoke_files *files;
	const struct spoke_threads *threads; /* NULL: there are none but the caller's */
	/* Changes in the child when the process forks, and never else; NULL: it does not fork. Read
	 * by any thread, for the change comes while there is only one. */
	const unsigned *forks;
	const struct spoke_signals *signals; /* NULL: there are none */
};

SPOKE_END_DECLS

#endif
