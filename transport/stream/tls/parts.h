/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of TLS streams, for one another. Each file calls only those before it:
 *
 *     names     the names that certificates bear, wanted and shown
 *     context   files to the library's context
 *     bytes     bytes between the library and the descriptor
 *     warm      the library's buffers, kept while they are used
 *     link      a stream's own part, and that of all
 *     reload    changed files into use
 *     linger    the end of a failed handshake
 *     places    peers that have handshakes
 *     steps     the steps of handshakes, on a thread
 *     open      handshakes: bounded in number, and a few steps at a time
 *     collect   the bytes before a handshake
 *     flow      the open stream
 *     look      the state of a stream, and the end of the own certificate
 *     life      the table of the streams, and the owner of all
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
	/* During a write() of an open stream: where its records go; NULL: to `lag`. */
	unsigned char *out;
	size_t out_len;
	bool accepts;
	enum spoke_tls_verify verify; /* as spokei_tls_verifies() returns it */
	/* Handshakes: streams that wait for their next step, and for their first one, which comes
	 * after it; streams without a place; streams that have one. */
	struct spoke_list next;
	struct spoke_list first;
	struct spoke_list standing;
	struct spoke_list placed;
	uint32_t places;
	uint32_t places_max;
	struct spokei_quota peers;   /* handshakes of each, with those that wait */
	struct spokei_bucket begins; /* handshakes that may begin; rate 0: no limit */
	struct spoke_alarm ration;   /* the next one may */
	struct spokei_task task;     /* begins the next steps */
	struct spoke_alarm late;     /* ... and is due, because one has waited for long */
	bool here;                   /* the step that begins now is for the loop */
	struct spoke_list open;      /* streams that are open */
	struct spoke_list warm; /* those that keep the library's buffers, the first one longest */
	uint32_t warm_count;
	struct spoke_alarm look; /* for those that do not use them; set while there are any */
	struct spokei_tls_reload *reload;
	void (*refuse)(struct spokei_stream *stream); /* NULL: open streams stay */
	uint64_t key_records;                         /* that one key makes at most */
	/* The last failure of a stream that has no memory for it, or is closed ... */
	char why[SPOKEI_TLS_WHY];
	const struct spokei_stream *why_of; /* ... which is only compared; NULL: none */
	struct spoke_list
		lingering;         /* streams whose handshake has failed, the first to end first */
	struct spoke_alarm linger; /* ... for that end */
	struct spoke_alarm term;   /* for the end of the certificate of this side */
	unsigned term_stage;       /* events about it so far */
};

/* A step of a handshake: a thread has it, with `ssl`, `in`, `raw` and `lag` of the link, until it
 * is over. */
struct spokei_tls_step {
	struct spoke_work work;
	struct spokei_tls_link *link;
	SSL_CTX *context;    /* of the first step, owned; NULL: `ssl` is made */
	time_t now_s;        /* of its certificates */
	unsigned long error; /* the library's, if it has failed */
	int result;          /* of the library: SSL_ERROR_NONE, SSL_ERROR_WANT_READ, ... */
	int status;          /* 0 or -ENOMEM */
	bool begun;
	bool over;
};

/* A stream's own part. */
struct spokei_tls_link {
	struct spokei_stream *stream; /* NULL: it was closed while its step was away */
	struct spokei_tls *tls;
	size_t size;                  /* of this struct, with the host */
	const char *host;             /* that was connected to; NULL: none */
	SSL *ssl;                     /* NULL before the first step */
	struct spokei_tls_step *step; /* NULL: none has begun whose result is not used yet */
	/* In `next`, `first`, `standing`, `lingering` or `open`; next == NULL: in none. */
	struct spoke_list node;
	struct spoke_list place;              /* in `placed`; next == NULL: it has no place */
	struct spoke_list warm;               /* in `warm`; next == NULL: it keeps no buffers */
	struct spokei_quota_peer *quota_peer; /* of its peer, if the handshake is counted */
	struct spoke_span in;     /* during a call of the library: its input, borrowed */
	struct spokei_buffer raw; /* received, and not given to the library */
	struct spokei_buffer lag; /* made by the library, and not taken by the descriptor */
	struct spokei_tls_names names;
	struct spokei_bucket updates; /* changes of the peer's keys */
	uint64_t records;             /* written with the present keys */
	uint64_t keyed_ns;            /* since when */
	uint64_t linger_ns;           /* the end of its lingering; 0: it is over */
	uint64_t passed;              /* bytes that the descriptor has taken */
	size_t received;              /* bytes of the handshake */
	char *why;                    /* the first failure; NULL: none, or there was no memory */
	int error;                    /* sticky: reading has failed */
	uint64_t queued_ns;           /* since when its step waits */
	bool due;                     /* its step may begin now */
	bool used;                    /* it has had a record since the last look */
	bool open;
	bool counted;   /* its peer has this handshake */
	bool refused;   /* its owner was told that the peer is not trusted any more */
	bool ended;     /* the descriptor gives no more */
	bool closed;    /* the peer's close_notify has come */
	bool told;      /* read() has returned its end, or `error` */
	bool dying;     /* the handshake has failed, and the peer is being told */
	bool flooded;   /* the peer changes its keys too often */
	int unwritable; /* sticky: why the direction that writes is broken; 0: it is not */
	bool shut;      /* close_notify follows the bytes that wait */
	bool shut_done;
};

/* Returns whether a thread has the step of the stream. */
static inline bool spokei_tls_is_away(const struct spokei_tls_link *link)
{
	return SPOKEI_UNLIKELY(link->step != NULL) && !link->step->over;
}

/* Returns whether a stream waits for a step. */
static inline bool spokei_tls_has_waiting(const struct spokei_tls *tls)
{
	return !spokei_list_empty(&tls->next) || !spokei_list_empty(&tls->first);
}

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
void spokei_tls_names_free(const struct spoke_env *env, struct spokei_tls_names *names);

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

/* --- bytes.c */

BIO_METHOD *spokei_tls_method_new(void);

/* Gives the stream's SSL object its BIO. Returns 0 or -ENOMEM. */
int spokei_tls_join(struct spokei_tls_link *link);

/* Makes `in` the bytes that wait, or else receives at most `max`. Returns 1 if there are any, 0 at
 * the end, or a negative errno. */
ssize_t spokei_tls_receive(struct spokei_tls_link *link, size_t max);

/* Keeps the rest of `in` for the next call. Returns 0 or -ENOMEM. */
int spokei_tls_keep(struct spokei_tls_link *link);

/* Passes `lag` on, unless a thread has it. Returns 0: nothing is left, or a negative errno. */
int spokei_tls_push(struct spokei_tls_link *link);

/* Writes why the stream has failed, unless an earlier failure is known. `remedy` may be NULL. */
void spokei_tls_tell(struct spokei_stream *stream, const char *text, const char *remedy);

/* Returns why the stream has failed, or NULL. */
const char *spokei_tls_why(const struct spokei_stream *stream);

/* Forgets why an earlier stream at this address has failed. */
void spokei_tls_forget(const struct spokei_stream *stream);

/* Writes the reason for a result and an error of the library. Returns the errno for them. */
int spokei_tls_failed(struct spokei_tls_link *link, int result, unsigned long error);

/* --- linger.c */

/* Passes on the alert of a stream that failed with link->error. Returns 0 if the stream lingers, so
 * that the peer reads it, or else that error. */
int spokei_tls_linger(struct spokei_tls_link *link);

/* Drops what the peer of a lingering stream sends. Returns 0, or the errno of the handshake at the
 * end. */
int spokei_tls_swallow(struct spokei_tls_link *link);

/* --- places.c */

/* Changes how many handshakes a peer may have. */
void spokei_tls_peers_limit(struct spokei_tls *tls, const struct spokei_tls_limits *limits);

/* Counts a handshake of the peer, if its address is known. Returns 0, -EDQUOT (it has too many) or
 * -ENOMEM. */
int spokei_tls_peer_enter(struct spokei_tls_link *link);

/* Undoes that, if it was done. */
void spokei_tls_peer_leave(struct spokei_tls_link *link);

/* --- warm.c */

/* Lets the stream keep the library's buffers for a while: it is not in `warm`. */
void spokei_tls_warm_up(struct spokei_tls_link *link);

/* Frees the library's buffers, unless there is a part of a record in them. */
void spokei_tls_cool(struct spokei_tls_link *link);

/* Notes that the stream has had a record. */
static inline void spokei_tls_use(struct spokei_tls_link *link)
{
	link->used = true;
	if (SPOKEI_UNLIKELY(link->warm.next == NULL))
		spokei_tls_warm_up(link);
}

/* --- link.c */

/* Makes the state of a stream. NULL: no memory. */
struct spokei_tls_link *spokei_tls_link_new(struct spokei_stream *stream);

/* Frees it: it is in no list, and no thread has its step. */
void spokei_tls_link_free(struct spokei_tls_link *link);

/* Ends a use of the owner's part, and frees it after the last one. */
void spokei_tls_drop(struct spokei_tls *tls);

/* --- steps.c */

/* Begins a step with the bytes in `raw`: link->step. The loop takes it if tls->here is set, or no
 * thread does, and it is over then. Else the stream is ready when it is. Returns 0 or -ENOMEM. */
int spokei_tls_step_begin(struct spokei_tls_link *link);

/* Returns the step, whose memory it frees. It is over. */
struct spokei_tls_step spokei_tls_step_end(struct spokei_tls_link *link);

/* --- open.c */

int spokei_tls_open(struct spokei_stream *stream);

/* Begins the handshake of an accepted stream, which has sent these bytes: a ClientHello, and maybe
 * more. It has no state yet. As open() of a stream. */
int spokei_tls_accept(struct spokei_stream *stream, struct spoke_span bytes);

/* Takes the stream out of the queues of handshakes. */
void spokei_tls_leave(struct spokei_tls_link *link);

/* Prepares the queues of handshakes. */
void spokei_tls_open_init(struct spokei_tls *tls);

/* --- collect.c */

/* Writes the kind of accepted streams until then, without its owner. */
void spokei_tls_collector(struct spokei_stream_kind *ret);

/* --- reload.c */

/* Begins to look at the files, whose content had these prints before they were read. Returns 0,
 * SPOKE_ENOMEM or SPOKE_ELIMIT (no timer). */
SPOKE_MUST_USE int spokei_tls_reload_new(struct spokei_tls *tls,
					 const struct spokei_tls_options *options,
					 const struct spokei_tls_prints *prints);
void spokei_tls_reload_free(struct spokei_tls_reload *reload);

/* --- flow.c */

ssize_t spokei_tls_read(struct spokei_stream *stream, void *bytes, size_t len);
size_t spokei_tls_pending(const struct spokei_stream *stream);
ssize_t spokei_tls_write(struct spokei_stream *stream, const struct iovec *parts, int count);
int spokei_tls_flush(struct spokei_stream *stream);
int spokei_tls_shut(struct spokei_stream *stream);

/* --- look.c */

/* The slot `look` of the streams. */
bool spokei_tls_look(const struct spokei_stream *stream, struct spoke_tls_info *ret_info);

/* Reports events before the end of this side's certificate, if it has one, until the end. Returns 0
 * or an error of spoke_alarm_after(). */
SPOKE_MUST_USE int spokei_tls_term_begin(struct spokei_tls *tls);
void spokei_tls_term_end(struct spokei_tls *tls);

#endif
