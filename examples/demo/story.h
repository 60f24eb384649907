/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of demo.sh say: a line for each thing that happens in them, when it does. */
#ifndef DEMO_STORY_H
#define DEMO_STORY_H

#include <spoke/engine.h>
#include <spoke/link.h>

/* Who says it. The times are of the machine's clock, so that those of two programs compare. */
struct story {
	const char *who;
	struct spoke_engine *engine;
};

void story_begin(struct story *story, const char *who, struct spoke_engine *engine);

/* Says a line. */
__attribute__((format(printf, 2, 3))) void story_say(const struct story *story, const char *format,
						     ...);

/* For the options `changed` and `changed_arg` (a struct story) of consumers and providers. */
void story_changed(void *arg, const struct spoke_link_event *event);

#endif
