/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `spoke lock`: its options, its connection to the store, and its three modes. */
#ifndef COMMAND_LOCK_H
#define COMMAND_LOCK_H

#include "examples/spoke/ending.h"

#include <spoke/engine.h>
#include <spoke/lease.h>
#include <spoke/url.h>

#define LOCK_VERB "lock"

/* The longest time in which leases are given back to the store before the program exits. */
#define LOCK_RELEASE_NS UINT64_C(2000000000)

/* Exit statuses of `spoke lock`, apart from those of the command that it runs. The numbers are high
 * because commands rarely use them, and those from 125 on are as env(1) and timeout(1) have them.
 */
enum lock_end {
	LOCK_ABSENT = 5,        /* --break: there was no holder */
	LOCK_BUSY = 120,        /* another one holds the lease */
	LOCK_TIMEOUT = 121,     /* the time of --wait has passed */
	LOCK_UNREACHABLE = 122, /* the store could not be reached */
	LOCK_LOST = 123,        /* the lease was lost, or the supervisor before the command began */
	LOCK_FAILED = 125,      /* another failure of `spoke lock` itself */
	LOCK_NOT_STARTED = 126, /* the command cannot be executed */
	LOCK_NOT_FOUND = 127,   /* there is no such command */
	LOCK_SIGNAL = 128,      /* + the number of a signal */
};

enum lock_mode {
	LOCK_RUN,
	LOCK_LIST,
	LOCK_BREAK,
};

struct locker {
	enum lock_mode mode;
	char *url;         /* of the store; the locker's memory; NULL: of the environment or file */
	const char *name;  /* or the pattern of --list; NULL: all */
	char **command;    /* ends with NULL */
	bool wait;         /* --wait */
	uint64_t wait_ns;  /* SPOKE_LEASE_FOREVER: no limit */
	uint64_t ttl_ns;   /* 0: not given */
	uint64_t grace_ns; /* of --grace, or UINT64_MAX */
	bool json;
	bool yes;
	bool quiet;
	bool verbose;
	bool closing; /* callbacks of leases that still come mean nothing */
	const char *config_path;
	struct spoke_env env; /* the host's, with a log */
	struct spoke_config *config;
	struct spoke_engine *engine;
	struct spoke_leases *leases;
	char shown[128]; /* the name in quotes, escaped for a terminal */
};

#define LOCK_SENTINELS_MAX 8u

/* Where the store is, and with which secrets. The texts live until lock_store_free(). */
struct lock_store {
	struct {
		const char *host; /* a name, or an IP address without brackets */
		uint16_t port;
	} hosts[LOCK_SENTINELS_MAX]; /* the server, or its sentinels */
	unsigned count;
	const char *path;     /* of the unix socket; NULL: none */
	const char *primary;  /* name that sentinels know; NULL: no sentinels */
	char db[16];          /* the number of the database; "": the first one */
	const char *user;     /* NULL: the default user */
	const char *password; /* NULL: none */
	const char *sentinel_password;
	struct spoke_url urls[LOCK_SENTINELS_MAX]; /* own texts, one for each host */
	char *url;                                 /* a copy that is cut into parts */
};

/* Reads the URL and the secrets of the store, which lock_open() has checked. Returns false without
 * memory. */
bool lock_store_read(const struct locker *locker, struct lock_store *ret);
void lock_store_free(struct lock_store *store);

/* Makes engine and leases, as options, environment and file want. Returns VERB_OK, or prints an
 * error and returns another status. Undo with lock_close(), also after an error; it calls the
 * callbacks that are still due, and may be called twice. */
int lock_open(struct locker *locker);
void lock_close(struct locker *locker);

/* Loads the file of --config, and finds out how long the command may take to end: --grace, or 5 s
 * but at most 40% of the time to live. Returns like lock_open(), which comes later. */
int lock_prepare(struct locker *locker);

/* Returns why the store cannot be reached, for people; "" if nothing is known. */
const char *lock_why(void);

/* Writes a pattern that matches only this name. `size`: at least twice the name's and 1. */
void lock_pattern(const char *name, char *pattern, size_t size);

/* Writes a time in a way that suits its length, e.g. "850 ms", "12.3 s" or "3 min". */
const char *lock_time(uint64_t ns, char *text, size_t size);

/* The modes. They return an exit status. */
int lock_run(struct locker *locker);
int lock_list(struct locker *locker);
int lock_break(struct locker *locker);

#endif
