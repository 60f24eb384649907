/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One store: a Redis server, or the primary that a group of sentinels names. Keeps a connection for
 * commands, on which scripts are loaded, and a second one for published messages, which is made
 * when the first channel is subscribed to. Both are made again, with backoff, whenever they end.
 *
 * A command is written into the output, then sent:
 *
 *     spokei_redis_begin() -> spokei_redis_text() or _number(), `count` times ->
 * spokei_redis_send()
 *
 * All output of a turn is written at its end, with one system call. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_REDIS_H
#define SPOKEI_CLUSTER_LEASE_REDIS_H

#include "cluster/lease/resp.h"
#include "cluster/lease/script.h"

#define SPOKEI_REDIS_CONNECT_NS UINT64_C(5000000000)
#define SPOKEI_REDIS_IDLE_NS UINT64_C(10000000000) /* silence after which messages are probed */
struct spoke_engine;
struct spokei_redis;
struct spokei_store;

/* All is borrowed until spokei_redis_free(). */
struct spokei_redis_options {
	const struct spokei_store
		*store;                /* its address; or the sentinels, and the primary's name */
	const char *user;              /* NULL: the default user */
	const char *password;          /* NULL: none is asked for */
	const char *sentinel_password; /* of the sentinels themselves; NULL: none */
	uint64_t connect_ns; /* for a connection and its greeting; 0: SPOKEI_REDIS_CONNECT_NS */
};

/* An ask: a command under way. Embedded; borrowed from send() until done(). */
struct spokei_redis_ask {
	struct spoke_list node; /* next NULL: not under way */
	/*
	 * The answer, once, never called inside send(). `error` 0: `reply` is borrowed for the
	 * call, and may be an error reply of the server. SPOKE_ELOST: the connection ended,
	 * or was not usable: the command may have run, or may run yet. May call anything of this
	 * header, also free().
	 */
	void (*done)(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply);
	enum spokei_script script;
	unsigned keys;
};

/* A channel that is listened to. Embedded; borrowed from subscribe() until unsubscribe(). */
struct spokei_redis_channel {
	struct spoke_span name; /* the owner's, constant meanwhile */
	struct spoke_list node; /* the rest belongs to the store; next NULL: not subscribed */
	uint64_t order;         /* number of its SUBSCRIBE on this connection; 0: not sent */
	bool known;             /* in the map of names */
};

struct spokei_redis_up {
	/* Commands are taken from now on. */
	void (*ready)(void *arg);
	/* The connection for commands has ended, or could not be made; for each failure. `text` is
	 * the reason, printable. All asks have ended with SPOKE_ELOST before. It is made again by
	 * itself. */
	void (*down)(void *arg, int error, struct spoke_span text);
	/* A subscription is in force, perhaps again: earlier messages may have been missed. */
	void (*subscribed)(void *arg, struct spokei_redis_channel *channel);
	void (*message)(void *arg, struct spokei_redis_channel *channel, struct spoke_span payload);
};

/*
 * Begins to connect. Nothing is called before the next turn. Returns 0; SPOKE_EINVAL: no valid
 * place, or sentinels without the name of a primary; SPOKE_ELIMIT: the wheel has no timer or class
 * left; SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_redis_new(struct spoke_engine *engine,
				    const struct spokei_redis_options *options,
				    const struct spokei_redis_up *up, void *arg,
				    struct spokei_redis **ret_redis);

/* Ends the connections; queued commands are written as far as the socket takes them at once. Asks
 * and channels are forgotten without any call, and nothing is called any more. NULL is fine. */
void spokei_redis_free(struct spokei_redis *redis);

/* Returns whether commands are taken. */
bool spokei_redis_is_ready(const struct spokei_redis *redis);

/* Begins a command: a script with `count` texts, of which the first `keys` are keys; or with
 * SPOKEI_SCRIPT_NONE a plain command, whose name is the first text. Errors are kept for send(). */
void spokei_redis_begin(struct spokei_redis *redis, enum spokei_script script, unsigned keys,
			unsigned count);
void spokei_redis_text(struct spokei_redis *redis, struct spoke_span text);
void spokei_redis_number(struct spokei_redis *redis, uint64_t number);

/*
 * Sends the command. Returns 0; SPOKE_ESTATE: not ready; SPOKE_ELIMIT: too much
 * output waits; SPOKE_ENOMEM. After an error nothing was queued, and done() is not called.
 */
SPOKE_MUST_USE int spokei_redis_send(struct spokei_redis *redis, struct spokei_redis_ask *ask);

/* Listens to a channel, also after each reconnect. Without memory the subscription is never in
 * force; so its owner must not rely on messages alone. */
void spokei_redis_subscribe(struct spokei_redis *redis, struct spokei_redis_channel *channel);
void spokei_redis_unsubscribe(struct spokei_redis *redis, struct spokei_redis_channel *channel);

/* If the oldest ask is unanswered for this long, the connection ends. 0: never. Begins with the
 * next answer, or the next ask after none. */
void spokei_redis_patience(struct spokei_redis *redis, uint64_t ns);

/* Ends the connection for commands, and makes it again after a pause. `why` is a constant. */
void spokei_redis_restart(struct spokei_redis *redis, const char *why);

/* Returns the address as text, without secrets, e.g. "127.0.0.1:6379"; valid until the connection
 * is made again. */
const char *spokei_redis_address(const struct spokei_redis *redis);

#endif
