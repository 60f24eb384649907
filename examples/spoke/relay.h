/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes bytes on between two ends, both ways, unchanged: whoever connects is connected to the
 * target. Each direction holds RELAY_ROOM bytes at most; when they are not taken it does not read
 * any more. An end of one direction is passed on as such, and the other direction goes on. Somebody
 * may look at the bytes as they come. When RELAY_PAIRS_MAX are connected, others wait to be
 * accepted.
 */
#ifndef COMMAND_RELAY_H
#define COMMAND_RELAY_H

#include "examples/spoke/place.h"

#include <spoke/engine.h>

#define RELAY_ROOM 65536u
#define RELAY_PAIRS_MAX 256u

struct relay;
struct relay_pair;

/* One direction: to the target, or from it. */
enum relay_way {
	RELAY_TO,
	RELAY_FROM
};

struct relay_end {
	struct spoke_watch watch;
	struct relay_pair *pair;
	enum relay_way way; /* what is read here goes this way */
	bool open;
	bool connecting;
	bool ended;          /* nothing more is to be read here */
	bool told;           /* ... and the other end knows */
	unsigned char *room; /* what was read here, not yet taken there: */
	size_t at;
	size_t len;
};

struct relay_pair {
	struct relay *relay;
	unsigned long number;     /* from 1 on */
	struct relay_end ends[2]; /* the client's, the target's */
	int tried;                /* addresses of the target */
	int error;                /* why it ends: 0 or a negative errno */
	struct spoke_alarm late;  /* one end has ended, and the other says nothing */
	void *looker;             /* who looks keeps here what he likes */
};

struct relay_looks {
	/* Returns whether there is memory to look into it; if not, it is closed. */
	bool (*opened)(struct relay_pair *pair, const struct spoke_address *peer);
	void (*bytes)(struct relay_pair *pair, enum relay_way way, const void *bytes, size_t len);
	void (*ended)(struct relay_pair *pair, enum relay_way way);
	/* It is gone after this; `pair->error`: why, 0: both ends have ended. */
	void (*closed)(struct relay_pair *pair);
	/* Nobody can be accepted for now: a negative errno; EUSERS: there are RELAY_PAIRS_MAX. */
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
	struct spoke_alarm rest; /* of a listener that cannot accept */
	struct relay_pair *pairs[RELAY_PAIRS_MAX];
	unsigned pair_count;
	unsigned long made;
};

/* Listens; `targets` are tried one after the other. Returns 0 or a negative errno. */
int relay_begin(struct relay *relay, const struct spoke_address *at);

/* Closes all. */
void relay_end(struct relay *relay);

#endif
