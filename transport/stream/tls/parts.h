/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of TLS streams, for one another:
 *
 *     hello      finds the end of a ClientHello
 *     names      the names that certificates bear, wanted and shown
 *     context    files to the library's context
 *     reload     changed files into use
 *     pipe       the library's object and the bytes around it; why a stream has failed
 *     handshake  all before a stream is open: bounded in number, and a few steps at a time
 *     tls        the open stream, what users see of it, the table, and the owner of all
 */
#ifndef SPOKEI_TRANSPORT_STREAM_TLS_PARTS_H
#define SPOKEI_TRANSPORT_STREAM_TLS_PARTS_H

#include "core/base/pace.h"
#include "core/memory/buffer.h"
#include "transport/listen/quota.h"
#include "transport/stream/tls/tls.h"

#include <spoke/engine.h>
#include <spoke/value.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#define SPOKEI_TLS_RECORD 16384u        /* bytes of plaintext in a record */
#define SPOKEI_TLS_RECORD_OVERHEAD 256u /* allowed by the protocol */
#define SPOKEI_TLS_WRITE_RECORDS 14u    /* of one write() */

/* Bytes of the records of one write(): the scratch behind room for one record's plaintext. */
#define SPOKEI_TLS_OUT (SPOKEI_ENGINE_SCRATCH - SPOKEI_TLS_RECORD)

/* Bytes that wait for the descriptor: one write(), and answers of the protocol. */
#define SPOKEI_TLS_LAG_MAX 262144u
#define SPOKEI_TLS_HANDSHAKE_MAX 65536u /* bytes of a peer's handshake */
#define SPOKEI_TLS_PIECE 16384u         /* bytes that are received at once, before it is open */
#define SPOKEI_TLS_NAMES 16u            /* that a peer may have; more are not looked at */
#define SPOKEI_TLS_NAMES_SIZE 2048u     /* bytes of them all */

struct spokei_tls_ask;
struct spokei_tls_reload;

/* Names of a peer, in one block. */
struct spokei_tls_names {
	struct spoke_span *spans;
	size_t count;
	size_t size; /* of the block */
};

/* Where the records of one write() go. */
struct spokei_tls_out {
	unsigned char *bytes;
	size_t len;
};

struct spokei_tls {
	struct spokei_stream_kind kind;
	struct spokei_stream_kind silent;   /* of accepted streams, until a ClientHello is whole */
	struct spokei_stream_kind or_plain; /* ... that may be plain */
	struct spoke_engine *engine;
	uint32_t uses;    /* by its owner, and by steps that are away */
	uint32_t away;    /* such steps */
	SSL_CTX *context; /* of the next connections */
	BIO_METHOD *method;
	struct spokei_tls_ask *ask; /* the names that peers have to bear; NULL: their host */
	/* SPOKEI_ENGINE_SCRATCH bytes: received bytes, while they are read; the records of one
	 * write(), while they are made. */
	unsigned char *scratch;
	struct spokei_tls_out out; /* of the write() that is running */
	bool accepts;
	enum spoke_tls_verify verify; /* as spokei_tls_verifies() returns it */
	/* Handshakes: streams that wait for their next step, and for their first one, which comes
	 * after it; streams without a slot. */
	struct spoke_list next;
	struct spoke_list first;
	struct spoke_list standing;
	struct spoke_list holders; /* those with a slot, by their progress; the oldest first */
	uint32_t slots;            /* that are taken */
	uint32_t slots_max;
	struct spokei_quota peers;   /* handshakes of each, with those that wait */
	struct spokei_bucket begins; /* handshakes that may begin; rate 0: no limit */
	struct spoke_alarm ration;   /* the next one may, or has to give way */
	struct spokei_task task;     /* begins the next steps */
	struct spoke_alarm late;     /* ... and is due, because one has waited for long */
	bool here;                   /* the step that begins now is for the loop */
	struct spoke_list open;      /* streams that are open */
	struct spoke_list warm; /* those that keep the library's buffers, the first one longest */
	uint32_t warm_count;
	struct spoke_alarm cooling; /* for those that do not use them; set while there are any */
	struct spokei_tls_reload *reload;
	void (*refuse)(struct spokei_stream *stream); /* NULL: open streams stay */
	uint64_t key_records;                         /* that one key makes at most */
	/* The last failure of a stream that has no memory for it, or is closed ... */
	char why[SPOKEI_TLS_WHY];
	const struct spokei_stream *why_of; /* ... which is only compared; NULL: none */
	/* Streams whose handshake has failed, the first to end first ... */
	struct spoke_list lingering;
	struct spoke_alarm linger; /* ... for that end */
	struct spoke_alarm term;   /* for the end of the certificate of this side */
	unsigned term_stage;       /* events about it so far */
};

/* The library's object and the bytes around it. A handshake hands it over to a thread, and back. */
struct spokei_tls_pipe {
	SSL *ssl;                 /* NULL before the first step */
	struct spoke_span in;     /* during a call of the library: its input, borrowed */
	struct spokei_buffer raw; /* received, and not given to the library */
	struct spokei_buffer lag; /* made by the library, and not taken by the descriptor */
	/* During a write() of an open stream; NULL: records go to `lag`. */
	struct spokei_tls_out *out;
	bool ended;   /* the descriptor gives no more */
	bool flooded; /* the peer changes its keys too often */
};

/* The names of which the peer has to bear one: the app data of the library's object of a stream
 * that connects. */
struct spokei_tls_expected {
	const struct spokei_tls_ask *ask; /* NULL: the host's */
	const char *host;                 /* "": none */
};

/* The things of a thread while it takes a step: it touches no others, and the loop none of them. */
struct spokei_tls_step {
	struct spokei_tls_pipe pipe; /* of the stream, handed over */
	struct spokei_tls_expected expected;
	BIO_METHOD *method;
	SSL_CTX *context; /* of the first step, owned; NULL: the library's object is made */
	time_t now_s;     /* of its certificates */
	bool accepts;
	bool begun;
	unsigned long error; /* the library's, if it has failed */
	int result;          /* of the library: SSL_ERROR_NONE, SSL_ERROR_WANT_READ, ... */
	int status;          /* 0 or a negative errno: no result */
};

enum spokei_tls_stage {
	SPOKEI_TLS_WITH_LOOP,
	SPOKEI_TLS_AWAY, /* the thread has the step */
	SPOKEI_TLS_OVER, /* ... and has given it back, and its result is not used yet */
};

/* The state of a stream until it is open. */
struct spokei_tls_handshake {
	struct spoke_work work;
	struct spokei_tls *tls;
	struct spokei_tls_link *link; /* NULL: the stream was closed while its step was away */
	struct spokei_tls_step step;
	enum spokei_tls_stage stage;
	struct spokei_quota_peer *quota_peer; /* if the handshake is counted */
	struct spoke_list slot;               /* in `holders`; next == NULL: it has no slot */
	uint64_t progress_ns;                 /* when it got that, or its state changed last */
	int state;                            /* the library's, then */
	uint64_t queued_ns;                   /* since when its step waits */
	uint64_t linger_ns;                   /* the end of its lingering; 0: it is over */
	size_t received;                      /* bytes of the handshake */
	bool due;                             /* its step may begin now */
	bool yields;                          /* it has to give up its slot, and ends */
	bool counted;                         /* its peer has this handshake */
	bool dying;                           /* it has failed, and the peer is being told */
	size_t size;                          /* of this struct, with the host */
	char host[];                          /* that was connected to; "": none */
};

/* A stream's own part. */
struct spokei_tls_link {
	struct spokei_stream *stream;
	struct spokei_tls *tls;
	struct spokei_tls_handshake *handshake; /* NULL: the stream is open */
	struct spokei_tls_pipe pipe;            /* empty while a thread has its content */
	/* In `next`, `first`, `standing`, `lingering` or `open`; next == NULL: in none. */
	struct spoke_list node;
	struct spoke_list warm; /* in `warm`; next == NULL: it keeps no buffers */
	struct spokei_tls_names names;
	struct spokei_bucket updates; /* changes of the peer's keys */
	uint64_t records;             /* written with the present keys */
	uint64_t keyed_ns;            /* since when */
	uint64_t passed;              /* bytes that the descriptor has taken */
	char *why;                    /* the first failure; NULL: none, or there was no memory */
	int error;                    /* sticky: reading has failed */
	int unwritable; /* sticky: why the direction that writes is broken; 0: it is not */
	bool used;      /* it has had a record since the last look */
	bool refused;   /* its owner was told that the peer is not trusted any more */
	bool closed;    /* the peer's close_notify has come */
	bool told;      /* read() has returned its end, or `error` */
	bool shut;      /* close_notify follows the bytes that wait */
	bool shut_done;
};

/* Returns the time of certificates. */
static inline time_t spokei_tls_seconds(const struct spoke_env *env)
{
	return (time_t)(env->wall(env->ctx) / UINT64_C(1000000000));
}

static inline struct spokei_tls *spokei_tls_of(const struct spokei_stream *stream)
{
	return stream->kind->owner;
}

/* Empties the thread's queue of errors, which the user's code fills, too. It is empty mostly, and
 * looking is cheaper. */
static inline void spokei_tls_forget_errors(void)
{
	if (SPOKEI_UNLIKELY(ERR_peek_error() != 0))
		ERR_clear_error();
}

/* --- names.c */

/* Reads a list of names. Returns NULL after writing `why`. */
struct spokei_tls_ask *spokei_tls_ask_new(const struct spoke_env *env, const char *list,
					  char why[SPOKEI_TLS_WHY], int *ret_error);

void spokei_tls_ask_free(const struct spoke_env *env, struct spokei_tls_ask *ask);

/* Returns whether a host is an address in digits. */
bool spokei_tls_is_address(const char *host);

/* Verifies a peer's chain and its names; of the library's kind. */
int spokei_tls_verify(X509_STORE_CTX *store, void *arg);

/* Returns whether the peer of an open stream would be accepted now. */
bool spokei_tls_trusts(const struct spokei_tls_link *link);

/* Writes the names of a verified certificate. Returns 0 or -ENOMEM. */
int spokei_tls_names_read(const struct spoke_env *env, X509 *cert,
			  struct spokei_tls_names *ret_names);

/* --- context.c */

/* Makes a context from files; `why` as of spokei_tls_new(). Any thread. */
int spokei_tls_context_new(const struct spoke_env *env, const struct spokei_tls_options *options,
			   char why[SPOKEI_TLS_WHY], SSL_CTX **ret_context);

#define SPOKEI_TLS_FILES 4u /* tls.cert, tls.key, tls.ca, tls.crl */

/* Numbers that tell files from others, by their content and by a key that others may read. */
struct spokei_tls_prints {
	uint64_t of[SPOKEI_TLS_FILES];
};

/* Any thread. */
struct spokei_tls_prints spokei_tls_context_prints(const struct spoke_env *env,
						   const struct spokei_tls_options *options);

/* --- pipe.c */

BIO_METHOD *spokei_tls_method_new(void);

static inline void spokei_tls_pipe_init(struct spokei_tls_pipe *pipe, const struct spoke_env *env)
{
	*pipe = (struct spokei_tls_pipe){ .ssl = NULL };
	spokei_buffer_init(&pipe->raw, env, SPOKEI_TLS_HANDSHAKE_MAX + SPOKEI_ENGINE_SCRATCH);
	spokei_buffer_init(&pipe->lag, env, SPOKEI_TLS_LAG_MAX);
}

void spokei_tls_pipe_fini(struct spokei_tls_pipe *pipe);

/* Moves the content of a pipe into an empty one. */
void spokei_tls_hand_over(struct spokei_tls_pipe *from, struct spokei_tls_pipe *to);

/* Gives the library's object its BIO. Returns 0 or -ENOMEM. */
int spokei_tls_join(struct spokei_tls_pipe *pipe, BIO_METHOD *method);

/* Returns the received bytes that wait for the library. */
static inline struct spoke_span spokei_tls_raw(const struct spokei_tls_pipe *pipe)
{
	return (struct spoke_span){ spokei_buffer_data(&pipe->raw), spokei_buffer_len(&pipe->raw) };
}

/* Keeps the rest of `in` for the next call. Returns 0 or -ENOMEM. */
int spokei_tls_keep(struct spokei_tls_pipe *pipe);

/* Passes `lag` on. Returns 0: nothing is left, or a negative errno. */
int spokei_tls_push(struct spokei_tls_link *link);

/* Writes why the stream has failed, unless an earlier failure is known. `remedy` may be NULL. */
void spokei_tls_tell(struct spokei_stream *stream, const char *text, const char *remedy);

/* Returns why the stream has failed, or NULL. */
const char *spokei_tls_why(const struct spokei_stream *stream);

/* Forgets why an earlier stream at this address has failed. */
static inline void spokei_tls_forget(const struct spokei_stream *stream)
{
	struct spokei_tls *tls = spokei_tls_of(stream);

	if (tls->why_of == stream)
		tls->why_of = NULL;
}

/* Writes the reason for a result and an error of the library. Returns the errno for them. */
int spokei_tls_failed(struct spokei_tls_link *link, int result, unsigned long error);

/* --- handshake.c */

int spokei_tls_open(struct spokei_stream *stream);

/* Returns for what a stream that is not open has its descriptor watched, but for bytes in `lag`. */
static inline unsigned spokei_tls_handshake_wants(const struct spokei_tls_link *link)
{
	if (link->handshake->stage == SPOKEI_TLS_AWAY)
		return 0;
	return link->node.next && !link->handshake->dying ? 0 : SPOKE_IO_READ;
}

/* Ends the handshake of a stream that is closed. A step that is away ends by itself. */
void spokei_tls_end_handshake(struct spokei_tls_link *link);

/* Prepares the queues of handshakes, and the kinds of accepted streams until their ClientHello is
 * whole. */
void spokei_tls_open_init(struct spokei_tls *tls);

/* --- reload.c */

/* Begins to look at the files, whose content had these prints before they were read. Returns 0,
 * SPOKE_ENOMEM or SPOKE_ELIMIT (no timer). */
SPOKE_MUST_USE int spokei_tls_reload_new(struct spokei_tls *tls,
					 const struct spokei_tls_options *options,
					 const struct spokei_tls_prints *prints);
void spokei_tls_reload_free(struct spokei_tls_reload *reload);

/* --- tls.c */

/* Lets the stream keep the library's buffers for a while: it is not in `warm`. */
void spokei_tls_warm_up(struct spokei_tls_link *link);

/* Notes that the stream has had a record. */
static inline void spokei_tls_use(struct spokei_tls_link *link)
{
	link->used = true;
	if (SPOKEI_UNLIKELY(link->warm.next == NULL))
		spokei_tls_warm_up(link);
}

/* Ends a use of the owner's part, and frees it after the last one. */
void spokei_tls_drop(struct spokei_tls *tls);

#endif
