/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: a pipe of bytes in both directions over one descriptor, and the table that a kind of
 * stream fills in. The plain socket is one kind; others open with a handshake, hold bytes back, or
 * have to read in order to write. Embedded in a connection, on the engine's thread.
 *
 *     socket connected or accepted -> open() until it returns 0 -> read(), write() -> shut()
 *     -> close(), at any time
 *
 * The connection watches the descriptor for what wants() returns. When the descriptor is ready it
 * calls open() again, or tries both to read and to write.
 */
#ifndef SPOKEI_TRANSPORT_STREAM_STREAM_H
#define SPOKEI_TRANSPORT_STREAM_STREAM_H

#include "core/engine/engine.h"

#define SPOKEI_STREAM_MORE 1

struct spoke_address;
struct spoke_span;
struct spoke_tls_info;
struct spokei_bucket;
struct spokei_stream;

/*
 * A kind of stream. Every slot is called by the connection, on the engine's thread, and none
 * blocks. Slots that return int or ssize_t return 0 or a count, or a negative errno of the system;
 * -EAGAIN and -EINTR mean: again when the descriptor is ready for what wants() returns. Bytes
 * belong to the caller and are borrowed for the call. A slot that may be NULL says so; wants(),
 * pending(), flush() and passed() are NULL together.
 */
struct spokei_stream_kind {
	const char *name;
	void *owner; /* shared by the streams of this kind; of the kind */

	/* write() must not be handed memory lent by users for one call: the connection copies long
	 * bodies into its output buffer first. */
	bool copies;

	/* A short write costs little: bytes for the peer are written early and often. */
	bool prompt;

	/* An accepted stream may wait for the peer's first byte as long as an open one: the time
	 * for opening begins when stream->state is set. */
	bool patient;

	/* Bytes cannot be read on the way. */
	bool veiled;

	/*
	 * Opens the stream. Called once the socket is connected or accepted (stream->accepted), and
	 * then whenever the descriptor is ready. Returns 0: the stream is open; SPOKEI_STREAM_MORE:
	 * call again; a negative errno: it failed, and close() follows. May allocate stream->state.
	 */
	int (*open)(struct spokei_stream *stream);

	/* Reads up to `len` bytes. 0: the peer's end. Called when the descriptor is ready, while
	 * pending() is not 0, and before a deadline closes the connection. */
	ssize_t (*read)(struct spokei_stream *stream, void *bytes, size_t len);

	/* Writes some of the parts, in order, and returns how many bytes it has taken. Bytes that
	 * it has taken count as written: the peer may get them, so they are never sent again. The
	 * stream holds few of them, or has queues(), because limits on queued bytes do not cover
	 * them otherwise. Bytes that flush() has not passed on after the time for peers that do not
	 * read close the connection. -ENOMEM: the stream has failed for want of memory, which ends
	 * the connection. */
	ssize_t (*write)(struct spokei_stream *stream, const struct iovec *parts, int count);

	/* Ends the direction that writes, once all bytes that write() has taken are out; flush() is
	 * called until then. No write() follows. 0, or a negative errno other than -EAGAIN and
	 * -EINTR. */
	int (*shut)(struct spokei_stream *stream);

	/* Passes on bytes that write(), open() or shut() has left in the stream. Called at the end
	 * of a turn in which something was written or the descriptor was ready. 0: none is left. An
	 * error other than -EAGAIN breaks the direction that writes. NULL: the stream holds none.
	 */
	int (*flush)(struct spokei_stream *stream);

	/* Returns how many bytes of an open stream the descriptor has taken so far. Bytes that only
	 * wait in the stream are no progress of the peer. NULL: those that write() returns. */
	uint64_t (*passed)(const struct spokei_stream *stream);

	/* Returns for what the descriptor is to be watched (enum spoke_io), when the connection
	 * wants to read, to write, both, or nothing, as `io` says; 0 while it is being opened. Not
	 * NULL if open() may return SPOKEI_STREAM_MORE. Once write() or flush() has failed, bytes
	 * that are held count no more. NULL: for the same as `io`. */
	unsigned (*wants)(const struct spokei_stream *stream, unsigned io);

	/* Returns how many bytes read() would give although the descriptor is not ready. The
	 * connection reads until it returns 0, some in this turn and the rest in the next ones.
	 * NULL: 0. */
	size_t (*pending)(const struct spokei_stream *stream);

	/* Returns whether at least `len` bytes, > 0, that write() has taken wait for the peer in
	 * memory that this side has: they count as queued output. Such a stream is ready to write
	 * only when at most stream->low bytes wait. NULL: they do not count. */
	bool (*queues)(const struct spokei_stream *stream, size_t len);

	/* Returns how many of the bytes that write() has taken have not left this machine, or a
	 * negative errno: unknown. Called when the peer is silent. */
	ssize_t (*unsent)(const struct spokei_stream *stream);

	/* Has the system break the connection when bytes are unanswered for `unanswered_ns`, and
	 * probe an idle peer each `keepalive_ns`; 0: never. Called when the stream is open, and
	 * again when these times change. The result is informational. */
	int (*guard)(struct spokei_stream *stream, uint64_t unanswered_ns, uint64_t keepalive_ns);

	/* The names by which the peer has identified itself, as proven by open(): *ret_names, of
	 * the stream and good until close(). Returns how many. NULL: none. */
	size_t (*names)(const struct spokei_stream *stream, const struct spoke_span **ret_names);

	/* Describes the security of an open stream; `ret_info` may be NULL. Returns false while
	 * there is none. NULL: there is none. */
	bool (*look)(const struct spokei_stream *stream, struct spoke_tls_info *ret_info);

	/* Why the last slot of a stream of this kind has failed, for people; valid until the next
	 * one fails. NULL, or a NULL slot: its errno says it. */
	const char *(*why)(const struct spokei_stream *stream);

	/* Frees stream->state, which is NULL if open() was not called; the descriptor is still
	 * open. NULL: there is nothing to free. */
	void (*close)(struct spokei_stream *stream);
};

struct spokei_stream {
	struct spoke_engine *engine;
	const struct spokei_stream_kind *kind;
	unsigned io;              /* watched events */
	size_t low;               /* of a kind with queues(): see there */
	bool accepted;            /* this side has accepted the connection */
	bool layered;             /* the kind has wants(), pending(), flush() and passed() */
	uint8_t ring_bits;        /* of a kind with rings: log2 of their bytes */
	uint8_t fault;            /* of the kind: why its last slot has failed; 0: nothing */
	struct spoke_watch watch; /* its fd: -1 when closed */
	void *state;              /* of the kind; NULL before open() */
	const char *host;         /* that was connected to, borrowed; NULL: none, or accepted */
};

/* A plain socket of env->net: tcp, unix or in memory. It is open at once and holds nothing. */
extern const struct spokei_stream_kind spokei_stream_socket;

/* Two rings in memory that is shared with the peer; only over a unix socket, and where env->net has
 * share(). See transport/stream/shm/. */
extern const struct spokei_stream_kind spokei_stream_shm;

#define SPOKEI_SHM_BITS_MIN 12u /* 4 KiB */
#define SPOKEI_SHM_BITS_MAX 20u /* 1 MiB: the consumer chooses, and both sides pay */
#define SPOKEI_SHM_BITS 18u     /* by default */

/* Takes over a descriptor that is not watched yet. `ready` is called as the loop does. */
void spokei_stream_init(struct spokei_stream *stream, struct spoke_engine *engine,
			const struct spokei_stream_kind *kind, int fd,
			void (*ready)(struct spoke_watch *watch, unsigned io));

/* Sets the kind, before open(). */
static inline void spokei_stream_use(struct spokei_stream *stream,
				     const struct spokei_stream_kind *kind)
{
	SPOKE_ASSERT(!kind->wants == !kind->flush && !kind->wants == !kind->pending &&
		     !kind->wants == !kind->passed);
	stream->kind = kind;
	stream->layered = kind->wants != NULL;
}

/* Watches for `io`, of enum spoke_io, and nothing else. */
static inline void spokei_stream_watch(struct spokei_stream *stream, unsigned io)
{
	if (stream->io == io)
		return;
	stream->io = io;
	stream->engine->env->loop->watch(stream->engine->loop, &stream->watch, io);
}

/* Returns how many bytes can be read without the descriptor. */
static inline size_t spokei_stream_pending(const struct spokei_stream *stream)
{
	return stream->layered ? stream->kind->pending(stream) : 0;
}

/* Returns how many names the peer has, and where; 0 for a plain socket. */
static inline size_t spokei_stream_names(const struct spokei_stream *stream,
					 const struct spoke_span **ret_names)
{
	return stream->kind->names ? stream->kind->names(stream, ret_names) : 0;
}

/* Returns whether the stream is secured now, and describes that; `ret_info` may be NULL. */
static inline bool spokei_stream_look(const struct spokei_stream *stream,
				      struct spoke_tls_info *ret_info)
{
	return stream->kind->look && stream->kind->look(stream, ret_info);
}

/* Returns why the last slot of a stream of its kind has failed; NULL: its errno says it. */
static inline const char *spokei_stream_why(const struct spokei_stream *stream)
{
	return stream->kind->why ? stream->kind->why(stream) : NULL;
}

/* Returns whether the first bytes of a peer begin a record of TLS, of a handshake or an alert. No
 * wire begins like that. */
static inline bool spokei_stream_begins_tls(const void *bytes, size_t len)
{
	const unsigned char *first = bytes;

	return len >= 2 && (first[0] == 0x16 || first[0] == 0x15) && first[1] == 3;
}

/* Why a connection is closed by this side, in an event. */
struct spokei_stream_blame {
	const char *title; /* before the sentence, e.g. "page: " */
	const char *why;   /* after it; NULL: the reason of the stream, if any */
	const struct spoke_address *peer;
	enum spoke_stat stat; /* one of the reasons, SPOKE_STAT_CLOSED_... */
	int error;
	struct spokei_bucket *events; /* limits the events of all connections of an owner */
};

/* Counts the reason and reports it, with that of the stream. Call it before spokei_stream_close().
 * A peer that ends its connection itself is counted only. */
void spokei_stream_blame(const struct spokei_stream *stream,
			 const struct spokei_stream_blame *blame);

/* Closes the stream and the descriptor; a second time does nothing. */
void spokei_stream_close(struct spokei_stream *stream);

/* Converts bytes for an iovec, which has no const. */
static inline struct iovec spokei_stream_part(const void *bytes, size_t len)
{
	union {
		const void *given;
		void *taken;
	} cast = { .given = bytes };

	return (struct iovec){ cast.taken, len };
}

#endif
