/* SPDX-License-Identifier: Apache-2.0 */
#include "examples/demo/story.h"

#include <stdarg.h>
#include <stdio.h>

void story_begin(struct story *story, const char *who, struct spoke_engine *engine)
{
	*story = (struct story){ who, engine };
}

void story_say(const struct story *story, const char *format, ...)
{
	uint64_t ms = spoke_engine_now(story->engine) / 1000000 % 10000000;
	va_list args;

	printf("    %4u.%03u s  %-8s  ", (unsigned)(ms / 1000), (unsigned)(ms % 1000), story->who);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf("\n");
	(void)fflush(stdout);
}

void story_changed(void *arg, const struct spoke_link_event *event)
{
	const struct story *story = arg;
	const char *change = spoke_link_change_name(event->change);

	switch (event->change) {
	case SPOKE_LINK_SUSPECT:
		story_say(story, "%s: %s: heartbeat unanswered, missed %u", event->name, change,
			  event->missed);
		return;
	case SPOKE_LINK_CLOSED:
		story_say(story, "%s: %s: %s", event->name, change,
			  event->error == SPOKE_ECLOSED ? "it has said goodbye"
							: spoke_strerror(event->error));
		return;
	case SPOKE_LINK_RECONNECTING:
		story_say(story, "%s: %s: attempt %u in %u ms", event->name, change, event->attempt,
			  (unsigned)(event->pause_ns / 1000000));
		return;
	case SPOKE_LINK_PROBATION:
		story_say(story, "%s: %s: connected, but it has to answer first", event->name,
			  change);
		return;
	case SPOKE_LINK_CONNECTED:
	case SPOKE_LINK_RECOVERED:
	case SPOKE_LINK_READONLY:
		break;
	}
	story_say(story, "%s: %s", event->name, change);
}
