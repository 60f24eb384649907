/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle closes of running peers, and the pauses in which a process got no CPU. On a busy machine a
 * process that gets no CPU is as silent as a dead one, so such a close is not a mistake.
 */
#ifndef DEMO_PAUSES_H
#define DEMO_PAUSES_H

#include <stdint.h>

struct actor;

/* Notes that a process has not run from `from_ns` to `to_ns`. */
void pauses_note(const struct actor *actor, uint64_t from_ns, uint64_t to_ns);

/* Notes that an idle check of `actor` has closed the connection to a peer that was running. NULL: a
 * peer whose name is not known. */
void pauses_note_close(const struct actor *actor, const struct actor *peer, uint64_t at_ns);

/* Counts the closes that no pause explains: neither side was paused for at least an interval within
 * the last four heartbeat intervals, and returns the others in *ret_starved. */
unsigned pauses_count(uint64_t interval_ns, unsigned *ret_starved);

#endif
