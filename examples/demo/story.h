/* SPDX-License-Identifier: Apache-2.0 */
/* What the demo shows: headlines, and a line for each event, in columns. */
#ifndef DEMO_STORY_H
#define DEMO_STORY_H

#include <spoke/stats.h>

#include <stdbool.h>
#include <stdint.h>

/* Begins: times are counted from now on. Colours only on a terminal, and unless it is to be plain.
 */
void story_begin(bool plain);

uint64_t story_now(void); /* ns, of the machine's monotonic clock */

/* A headline, in a paragraph of its own. */
__attribute__((format(printf, 1, 2))) void story_head(const char *format, ...);

/* A sentence between events. */
__attribute__((format(printf, 1, 2))) void story_say(const char *format, ...);

/* What the driver itself has done. */
__attribute__((format(printf, 1, 2))) void story_did(const char *format, ...);

/* What a process tells: shown a little later, so that what several tell comes in its order. `who`
 * is borrowed. */
void story_event(uint64_t at_ns, const char *who, enum spoke_event_user user, const char *text);

/* Shows what has waited long enough; `all` of it. */
void story_show(bool all);

/* Can nobody read it any more? */
bool story_broken(void);

#endif
