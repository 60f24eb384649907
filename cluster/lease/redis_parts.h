/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a store, and what its files use of one another: subscriber.c has the published
 * messages, sentinel.c finds the primary; redis.c stands on both, and has the asks. On the engine's
 * thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_REDIS_PARTS_H
#define SPOKEI_CLUSTER_LEASE_REDIS_PARTS_H

#include "cluster/lease/link.h"
#include "cluster/lease/redis.h"
#include "core/memory/map.h"

#define SPOKEI_REDIS_SHA 40u /* bytes of a script's id in hex */

/* The first commands, in the order of their replies. */
enum spokei_redis_step {
	SPOKEI_REDIS_AUTH,
	SPOKEI_REDIS_SELECT,
	SPOKEI_REDIS_NAME,   /* CLIENT SETNAME */
	SPOKEI_REDIS_ID,     /* CLIENT ID */
	SPOKEI_REDIS_POLICY, /* CONFIG GET maxmemory-policy */
	SPOKEI_REDIS_ROLE,
	SPOKEI_REDIS_LOAD, /* SCRIPT LOAD, of each script */
	SPOKEI_REDIS_KILL = SPOKEI_REDIS_LOAD + SPOKEI_SCRIPTS - 1, /* CLIENT KILL */
	SPOKEI_REDIS_STEPS,
};

/* A sentinel that is asked, and listened to afterwards. */
struct spokei_redis_sentinel {
	struct spokei_redis_link link;
	/* The primary is at this address; no sentinel names one now, for this reason. */
	void (*found)(struct spokei_redis *redis, const char *host, uint16_t port);
	void (*none)(struct spokei_redis *redis, int error, const char *why);
	struct spokei_place places[SPOKEI_REDIS_SENTINELS_MAX];
	unsigned count;
	unsigned next;   /* index of the sentinel that is asked */
	unsigned failed; /* sentinels in a row that gave no answer */
	bool greeted;    /* AUTH is answered, or was not needed */
	bool named;      /* it has named the primary on this connection */
	bool pinged;
};

struct spokei_redis {
	struct spoke_engine *engine;
	const struct spokei_redis_up *up;
	void *arg;
	struct spokei_redis_link commands;
	struct spokei_redis_link subscriber;
	struct spokei_redis_sentinel *sentinel; /* NULL: the address is fixed */

	/* asks */
	struct spoke_list asks; /* under way, the oldest first */
	uint64_t patience_ns;
	uint64_t due_ns;           /* the answer to the oldest ask is late from here on */
	size_t mark;               /* bytes of output before the command that is being written */
	unsigned texts;            /* still missing in it */
	int fault;                 /* of its parts */
	enum spokei_script script; /* that it calls */
	unsigned keys;

	/* greeting */
	uint32_t steps;     /* first commands without a reply, as bits */
	uint64_t id;        /* of this connection at the server; 0: unknown */
	uint64_t stale;     /* of the connection before, to be ended; 0: none */
	char stale_at[160]; /* and its address as seen from here; "": not known */
	char sha[SPOKEI_SCRIPTS][SPOKEI_REDIS_SHA];
	char hint[SPOKEI_REDIS_WHY]; /* a text that the server sent before it closed; "": none */
	bool warned_policy;
	bool quiet;     /* a failure has been logged, and no connection has worked since */
	bool recovered; /* ... and that it answers again */
	bool shown;     /* the connection has been logged */

	/* subscriber */
	struct spokei_map channels;
	struct spoke_list wanted; /* channels whose SUBSCRIBE is to be written */
	struct spoke_list asked;  /* ... is written */
	uint64_t subscriber_sent; /* SUBSCRIBE and UNSUBSCRIBE on this connection */
	uint64_t subscriber_got;  /* replies to them */
	bool subscriber_greeted;
	bool subscriber_pinged;
	bool subscriber_quiet;   /* the failure has been logged */
	bool subscriber_refused; /* ... that of a SUBSCRIBE */

	bool freed;
	struct spokei_task bury;
	uint32_t db;
	char user[SPOKEI_REDIS_TEXT_MAX + 1];
	char password[SPOKEI_REDIS_TEXT_MAX + 1];
	char primary[SPOKEI_REDIS_TEXT_MAX + 1];
	char sentinel_password[SPOKEI_REDIS_TEXT_MAX + 1];
};

/* Logs an event of the store. */
#define SPOKEI_REDIS_EVENT(redis, error, format, ...)                                              \
	spokei_event_of((redis)->engine, SPOKE_EVENT_OF_LEASE, error, "store %s: " format,         \
			(redis)->commands.goal.name, __VA_ARGS__)

/* --- subscriber.c */

extern const struct spokei_redis_link_up spokei_redis_subscriber_up;

/* Connects the subscriber if a channel is wanted. */
void spokei_redis_listen(struct spokei_redis *redis);

/* Forgets all channels. */
void spokei_redis_unsubscribe_all(struct spokei_redis *redis);

/* --- sentinel.c */

/* Makes the sentinel's part, but for its functions. Returns 0 or an error as spokei_redis_new(). */
SPOKE_MUST_USE int spokei_redis_sentinel_new(struct spokei_redis *redis,
					     const struct spokei_redis_options *options);

/* Asks for the primary after a pause. */
void spokei_redis_seek(struct spokei_redis *redis, uint64_t pause_ns);

#endif
