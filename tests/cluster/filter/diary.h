/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that keep a diary of what a provider asks them. */
#ifndef TESTS_CLUSTER_FILTER_DIARY_H
#define TESTS_CLUSTER_FILTER_DIARY_H

#include "tests/cluster/filter/filterrig.h"

enum {
	FILTERS = 3,
	DIARY = 4096,
};

/* A filter that notes what it was asked: "a+" before, "a-" after. */
struct diarist {
	char letter;
	struct spoke_filter filter;
	struct spoke_filter_verdict verdict; /* what it says */
	void (*in_before)(void);
	void (*in_after)(void);
	struct spoke_filter_answer answer; /* the last one it was told of */
	char value[RIG_TEXT];              /* ... its value or text */
	char method[RIG_TEXT];
	char peer[RIG_TEXT];
	size_t args; /* that were there */
	bool abandoned;
	unsigned befores;
	unsigned afters;
};

extern struct diarist diarists[FILTERS];
extern char diary[DIARY];

/* A provider that has them. */
extern const struct spoke_provider_options with_filters;

/* With the rig's tear-down. */
int diary_set_up(void **state);

/* Makes both sides, with them. */
void diary_begin(void);

/* Calls, and waits until it is over. */
struct rig_call *diary_call(struct spoke_method *method);

#endif
