/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a store, and what its files use of one another: greet.c has the first commands of a
 * connection, ears.c the published messages, sentinel.c finds the primary; commands.c stands on all
 * of them, and has the asks. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_REDIS_PARTS_H
#define SPOKEI_CLUSTER_LEASE_REDIS_PARTS_H

#include "cluster/lease/link.h"
#include "cluster/lease/redis.h"
#include "core/memory/map.h"

#define SPOKEI_REDIS_SHA 40u   /* bytes of a script's id in hex */
#define SPOKEI_REDIS_SHOWN 100 /* bytes of a server's text that are shown */

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
	struct spokei_redis_link ears;
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
	uint64_t ghost;     /* of the connection before, to be ended; 0: none */
	char ghost_at[160]; /* and its address as seen from here; "": not known */
	char sha[SPOKEI_SCRIPTS][SPOKEI_REDIS_SHA];
	char hint[SPOKEI_REDIS_WHY]; /* a text that the server sent before it closed; "": none */
	bool warned_policy;
	bool quiet;     /* a failure has been logged, and no connection has worked since */
	bool recovered; /* ... and that it answers again */
	bool shown;     /* the connection has been logged */

	/* ears */
	struct spokei_map channels;
	struct spoke_list wanted; /* channels whose SUBSCRIBE is to be written */
	struct spoke_list asked;  /* ... is written */
	uint64_t ears_sent;       /* SUBSCRIBE and UNSUBSCRIBE on this connection */
	uint64_t ears_got;        /* replies to them */
	bool ears_greeted;
	bool ears_pinged;
	bool ears_quiet;   /* the failure has been logged */
	bool ears_refused; /* ... that of a SUBSCRIBE */

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

/* --- greet.c */

/* Writes a command of texts; the link ends if that is not possible. */
void spokei_redis_put(struct spokei_redis_link *link, unsigned count, const char *const *texts);

/* Writes AUTH, with "" for the default user. */
void spokei_redis_put_auth(struct spokei_redis_link *link, const char *user, const char *password);

/* Ends a link because of this error reply to a command. */
void spokei_redis_refused(struct spokei_redis_link *link, const char *command,
			  const struct spokei_resp_value *reply);

/* Ends a link because of a reply of the wrong type. */
void spokei_redis_strange(struct spokei_redis_link *link, const char *command);

/* Writes the first commands. */
void spokei_redis_greet(struct spokei_redis *redis);

/* Reads a reply to one of them. Returns whether it was the last, and all are good. */
bool spokei_redis_greeted(struct spokei_redis *redis, struct spokei_resp_cursor reply);

/* Probes a silent connection that only listens; the function for up->due(). */
void spokei_redis_probe(struct spokei_redis_link *link, bool *pinged);

/* --- ears.c */

extern const struct spokei_redis_link_up spokei_redis_ears_up;

/* Connects the ears if a channel is wanted. */
void spokei_redis_listen(struct spokei_redis *redis);

/* Forgets all channels. */
void spokei_redis_deaf(struct spokei_redis *redis);

/* --- sentinel.c */

/* Makes the sentinel's part, but for its functions. Returns 0 or an error as spokei_redis_new(). */
SPOKE_MUST_USE int spokei_redis_sentinel_new(struct spokei_redis *redis,
					     const struct spokei_redis_options *options);

/* Asks for the primary after a pause. */
void spokei_redis_seek(struct spokei_redis *redis, uint64_t pause_ns);

#endif
