/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that locks as Redisson's RLock does: the same keys, channel and messages, by scripts of
 * our own with the same effect. It does not renew by itself.
 */
#ifndef TESTS_INTEGRATION_REDISPEER_H
#define TESTS_INTEGRATION_REDISPEER_H

#include "tests/integration/redisclient.h"

#define REDISPEER_HELD (-1)     /* acquire: the peer holds the lock now */
#define REDISPEER_NOT_HELD (-1) /* release: the peer did not hold it */
#define REDISPEER_NAME 1200u

struct redispeer {
	struct redisclient asks;
	struct redisclient hears; /* subscribed to the channel of one lock, once it waits */
	char holder[64];          /* "UUID:THREAD" */
	unsigned requests;        /* number of releases, for the names of their latches */
};

/* Connects a peer; `thread` makes its holder name different from those of other peers. */
void redispeer_open(struct redispeer *peer, const char *path, unsigned thread);
void redispeer_close(struct redispeer *peer);

/* Acquires; returns REDISPEER_HELD, or the time to live of the other holder in ms. */
int64_t redispeer_acquire(struct redispeer *peer, const char *name, unsigned ttl_ms);

/* Acquires as RFencedLock does; `ret_token` gets the token, or -1. */
int64_t redispeer_acquire_fenced(struct redispeer *peer, const char *name, unsigned ttl_ms,
				 int64_t *ret_token);

/* Extends the time to live; returns whether the peer holds the lock. */
bool redispeer_renew(struct redispeer *peer, const char *name, unsigned ttl_ms);

/* Releases with a latch, as RLock does since 3.24; returns 1 (free), 0 (still held, for it was held
 * more often), or REDISPEER_NOT_HELD. */
int64_t redispeer_release(struct redispeer *peer, const char *name);

/* Leaves the latch of a release behind, as a peer does that dies before it deletes it. */
int64_t redispeer_release_with_latch_left(struct redispeer *peer, const char *name);

/* Deletes the lock of whichever holder; returns 1, or 0 if there was none. */
int64_t redispeer_force_release(struct redispeer *peer, const char *name);

/* Begins to wait: subscribes to the channel of a lock. */
void redispeer_subscribe(struct redispeer *peer, const char *name);

/* Waits for a message of the channel, and returns its text. */
const char *redispeer_hear(struct redispeer *peer);

/* Returns whether a message has come that was not heard yet. */
bool redispeer_has_heard(struct redispeer *peer);

/* Write the names that belong to a lock, with REDISPEER_NAME bytes at most. */
void redispeer_channel(const char *name, char *ret_channel);
void redispeer_token(const char *name, char *ret_token);

#endif
