/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of an engine to the service manager. See <spoke/notify.h>. On the engine's thread. */
#ifndef SPOKEI_CORE_ENGINE_NOTIFY_H
#define SPOKEI_CORE_ENGINE_NOTIFY_H

#include <spoke/engine.h>

#include <stdbool.h>

/* Report a state, if spoke_engine_notify() was called. A drain is never left. */
void spokei_notify_stopping(struct spoke_engine *engine);
void spokei_notify_reloading(struct spoke_engine *engine);

/* `stale`: the new settings were rejected. */
void spokei_notify_reloaded(struct spoke_engine *engine, bool stale);

#endif
