/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that record their calls by a provider. */
#ifndef TESTS_CLUSTER_FILTER_DIARY_H
#define TESTS_CLUSTER_FILTER_DIARY_H

#include "tests/cluster/filter/filterrig.h"

enum {
	FILTERS = 3,
	DIARY = 4096,
};

/* A filter that records its calls: "a+" before, "a-" after. */
struct diarist {
	char letter;
	struct spoke_filter filter;
	struct spoke_filter_verdict verdict; /* its result */
	void (*in_before)(void);
	void (*in_after)(void);
	struct spoke_filter_answer answer; /* the last answer passed to it */
	char value[RIG_TEXT];              /* the answer's value or text */
	char method[RIG_TEXT];
	char peer[RIG_TEXT];
	size_t args; /* number of arguments */
	bool abandoned;
	unsigned befores;
	unsigned afters;
};

extern struct diarist diarists[FILTERS];
extern char diary[DIARY];

/* Options of a provider with these filters. */
extern const struct spoke_provider_options with_filters;

/* Calls the rig's tear-down too. */
int diary_set_up(void **state);

/* Makes both sides with these filters. */
void diary_begin(void);

/* Makes a call and waits for its end. */
struct filterrig_call *diary_call(struct spoke_method *method);

#endif
