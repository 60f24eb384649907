/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivers signals of the process as callbacks of an engine, and implements the usual end of a
 * server: after SIGTERM the requests in progress are finished.
 *
 * A process has one handler for each signal. Watching a signal installs spoke's handler, which only
 * wakes the engines that watch the signal. When the last watch is cancelled, the previous handler
 * is restored, unless the program has installed another one meanwhile.
 *
 * Several engines, on any threads, may watch the same signal; each is notified. A signal that
 * arrives twice before the engine turns is delivered once. A signal that is pending when its watch
 * is cancelled is dropped. An engine that does not turn is not notified, and the process does not
 * end either.
 *
 * A handler that the program installs for the same signal, e.g. with libev's ev_signal, replaces
 * spoke's. Threads that spoke starts have all signals blocked, so at least one other thread must
 * leave the signal unblocked.
 *
 * A forked child that does not watch a signal itself behaves as if spoke's handler were not
 * installed.
 */
#ifndef SPOKE_SIGNALS_H
#define SPOKE_SIGNALS_H

#include <spoke/engine.h>

SPOKE_BEGIN_DECLS

/* A watch for one signal; embedded in a struct of the caller, zero-initialised. All fields are the
 * engine's. The memory must stay valid until the watch is cancelled or the engine is freed, which
 * cancels it. */
struct spoke_signal {
	struct spoke_watch watch;
	struct spoke_list node;
	struct spoke_engine *engine;               /* NULL: not watched */
	void (*came)(struct spoke_signal *signal); /* see spoke_signal_watch() */
};

/*
 * Calls `came` on the engine's thread each time after the process received the signal `number`,
 * e.g. SIGHUP. The callback may cancel or free the watch, and free the engine. A watch does not
 * keep a drain from ending. Returns 0, EINVAL (no such signal, or it cannot be caught), EEXIST
 * (`signal` is in use already), EUNSUPPORTED (the environment has no signals), EFORKED, ENOMEM or
 * ESYSTEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_signal_watch(struct spoke_engine *engine,
						struct spoke_signal *signal, int number,
						void (*came)(struct spoke_signal *signal));

/* Ends a watch: its callback is not called any more and its memory may be freed. Returns whether
 * the signal was watched. A watch that has ended may have outlived its engine. The engine's thread.
 */
SPOKE_API bool spoke_signal_cancel(struct spoke_signal *signal);

/*
 * Drains the engine on SIGTERM or SIGINT, like spoke_engine_drain() with this timeout. A second
 * signal closes the remaining objects at once. If no timer is left for the drain, the run is
 * stopped. Another call changes the timeout. Returns like spoke_signal_watch(); after an error
 * nothing has changed. The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_drain_on_signals(struct spoke_engine *engine,
							   uint64_t timeout_ns);

SPOKE_END_DECLS

#endif
