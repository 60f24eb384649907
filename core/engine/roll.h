/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roll: what lives on an engine and has to be told when it ends, as consumers and providers.
 * Members are embedded in their owners. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_ROLL_H
#define SPOKEI_CORE_ENGINE_ROLL_H

#include "core/engine/task.h"
#include "timer/base.h"

#include <spoke/engine.h>

struct spokei_member {
	struct spoke_list node; /* next == NULL: on no roll */
	const char *kind;       /* as "consumer"; borrowed, and one string for all of a kind */
	/* Ends now, and leaves the roll: before it returns or by a task it puts on the engine's
	 * queues. Called once. The owner may be freed the same way. In a forked child (see
	 * spokei_engine_forked()) it only frees. */
	void (*close)(struct spokei_member *member);
	/* Finishes what was begun, takes nothing new, then leaves the roll. Called at most once,
	 * and close() may follow; NULL: close() is called in its place. */
	void (*drain)(struct spokei_member *member);
	/* The machine slept: what was measured before says little now, and peers may have given
	 * this side up meanwhile. Called as a turn begins, before anything is read; NULL: nobody
	 * needs to know. Not called any more after close(). */
	void (*woke)(struct spokei_member *member);
	/* Of members that retire: frees the owner, by a task it puts on the engine's queues. */
	void (*free)(struct spokei_member *member);
	bool drained; /* the roll's: it has been told so */
	bool closed;  /* the roll's: it has been told so */
};

/*
 * Puts a member on the roll, at its end. Never fails. One that joins an engine which is ending (see
 * spokei_engine_ending(); better is to refuse with SPOKE_ECLOSED before) is told so in the same
 * turn: to drain or, when its time is over or it is being freed, to close.
 */
void spokei_roll_add(struct spoke_engine *engine, struct spokei_member *member);

/* Takes a member off the roll, if it is on it; its memory may be freed then. */
void spokei_roll_drop(struct spoke_engine *engine, struct spokei_member *member);

/* Takes a member that has ended off the roll. Its owner lives on, of no use, until its user frees
 * it or else the engine's end does, by the member's free(). */
void spokei_roll_retire(struct spoke_engine *engine, struct spokei_member *member);

/* Closes every member that has not been closed; each may put others on the roll or take them off.
 */
void spokei_roll_close_all(struct spoke_engine *engine);

/* Notifies every member that the machine slept; the same holds. */
void spokei_roll_wake_all(struct spoke_engine *engine);

/* Frees those that have retired. */
void spokei_roll_free_all(struct spoke_engine *engine);

/* The task of an engine that ends: drains its members, or closes them once the time is over. */
void spokei_roll_end(struct spokei_task *task);

#endif
