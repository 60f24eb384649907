/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection that speaks RESP: keeps an address connected, cuts the input into replies, and
 * writes the queued output once a turn. After each end the link waits (backoff) and connects again.
 * Embedded in its owner, which stays until leave(), and longer if it is busy() then. On the
 * engine's thread.
 *
 *     stopped -> start() -> dialing -> opening -> greeting -> ready
 *        ^                     ^                                |
 *        +------- stop()       +----- waiting <---- any end ----+
 */
#ifndef SPOKEI_CLUSTER_LEASE_LINK_H
#define SPOKEI_CLUSTER_LEASE_LINK_H

#include "cluster/lease/resp.h"
#include "transport/connect/dialer.h"
#include "transport/stream/stream.h"

#define SPOKEI_REDIS_OUT_MAX 1048576u /* bytes of commands that wait for the socket */
#define SPOKEI_REDIS_BACKOFF_FIRST_NS UINT64_C(100000000)
#define SPOKEI_REDIS_BACKOFF_CAP_NS UINT64_C(5000000000)
#define SPOKEI_REDIS_SHOWN 100 /* bytes of a server's text that are shown */
#define SPOKEI_REDIS_WHY 200u  /* bytes of the reason of an end, with the NUL */

enum spokei_redis_link_state {
	SPOKEI_REDIS_STOPPED, /* also before the first start */
	SPOKEI_REDIS_WAITING, /* backoff, or its end is to be reported */
	SPOKEI_REDIS_DIALING, /* the name is resolved, or an address tried */
	SPOKEI_REDIS_OPENING,
	SPOKEI_REDIS_GREETING, /* the owner exchanges its first commands */
	SPOKEI_REDIS_READY,
};

struct spokei_redis;
struct spokei_redis_link;

/* A link that was left, and was busy, does not use its memory any more. Of redis.c. */
void spokei_redis_idle(struct spokei_redis *redis);

/* Functions of the owner, called by the loop, never inside a function of the link. Each may call
 * any function of the link. */
struct spokei_redis_link_up {
	/* Connected: write the first commands. AUTH is written before them. */
	void (*opened)(struct spokei_redis_link *link);
	/* Returns whether a reply is expected; if not, a byte that arrives ends the connection.
	 * NULL: it always is. */
	bool (*expects)(struct spokei_redis_link *link);
	/* This reply has arrived, borrowed for the call. */
	void (*reply)(struct spokei_redis_link *link, struct spokei_resp_cursor reply);
	/* The connection has ended, or could not be made: link->error, link->why. The link waits
	 * for the next attempt. */
	void (*ended)(struct spokei_redis_link *link);
	/* The time of spokei_redis_link_due() has come. NULL: a silent connection is probed. */
	void (*due)(struct spokei_redis_link *link);
};

struct spokei_redis_link {
	struct spoke_engine *engine;
	const struct spokei_redis_link_up *up;
	struct spokei_redis *redis; /* the owner */
	const char *user;           /* written with AUTH; "": the default user. The owner's */
	const char *password;       /* "": no AUTH. The owner's, too */
	enum spokei_redis_link_state state;
	uint32_t round;      /* counts ends and stops */
	bool reading;        /* a reply has begun */
	bool inside;         /* bytes are being taken in */
	bool worked;         /* the connection that ended last was of use */
	bool answered;       /* a reply has come since it was ready */
	bool left;           /* for ever */
	bool unwritable;     /* the socket takes no more; the rest of its input is read */
	uint64_t connect_ns; /* limit of an attempt, and of the greeting */
	uint64_t ready_ns;   /* since when it is ready */
	uint64_t heard_ns;   /* when the last bytes arrived */
	bool pinged;         /* a probe is unanswered */
	bool proving;        /* ... AUTH is */
	struct spokei_dialer dialer;
	struct spokei_stream stream;
	struct spokei_buffer in; /* the beginning of a reply */
	struct spokei_buffer out;
	struct spokei_resp_reader reader;
	struct spokei_task write;  /* on `last` */
	struct spokei_task ending; /* on `soon`: reports an end */
	int error;
	char why[SPOKEI_REDIS_WHY];
};

/* Initialises a link; dialer.place, user and password are set afterwards. Returns 0, or
 * SPOKE_ELIMIT: the wheel has no timer or class left; the link is to be left then, too. */
SPOKE_MUST_USE int spokei_redis_link_init(struct spokei_redis_link *link,
					  struct spokei_redis *redis,
					  const struct spokei_redis_link_up *up,
					  struct spoke_engine *engine, uint64_t connect_ns);

/* Frees the buffers of a link that was left and is not busy. */
static inline void spokei_redis_link_fini(struct spokei_redis_link *link)
{
	spokei_buffer_fini(&link->in);
	spokei_buffer_fini(&link->out);
}

/* Connects to dialer.place after a pause; 0: in the next turn. Only while it is stopped. */
static inline void spokei_redis_link_start(struct spokei_redis_link *link, uint64_t pause_ns)
{
	SPOKE_ASSERT(link->state == SPOKEI_REDIS_STOPPED);
	link->state = SPOKEI_REDIS_WAITING;
	spokei_dialer_set_timer(&link->dialer, pause_ns);
}

/* Closes the connection. Nothing is called any more until the next start. */
void spokei_redis_link_stop(struct spokei_redis_link *link);

/* Stops for ever, and gives the timer back. If busy() is true then, spokei_redis_idle() follows. */
void spokei_redis_link_leave(struct spokei_redis_link *link);

/* Returns whether the memory of a stopped link is still used: a name is being resolved. */
static inline bool spokei_redis_link_busy(const struct spokei_redis_link *link)
{
	return link->dialer.resolving;
}

/* Ends the connection, if there is one or one is being made, and reports that soon. */
SPOKEI_PRINTF(3, 4)
void spokei_redis_link_end(struct spokei_redis_link *link, int error, const char *format, ...);

/* The greeting was successful. */
void spokei_redis_link_ready(struct spokei_redis_link *link);

/* Writes link->out when the turn ends. */
void spokei_redis_link_write(struct spokei_redis_link *link);

/* Writes as much as the socket takes at once. */
void spokei_redis_link_flush(struct spokei_redis_link *link);

/* Has up->due() called at this time, unless an earlier time is set. While it is ready. */
void spokei_redis_link_due(struct spokei_redis_link *link, uint64_t due_ns);

/* Returns whether it is connected, so that commands can be written. */
static inline bool spokei_redis_link_open(const struct spokei_redis_link *link)
{
	return link->state >= SPOKEI_REDIS_GREETING;
}

/* --- commands and replies that all links have */

/* Writes a command of texts; the link ends if that is not possible. */
void spokei_redis_put(struct spokei_redis_link *link, unsigned count, const char *const *texts);

/* Ends a link because of this error reply to a command. */
void spokei_redis_refused(struct spokei_redis_link *link, const char *command,
			  const struct spokei_resp_value *reply);

/* Ends a link because of a reply of the wrong type. */
void spokei_redis_strange(struct spokei_redis_link *link, const char *command);

/* A connection that only listens is ready; it is probed when it is silent. */
void spokei_redis_listens(struct spokei_redis_link *link);

#endif
