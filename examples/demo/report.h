/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a provider or a consumer of the demo reports to the driver: each thing that spoke tells it,
 * by a callback or by the engine's events, when it happens, and what has been counted.
 */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include "examples/demo/message.h"

#include <spoke/engine.h>
#include <spoke/link.h>

struct report {
	struct spoke_engine *engine;
	bool provides;                   /* it is a provider's */
	void (*count)(uint64_t *counts); /* what the engine does not count; may be NULL */
	struct spoke_alarm alarm;
	int why;             /* error of the retry told last; SPOKE_OK: it went well */
	uint64_t broken;     /* retries told of whose connection had ended */
	uint64_t next_event; /* of the engine's, to be told */
	uint64_t counts[COUNTS];
};

/* Begins; it must not be moved afterwards. Returns as spoke_alarm_every(). */
int report_begin(struct report *report, struct spoke_engine *engine,
		 void (*count)(uint64_t *counts));

/* `peer` NULL: of none. */
__attribute__((format(printf, 6, 7))) void report_say(struct report *report,
						      enum spoke_event_user user,
						      enum message_tag tag, unsigned number,
						      const char *peer, const char *format, ...);

/* For the options `changed` and `changed_arg` (a struct report) of consumers and providers. */
void report_link(void *arg, const struct spoke_link_event *event);

/* What has been counted until now, if it is other than last told. */
void report_counts(struct report *report);

#endif
