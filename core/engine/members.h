/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that an engine owns, its members: consumers, providers, pages. They are notified when
 * the engine ends. A member is embedded in its owner. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_MEMBERS_H
#define SPOKEI_CORE_ENGINE_MEMBERS_H

#include "core/engine/task.h"
#include "timer/base.h"

#include <spoke/engine.h>

struct spokei_member {
	struct spoke_list node; /* next == NULL: not in the list */
	const char *kind; /* e.g. "consumer"; borrowed, one string for all members of a kind */
	/*
	 * Ends now, and leaves the list: before it returns, or by a task on the engine's queues.
	 * Called once. The owner may be freed the same way. In a forked child (see
	 * spokei_engine_forked()) it only frees.
	 */
	void (*close)(struct spokei_member *member);
	/* Finishes work in progress, takes no new work, then leaves the list. Called at most once;
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
	bool drained; /* set when drain() was called */
	bool closed;  /* set when close() was called */
};

/*
 * Puts a member at the end of the list. Never fails. A member that joins an engine which is ending
 * is notified in the same turn: to drain, or to close when the time is over or the engine is being
 * freed. Check spokei_engine_ending() before and refuse with SPOKE_ECLOSED instead.
 */
void spokei_member_add(struct spoke_engine *engine, struct spokei_member *member);

/* Takes a member out of the list, if it is in it. Its memory may be freed then. */
void spokei_member_drop(struct spokei_member *member);

/* Takes a member that has ended out of the list. Its owner stays as an empty shell until its user
 * frees it, or the engine's end does through free(). */
void spokei_member_retire(struct spoke_engine *engine, struct spokei_member *member);

/* Closes every member that was not closed yet. Each may add members or remove them. */
void spokei_members_close_all(struct spoke_engine *engine);

/* Notifies every member that the machine slept. Each may add members or remove them. */
void spokei_members_wake_all(struct spoke_engine *engine);

#endif
