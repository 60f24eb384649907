/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the events of a provider or consumer of the demo to the driver, from callbacks and from
 * the engine's events, and its counts.
 */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include "examples/demo/message.h"

#include <spoke/engine.h>
#include <spoke/link.h>

struct report {
	struct spoke_engine *engine;
	bool provides;                   /* of a provider */
	void (*count)(uint64_t *counts); /* adds counts of the program; may be NULL */
	struct spoke_alarm alarm;
	uint64_t looked_ns;  /* when the alarm was due last; 0: never */
	int why;             /* error of the last reported retry */
	uint64_t broken;     /* reported retries after a lost connection */
	uint64_t next_event; /* number of the next event to report */
	uint64_t counts[COUNTS];
};

/* Starts reporting; `report` must not move afterwards. Returns the error of spoke_alarm_every(). */
int report_begin(struct report *report, struct spoke_engine *engine,
		 void (*count)(uint64_t *counts));

/* Reports an event; `peer` may be NULL. */
__attribute__((format(printf, 6, 7))) void report_event(struct report *report,
							enum spoke_event_user user,
							enum message_tag tag, unsigned number,
							const char *peer, const char *format, ...);

/* Callback for the option `changed`; `changed_arg` is the struct report. */
void report_link(void *arg, const struct spoke_link_event *event);

/* Sends the counts if they have changed. */
void report_counts(struct report *report);

#endif
