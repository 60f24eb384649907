/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP relay: connects each accepted client to the target and forwards bytes unchanged in both
 * directions. Each direction buffers at most RELAY_ROOM bytes and stops reading while its buffer is
 * full. The end of one direction is forwarded as a half-close; the other direction continues.
 * Callbacks see the bytes as they arrive. With RELAY_PAIRS_MAX connections, further clients wait in
 * the listen backlog.
 */
#ifndef COMMAND_RELAY_H
#define COMMAND_RELAY_H

#include "examples/spoke/place.h"

#include <spoke/engine.h>

#define RELAY_ROOM 65536u
#define RELAY_PAIRS_MAX 256u

struct relay;
struct relay_pair;

/* A direction: to the target, or from it. */
enum relay_way {
	RELAY_TO,
	RELAY_FROM
};

struct relay_end {
	struct spoke_watch watch;
	struct relay_pair *pair;
	enum relay_way way; /* direction of the bytes read here */
	bool open;
	bool connecting;
	bool ended;          /* no more input here */
	bool forwarded;      /* ... and the end was forwarded */
	unsigned char *room; /* input not yet written to the other end: */
	size_t at;
	size_t len;
};

struct relay_pair {
	struct relay *relay;
	unsigned long number;     /* starting at 1 */
	struct relay_end ends[2]; /* the client's, the target's */
	int tried;                /* number of target addresses tried */
	int error;                /* why the pair is closed: 0 or a negative errno */
	struct spoke_alarm late;  /* idle timeout after one side has ended */
	void *looker;             /* state of the callbacks */
};

struct relay_looks {
	/* Returns false if out of memory; then the pair is closed. */
	bool (*opened)(struct relay_pair *pair, const struct spoke_address *peer);
	void (*bytes)(struct relay_pair *pair, enum relay_way way, const void *bytes, size_t len);
	void (*ended)(struct relay_pair *pair, enum relay_way way);
	/* The pair is freed after this; `pair->error`: why, 0: both sides have ended. */
	void (*closed)(struct relay_pair *pair);
	/* accept() failed with a negative errno; EUSERS: RELAY_PAIRS_MAX reached. */
	void (*refused)(struct relay *relay, int error);
};

struct relay {
	struct spoke_engine *engine;
	const struct spoke_env *env;
	const struct relay_looks *looks;
	void *arg;
	struct spoke_watch listener;
	struct spoke_address targets[PLACE_MAX];
	int target_count;
	struct spoke_alarm rest; /* pause after a failed accept() */
	struct relay_pair *pairs[RELAY_PAIRS_MAX];
	unsigned pair_count;
	unsigned long made;
};

/* Listens; tries `targets` in order. Returns 0 or a negative errno. */
int relay_begin(struct relay *relay, const struct spoke_address *at);

/* Closes all sockets. */
void relay_end(struct relay *relay);

#endif
