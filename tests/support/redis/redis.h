/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Redis in memory, for tests in the virtual world: a process of the world that listens on the
 * network in memory, speaks RESP2 and runs the commands and scripts that leases use. It follows
 * Redis 7.0 in its replies and errors. Scripts are recognised by their text and run in C.
 *
 *     fakeredis_start(&server, &world, "127.0.0.1:6379");
 *     ... spoke_leases_new() with the store "redis://127.0.0.1:6379", run the world ...
 *     assert_true(fakeredis_lock(&server, "reports", &lock));
 *     fakeredis_stop(&server);
 *
 * The server turns whenever the world does. The functions below act at once, from outside of its
 * turns. Everything has a bound; exceeding the bound of the data stops the program, and exceeding
 * that of a connection closes the connection. The same seed gives the same history.
 */
#ifndef TESTS_SUPPORT_REDIS_REDIS_H
#define TESTS_SUPPORT_REDIS_REDIS_H

#include "core/virtual/world.h"

#include <spoke/value.h>

enum {
	FAKEREDIS_CONNS = 64,     /* most connections */
	FAKEREDIS_REPLICAS = 4,   /* most replicas of a primary */
	FAKEREDIS_SCRIPTS = 16,   /* most different scripts that are known */
	FAKEREDIS_FORBIDDEN = 16, /* most forbidden commands */
	FAKEREDIS_BUCKETS = 1024,
	FAKEREDIS_ARGS = 1024, /* most texts of a command */
};

/* What a script does. Those of REDISSON are scripts of the same effect as those of Redisson; their
 * texts are fakeredis_texts[]. */
enum fakeredis_script {
	FAKEREDIS_NO_SCRIPT,
	FAKEREDIS_ACQUIRE,
	FAKEREDIS_RENEW,
	FAKEREDIS_RELEASE,
	FAKEREDIS_REDISSON_ACQUIRE, /* key N; ttl ms, holder */
	FAKEREDIS_REDISSON_FENCED,  /* keys N, token; ttl ms, holder */
	FAKEREDIS_REDISSON_RELEASE, /* keys N, channel; message, ttl ms, holder */
	FAKEREDIS_SCRIPT_KINDS,
};

/* Texts for EVAL and SCRIPT LOAD of the scripts of REDISSON; NULL for the others. */
extern const char *const fakeredis_texts[FAKEREDIS_SCRIPT_KINDS];

/* A phase in which the server refuses commands. */
enum fakeredis_phase {
	FAKEREDIS_NORMAL,
	FAKEREDIS_LOADING, /* refuses all but AUTH, SELECT, CLIENT, CONFIG, ROLE, SUBSCRIBE */
	FAKEREDIS_BUSY,    /* refuses all but AUTH */
	FAKEREDIS_OOM,     /* refuses to use more memory, also in scripts */
	FAKEREDIS_MISCONF, /* refuses to write, also in scripts */
};

/* What becomes of the connection of a command. */
enum fakeredis_cut {
	FAKEREDIS_CUT_BEFORE, /* the connection is reset, and the command is not run */
	FAKEREDIS_CUT_AFTER,  /* the command is run, and the connection is reset */
	FAKEREDIS_CUT_MUTE,   /* it is run, but this connection answers nothing any more */
};

/* A command that was run, not refused, as the observer sees it; borrowed for the call. */
struct fakeredis_run {
	uint64_t client; /* id of the connection, as CLIENT ID returns it */
	int fd;          /* its descriptor at the server */
	enum fakeredis_script script;
	const struct spoke_span *args; /* the command's name and its arguments */
	unsigned count;
	bool killed; /* the connection is closed without an answer */
};

struct fakeredis_conn;
struct fakeredis_key;
struct fakeredis_op;

/* A replica, as its primary knows it. */
struct fakeredis_replica {
	struct fakeredis *server; /* NULL: unused */
	struct fakeredis_op *first;
	struct fakeredis_op *last;
	uint64_t delay_ns; /* of a write to the replica, and again of its acknowledgement */
	uint64_t applied;  /* offset */
	uint64_t acked;    /* offset that the primary knows of */
	bool cut;          /* nothing gets through */
};

/* A server. Zero-initialised before fakeredis_start(). Tests may read all fields, and set those of
 * the second part at any time. */
struct fakeredis {
	struct spokei_world_process process; /* first; freeze it with spokei_world_hold() */
	bool running;
	void *loop;
	struct spoke_watch listener;
	struct fakeredis_conn *conns[FAKEREDIS_CONNS];
	uint64_t clients; /* connections accepted since the start; the last client id */
	struct fakeredis_key *keys[FAKEREDIS_BUCKETS];
	uint32_t key_count;
	char host[64];
	char port[8];
	struct {
		char sha1[41];
		enum fakeredis_script kind;
		bool loaded;
	} scripts[FAKEREDIS_SCRIPTS];
	unsigned script_count;
	struct fakeredis *primary; /* NULL: it is one */
	struct fakeredis_replica replicas[FAKEREDIS_REPLICAS];
	uint64_t offset;                       /* of its replication stream */
	uint64_t commands;                     /* read and run, or refused */
	uint64_t runs[FAKEREDIS_SCRIPT_KINDS]; /* scripts run */
	uint64_t protocol_errors;  /* bytes that are no command; the product must send none */
	uint64_t unknown_commands; /* and scripts */
	const char *cut_command;   /* see fakeredis_cut() */
	enum fakeredis_cut cut_how;
	enum fakeredis_script cut_script;
	unsigned cut_skip;

	/* --- for tests to set */
	enum fakeredis_phase phase;
	uint64_t delay_ns;    /* answers leave this long after the command was run */
	int64_t clock_ms;     /* its clock is ahead by this */
	const char *user;     /* borrowed; NULL: the default user */
	const char *password; /* borrowed; NULL: none is needed */
	const char *policy;   /* maxmemory-policy; NULL: "noeviction" */
	const char *forbidden[FAKEREDIS_FORBIDDEN]; /* "client|kill", "config|get": NOPERM */
	const char *sentinel; /* name of the primary at `watched`; NULL: this is no sentinel */
	struct fakeredis *watched;
	void (*ran)(void *arg, struct fakeredis *server, const struct fakeredis_run *run);
	void *ran_arg;
};

/* --- life */

/* Starts the server at an address of the network in memory, e.g. "127.0.0.1:6379". The first time
 * the server becomes a process of the world. Data of an earlier run are there again. */
void fakeredis_start(struct fakeredis *server, struct spokei_world *world, const char *at);

/* Ends the server like a killed process: connections end, and what was not read of them is lost.
 * The data, but not the scripts, stay for the next start. */
void fakeredis_kill(struct fakeredis *server);

/* Drops the data, without a message and without replication. */
void fakeredis_wipe(struct fakeredis *server);

/* Kills it, drops the data, leaves the world, and asserts that nothing leaked. */
void fakeredis_stop(struct fakeredis *server);

/* --- scripts */

/* As SCRIPT FLUSH. */
void fakeredis_flush_scripts(struct fakeredis *server);

/* Returns how often a script of this kind was run. */
static inline uint64_t fakeredis_runs(const struct fakeredis *server, enum fakeredis_script kind)
{
	return server->runs[kind];
}

/* --- faults of connections */

/* Does this to the connection of a command, `skip` commands of that kind later. `command` is a name
 * in upper case, e.g. "EVALSHA"; with a script only runs of that script count. Replaces the last
 * cut; one at a time. NULL: none. */
void fakeredis_cut(struct fakeredis *server, enum fakeredis_cut how, const char *command,
		   enum fakeredis_script script, unsigned skip);

/* Resets all connections; with `subscribers` only those that have subscriptions, or only the
 * others. */
void fakeredis_reset_all(struct fakeredis *server);
void fakeredis_reset(struct fakeredis *server, bool subscribers);

/* Returns the number of connections, and of those with subscriptions. */
unsigned fakeredis_conns(const struct fakeredis *server);
unsigned fakeredis_subscribers(const struct fakeredis *server);

/* --- data, in database 0 */

/* A lock: a hash with one field. */
struct fakeredis_lock {
	char holder[128];
	uint64_t count;
	int64_t ttl_ms; /* -1: none */
};

/* Reads a lock. Returns false if there is none, or its time is over. */
bool fakeredis_lock(struct fakeredis *server, const char *name, struct fakeredis_lock *ret);

/* Makes a lock, as a peer may; ttl_ms 0: without a time to live. */
void fakeredis_put_lock(struct fakeredis *server, const char *name, const char *holder,
			uint64_t count, uint64_t ttl_ms);

/* Returns the counter of fence numbers of a name; 0: there is none. */
uint64_t fakeredis_token(struct fakeredis *server, const char *name);

/* Removes a key, without a message, e.g. an eviction. Returns whether it was there. */
bool fakeredis_remove(struct fakeredis *server, const char *key);

/* Removes a lock and publishes it, as a peer that unlocks or breaks it. */
void fakeredis_unlock(struct fakeredis *server, const char *name);

/* Sets a key to a string. */
void fakeredis_put(struct fakeredis *server, const char *key, const char *text);

/* Publishes a message. Returns the number of receivers. */
unsigned fakeredis_publish(struct fakeredis *server, const char *channel, const char *message);

/* Returns the server's clock, ms. */
uint64_t fakeredis_now_ms(const struct fakeredis *server);

/* --- replication */

/* Makes a server a replica: it gets the data of the primary, and later each write after a delay. */
void fakeredis_follow(struct fakeredis *replica, struct fakeredis *primary, uint64_t delay_ns);

/* Cuts a replica off, or connects it again: what it missed arrives then. */
void fakeredis_cut_off(struct fakeredis *replica, bool cut);

/* Makes a replica a primary with what it has. Its old primary, if it runs, does not know. */
void fakeredis_promote(struct fakeredis *replica);

/* Lets a sentinel name another primary, and publishes +switch-master. */
void fakeredis_switch(struct fakeredis *sentinel, struct fakeredis *primary);

#endif
