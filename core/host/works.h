/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loop has given to the threads of its pool, and what they have given back. Embedded in the
 * loop; its owner's thread, but for `back`.
 */
#ifndef SPOKEI_CORE_HOST_WORKS_H
#define SPOKEI_CORE_HOST_WORKS_H

#include "core/host/thread.h"

#include "timer/base.h"

#include <stdatomic.h>

struct spokei_works {
	struct spokei_pool pool;
	struct spoke_list outside; /* works that have not been handed back, by loop[1] and [2] */
	_Atomic(struct spoke_work *) finished; /* linked by loop[0], the newest first */
	void (*back)(void *arg);
	void *arg;
};

/* `back` is called when there is something to hand back and was not before: by a thread of the
 * pool, or by the owner's as it stops. 0 or a negative errno. */
int spokei_works_init(struct spokei_works *works, void (*back)(void *arg), void *arg);

/* As spoke_loop's offload(). */
int spokei_works_submit(struct spokei_works *works, struct spoke_work *work);

/* Calls done() of all that are finished. */
void spokei_works_hand_back(struct spokei_works *works);

/* Takes no more, waits for what runs, and hands all of it back. */
void spokei_works_stop(struct spokei_works *works);

/* In a forked child, where nobody knows what its parent's threads do with them: hands back all as
 * cancelled. */
void spokei_works_abandon(struct spokei_works *works);

/* After either of these. */
void spokei_works_fini(struct spokei_works *works);

#endif
