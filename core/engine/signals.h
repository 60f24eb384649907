/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals that an engine watches. Watches are not members of the roll: they do not keep a drain
 * from ending, and they still get the second signal during a drain. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_SIGNALS_H
#define SPOKEI_CORE_ENGINE_SIGNALS_H

#include <spoke/signals.h>

/* Drops all watches of an engine that is about to be freed. */
void spokei_signals_cancel_all(struct spoke_engine *engine);

#endif
