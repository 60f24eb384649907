/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The works that a loop has given to the threads of its pool and has not got back. Embedded in the
 * loop; its owner's thread, except `back`.
 */
#ifndef SPOKEI_CORE_HOST_WORKS_H
#define SPOKEI_CORE_HOST_WORKS_H

#include "core/host/thread.h"

#include "timer/base.h"

#include <stdatomic.h>

struct spokei_works {
	struct spokei_pool pool;
	struct spoke_list outside;             /* works not handed back yet, by loop[1] and [2] */
	_Atomic(struct spoke_work *) finished; /* linked by loop[0], newest first */
	void (*back)(void *arg);
	void *arg;
};

/* Prepares the works. `back` is called when the first work has finished: by a thread of the pool,
 * or by the owner's as it stops. Returns 0 or a negative errno. */
int spokei_works_init(struct spokei_works *works, void (*back)(void *arg), void *arg);

/* As offload() of struct spoke_loop. */
int spokei_works_submit(struct spokei_works *works, struct spoke_work *work);

/* Calls done() of all finished works, the first to finish first. */
void spokei_works_hand_back(struct spokei_works *works);

/* Takes no more works, waits for the running ones without a release(), and hands all back. */
void spokei_works_stop(struct spokei_works *works);

/* In a forked child, where the state of the parent's threads is unknown: hands back all works as
 * cancelled. */
void spokei_works_abandon(struct spokei_works *works);

/* Frees the works, after either of these. */
void spokei_works_fini(struct spokei_works *works);

#endif
