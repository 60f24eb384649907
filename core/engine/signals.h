/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals that an engine watches. They are not on its roll: who waits for signals does not keep
 * a drain from ending, and hears the second one while it lasts. The engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_SIGNALS_H
#define SPOKEI_CORE_ENGINE_SIGNALS_H

#include <spoke/signals.h>

/* The engine is about to go. */
void spokei_signals_cancel_all(struct spoke_engine *engine);

#endif
