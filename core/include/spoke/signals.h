/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the process as callbacks of an engine, and the usual end of a server: SIGTERM lets it
 * finish what it has begun.
 *
 * A signal has one handler in a process. Watching one puts spoke's there, which wakes the engines
 * that watch it and does nothing else; when nobody watches it any more, what was there before is
 * put back, unless somebody else has put a handler there meanwhile. Any number of engines, on any
 * threads, may watch the same signal: each is told. A signal that comes again before the engine
 * turns is told once, and one that has not been told yet when the watch is cancelled is forgotten.
 * While an engine does not turn it is told nothing, and the process does not end either.
 *
 * Who installs a handler of his own for the same signal, as a loop of yours does with libev's
 * ev_signal, takes it away from here. Threads that spoke starts have all signals blocked, so at
 * least one other thread has to leave the signal unblocked.
 *
 * A forked child that does not watch a signal itself treats it as if spoke's handler were not
 * there.
 */
#ifndef SPOKE_SIGNALS_H
#define SPOKE_SIGNALS_H

#include <spoke/engine.h>

SPOKE_BEGIN_DECLS

/* A signal that is watched; embedded, zero-initialised. Its memory must stay until it is cancelled
 * or the engine is freed, which cancels it. */
struct spoke_signal {
	struct spoke_watch watch; /* the engine's, as all fields */
	struct spoke_list node;
	struct spoke_engine *engine; /* NULL: not watched */
	void (*came)(struct spoke_signal *signal);
};

/*
 * Calls `came` on the engine's thread each time after the process got the signal `number`, as
 * SIGHUP; there the watch may be cancelled or freed, and the engine too. It does not keep a drain
 * from ending. Returns 0, EINVAL (no signal, or one that nobody can catch), EEXIST (this one is
 * watched already), EUNSUPPORTED (the environment has no signals), EFORKED, ENOMEM or ESYSTEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_signal_watch(struct spoke_engine *engine,
						struct spoke_signal *signal, int number,
						void (*came)(struct spoke_signal *signal));

/* It will not be called any more and may be freed. Returns whether it was watched; one that is not
 * may have outlived its engine. The engine's thread. */
SPOKE_API bool spoke_signal_cancel(struct spoke_signal *signal);

/*
 * From now on SIGTERM or SIGINT drains the engine as by spoke_engine_drain() with this timeout, so
 * that its run ends with all that was begun; the second one closes the rest at once. If there is no
 * timer for the drain the run is stopped. Called again it sets another timeout. Returns as
 * spoke_signal_watch(); nothing has changed then. The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_drain_on_signals(struct spoke_engine *engine,
							   uint64_t timeout_ns);

SPOKE_END_DECLS

#endif
