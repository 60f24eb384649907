/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of an engine's most recent events; the oldest is forgotten. The engine's thread. */
#ifndef SPOKEI_CORE_ENGINE_EVENTS_H
#define SPOKEI_CORE_ENGINE_EVENTS_H

#include "core/base/log.h"

#include <spoke/stats.h>

#include <stdarg.h>

struct spokei_events {
	uint64_t last;            /* number of the newest; 0: none */
	struct spoke_event *ring; /* SPOKE_EVENTS entries, number n at n % SPOKE_EVENTS */
};

/* Allocates the ring. Returns false without memory. The memory is first touched when events come.
 */
bool spokei_events_init(struct spokei_events *events, const struct spoke_env *env);
void spokei_events_fini(struct spokei_events *events, const struct spoke_env *env);

/* Adds an event; a text that is too long ends in dots. Returns the event, valid until it is
 * overwritten. */
SPOKEI_PRINTF(5, 0)
const struct spoke_event *spokei_events_add(struct spokei_events *events, uint64_t at_ns,
					    enum spoke_event_user user, int error,
					    const char *format, va_list args);

/* Returns the oldest event whose number is at least `number`; NULL: there is none yet. */
const struct spoke_event *spokei_events_find(const struct spokei_events *events, uint64_t number);

#endif
