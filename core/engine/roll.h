/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roll: the members of an engine (consumers, providers, pages), which are notified when the
 * engine ends. Members are embedded in their owners. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_ROLL_H
#define SPOKEI_CORE_ENGINE_ROLL_H

#include "core/engine/task.h"
#include "timer/base.h"

#include <spoke/engine.h>

struct spokei_member {
	struct spoke_list node; /* next == NULL: on no roll */
	const char *kind; /* e.g. "consumer"; borrowed, one string for all members of a kind */
	/*
	 * Ends now, and leaves the roll: before it returns, or by a task on the engine's queues.
	 * Called once. The owner may be freed the same way. In a forked child (see
	 * spokei_engine_forked()) it only frees.
	 */
	void (*close)(struct spokei_member *member);
	/* Finishes work in progress, takes no new work, then leaves the roll. Called at most once;
	 * close() may follow. NULL: close() is called instead. */
	void (*drain)(struct spokei_member *member);
	/*
	 * The machine slept: earlier measurements are outdated, and peers may have closed their
	 * side meanwhile. Called as a turn begins, before anything is read, and never after
	 * close(). May be NULL.
	 */
	void (*woke)(struct spokei_member *member);
	/* Frees the owner of a retired member, by a task on the engine's queues. */
	void (*free)(struct spokei_member *member);
	bool drained; /* the roll's: drain() was called */
	bool closed;  /* the roll's: close() was called */
};

/*
 * Puts a member at the end of the roll. Never fails. A member that joins an engine which is ending
 * is notified in the same turn: to drain, or to close when the time is over or the engine is being
 * freed. Check spokei_engine_ending() before and refuse with SPOKE_ECLOSED instead.
 */
void spokei_roll_add(struct spoke_engine *engine, struct spokei_member *member);

/* Takes a member off the roll, if it is on it. Its memory may be freed then. */
void spokei_roll_drop(struct spoke_engine *engine, struct spokei_member *member);

/* Takes a member that has ended off the roll. Its owner stays as an empty shell until its user
 * frees it, or the engine's end does through free(). */
void spokei_roll_retire(struct spoke_engine *engine, struct spokei_member *member);

/* Closes every member that was not closed yet. Each may add members to the roll or remove them. */
void spokei_roll_close_all(struct spoke_engine *engine);

/* Notifies every member that the machine slept. Each may add members to the roll or remove them. */
void spokei_roll_wake_all(struct spoke_engine *engine);

/* Returns until when a drain may serve requests of peers that go on to send them: until its limit.
 * A drain without a limit has one for them. 0: there is no drain. */
uint64_t spokei_drain_serves_until(const struct spoke_engine *engine);

/* Frees the retired members. */
void spokei_roll_free_all(struct spoke_engine *engine);

/* The task of an engine that ends: drains its members, or closes them once the time is over. */
void spokei_roll_end(struct spokei_task *task);

#endif
