/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of an engine's recent events. */
#include "core/engine/events.h"

#include <stdio.h>

static const char ellipsis[] = "...";

bool spokei_events_init(struct spokei_events *events, const struct spoke_env *env)
{
	events->last = 0;
	events->ring = spokei_alloc_unset(env, SPOKE_EVENTS * sizeof(*events->ring));
	return events->ring != NULL;
}

void spokei_events_fini(struct spokei_events *events, const struct spoke_env *env)
{
	spokei_free(env, events->ring, SPOKE_EVENTS, sizeof(*events->ring));
}

const struct spoke_event *spokei_events_add(struct spokei_events *events, uint64_t at_ns,
					    enum spoke_event_user user, int error,
					    const char *format, va_list args)
{
	uint64_t number = ++events->last;
	struct spoke_event *event = &events->ring[number % SPOKE_EVENTS];
	int len;

	*event = (struct spoke_event){
		.number = number, .at_ns = at_ns, .error = error, .user = user
	};
	len = vsnprintf(event->text, sizeof(event->text), format, args);
	if (len < 0)
		event->text[0] = '\0';
	else if ((size_t)len >= sizeof(event->text))
		memcpy(event->text + sizeof(event->text) - sizeof(ellipsis), ellipsis,
		       sizeof(ellipsis));
	return event;
}

const struct spoke_event *spokei_events_find(const struct spokei_events *events, uint64_t number)
{
	uint64_t oldest = events->last > SPOKE_EVENTS ? events->last - SPOKE_EVENTS + 1 : 1;

	if (number > events->last || events->last == 0)
		return NULL;
	return &events->ring[(number > oldest ? number : oldest) % SPOKE_EVENTS];
}
