/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the demo: headlines, and one line per event, in columns. */
#ifndef DEMO_STORY_H
#define DEMO_STORY_H

#include <spoke/stats.h>

#include <stdbool.h>
#include <stdint.h>

/* Starts the clock of the output. Colours only on a terminal, and not with `plain`. */
void story_begin(bool plain);

uint64_t story_now(void); /* monotonic clock, ns */

/* Prints a headline. */
__attribute__((format(printf, 1, 2))) void story_head(const char *format, ...);

/* Prints a sentence between events. */
__attribute__((format(printf, 1, 2))) void story_print(const char *format, ...);

/* Prints an action of the driver. */
__attribute__((format(printf, 1, 2))) void story_did(const char *format, ...);

/* Queues an event of a process for a short time, so that events of several processes are sorted.
 * `who` is the borrowed name of the process. */
void story_event(uint64_t at_ns, const char *who, enum spoke_event_user user, const char *text);

/* Prints queued lines that are old enough; `all`: all lines. */
void story_show(bool all);

/* Has the output been closed? */
bool story_broken(void);

#endif
