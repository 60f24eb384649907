/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a registry gives no provider, by the events of the engine. */
#include "examples/spoke/unlisted.h"

#include "examples/spoke/ending.h"

#include <spoke/stats.h>

#include <string.h>

#define SHOWN_MAX 16u

static bool is_about_entries(const struct spoke_event *event)
{
	return event->error == SPOKE_ENOPROVIDER || event->error == SPOKE_EUNSUPPORTED;
}

/* Lists are reported again after each change. */
static bool was_shown(const struct spoke_engine *engine, const struct spoke_event *event,
		      bool connected)
{
	struct spoke_event other;

	for (uint64_t i = 1; !spoke_event_get(engine, i, &other); i = other.number + 1) {
		if (other.number >= event->number)
			return false;
		if (other.error && (!connected || is_about_entries(&other)) &&
		    strcmp(other.text, event->text) == 0)
			return true;
	}
	return false;
}

bool unlisted_is_unanswered(const struct spoke_engine *engine)
{
	struct spoke_event event;

	for (uint64_t i = 1; !spoke_event_get(engine, i, &event); i = event.number + 1)
		if (event.error == SPOKE_EUNAVAILABLE)
			return true;
	return false;
}

void unlisted_print(const struct spoke_engine *engine, const char *verb, bool connected)
{
	struct spoke_event event;
	unsigned shown = 0;
	unsigned more = 0;

	for (uint64_t i = 1; !spoke_event_get(engine, i, &event); i = event.number + 1) {
		if (event.error == SPOKE_OK || (connected && !is_about_entries(&event)) ||
		    was_shown(engine, &event, connected))
			continue;
		if (shown == SHOWN_MAX)
			more++;
		else
			(void)ending_say(VERB_UNREACHABLE, verb, "%s", event.text);
		shown += shown < SHOWN_MAX;
	}
	if (more > 0)
		(void)ending_say(VERB_UNREACHABLE, verb, "... and %u more of such lines", more);
}
