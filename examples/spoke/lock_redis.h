/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small client of Redis that blocks, for the questions of `spoke lock` about leases of other
 * holders: which locks there are, and to break one. It connects to the store of the locker, whose
 * URL and settings lock_open() has checked.
 */
#ifndef COMMAND_LOCK_REDIS_H
#define COMMAND_LOCK_REDIS_H

#include "examples/spoke/lock.h"

#define LOCK_REDIS_NS UINT64_C(5000000000) /* a usual limit */

/* Zero-initialised but for the first two. */
struct lock_redis {
	const struct locker *locker;
	uint64_t limit_ns; /* of each connection, and of each reply */
	bool open;
	int fd;
	char *out; /* commands that are not sent yet */
	size_t out_len;
	size_t out_room;
	char *in; /* replies */
	size_t in_len;
	size_t in_at; /* the next reply begins here */
	size_t in_room;
	uint64_t answers; /* of commands, except the first ones of a connection */
	bool typeless; /* the store does not know the option TYPE of SCAN, which comes with Redis 6
			*/
	char why[256]; /* the last failure, for people */
};

/* A lock; borrowed for the callback. */
struct lock_info {
	struct spoke_span name;
	struct spoke_span holder; /* e.g. "285475da-9152-4c83-822a-67ee2f116a79:52" */
	uint64_t left_ns;         /* time to live; UINT64_MAX: it has none */
	uint32_t count;           /* how often its holder holds it */
	uint64_t fence;           /* the last number given under this name; 0: none */
};

/* Returns whether the listing goes on. */
typedef bool (*lock_info_fn)(void *arg, const struct lock_info *info);

/*
 * Lists the locks whose names match a pattern of Redis; NULL: all. The store goes through all its
 * keys, some at a time, so one may be listed twice; a pattern without wildcards is a name, and only
 * this key is looked at. A command without a reply is sent again once, on a new connection. Returns
 * 0, EUNAVAILABLE or ESTORE: redis->why.
 */
int lock_redis_list(struct lock_redis *redis, const char *pattern, lock_info_fn each, void *arg);

/* Breaks the lease of any holder. Returns 0, ENOENT (it was free), EUNAVAILABLE or ESTORE. It is
 * asked once: a second time it could break the lease of the next holder. */
int lock_redis_break(struct lock_redis *redis, const char *name);

/* Closes the connection and frees the memory; the struct can be used again. */
void lock_redis_close(struct lock_redis *redis);

#endif
