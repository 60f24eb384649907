/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dials one place for its owner, again and again: resolves the name off the loop, tries each
 * address once, one attempt at a time, and waits between rounds (backoff: longer after each one).
 * The first address of a round is random, so that many clients spread. A descriptor that is
 * connected goes to the owner, which opens a stream over it.
 *
 * The timer is armed during the whole life of a dialer, so that it can always wait. While no
 * attempt is under way, it is its owner's. Embedded in its owner, on the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_DIALER_H
#define SPOKEI_TRANSPORT_CONNECT_DIALER_H

#include "core/base/pace.h"
#include "transport/connect/place.h"

#include <spoke/wheel.h>

#define SPOKEI_DIALER_ADDRESSES 16
#define SPOKEI_DIALER_MORE 1
/* How often a timer that only keeps its place on the wheel is armed again. */
#define SPOKEI_DIALER_REST_NS UINT64_C(3600000000000)

struct spoke_engine;
struct spokei_dialer;

/* Functions of the owner, called by the loop, never inside a function of the dialer. Each may call
 * any function of the dialer. */
struct spokei_dialer_up {
	/* The name is resolved; a negative errno: it cannot be. */
	void (*resolved)(struct spokei_dialer *dialer, int status);
	/* The attempt has succeeded; its descriptor is the owner's from now on. */
	void (*connected)(struct spokei_dialer *dialer, int fd);
	/* The attempt has failed: a negative errno; -ETIME: its time is over. */
	void (*failed)(struct spokei_dialer *dialer, int status);
	/* The timer is due, and no attempt is under way. */
	void (*due)(struct spokei_dialer *dialer);
};

struct spokei_dialer {
	struct spoke_engine *engine;
	const struct spokei_dialer_up *up;
	/* Constant while its name is being resolved. Its address is that of a round with only one.
	 */
	struct spokei_place place;
	struct spokei_backoff backoff;
	uint32_t failures; /* pauses since the owner has set this to 0 */
	uint64_t pause_ns; /* the last one */
	uint64_t due_ns;   /* of the timer */
	unsigned timer_class;
	struct spoke_timer timer;
	struct spoke_watch watch;   /* its fd: that of the attempt; -1: none is under way */
	bool resolving;             /* resolved() will be called: the memory has to stay */
	unsigned count;             /* of the addresses of this round */
	unsigned next;              /* index of the next one */
	unsigned left;              /* addresses of this round that were not tried yet */
	struct spoke_address *many; /* the addresses of a round with several; else NULL */
};

/* Prepares a dialer; `place` and `backoff` are set afterwards. Returns 0, or SPOKE_ELIMIT: the
 * wheel has no timer or class left. */
SPOKE_MUST_USE int spokei_dialer_init(struct spokei_dialer *dialer, struct spoke_engine *engine,
				      const struct spokei_dialer_up *up);

/* Ends the attempt, and gives the timer back. */
void spokei_dialer_fini(struct spokei_dialer *dialer);

/* Sets the timer. An error, at the end of the wheel's time range, is reported as an event. */
void spokei_dialer_set_timer(struct spokei_dialer *dialer, uint64_t delay_ns);
void spokei_dialer_set_timer_at(struct spokei_dialer *dialer, uint64_t due_ns);

/* Sets the timer for the next pause, which is longer than the one before. */
void spokei_dialer_wait(struct spokei_dialer *dialer);

/* Begins a round. Returns 0: there are addresses; SPOKEI_DIALER_MORE: resolved() will be called; a
 * negative errno: there is no resolver. */
int spokei_dialer_resolve(struct spokei_dialer *dialer);

/* Returns the next address of the round; NULL: all were tried. */
const struct spoke_address *spokei_dialer_next(struct spokei_dialer *dialer);

/* Begins an attempt, while none is under way. Returns 0, or a negative errno: it has failed. */
int spokei_dialer_try(struct spokei_dialer *dialer, const struct spoke_address *to,
		      uint64_t limit_ns);

/* Ends the attempt, if one is under way. */
void spokei_dialer_hang_up(struct spokei_dialer *dialer);

#endif
