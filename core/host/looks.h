/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks before sleep: a wait may poll for a while before it sleeps, because to be woken costs more
 * CPU time than most waits of a busy connection last. A look that finds nothing is wasted, so waits
 * look only while looks have paid lately. Of the others one in SPOKEI_LOOKS_TRY looks, to find out,
 * and rarely after tries that found nothing: if both sides share one core, no look can pay. The
 * owner's thread.
 */
#ifndef SPOKEI_CORE_HOST_LOOKS_H
#define SPOKEI_CORE_HOST_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_LOOKS_NS UINT64_C(50000) /* longest look that adapts */
#define SPOKEI_LOOKS_TRY 64u            /* waits, at first */
#define SPOKEI_LOOKS_TRY_MAX 4096u
#define SPOKEI_LOOKS_CREDIT 8u
#define SPOKEI_LOOKS_LOSS 4u /* credit that a look without result costs */

struct spokei_looks {
	uint64_t ns;      /* how long a look lasts; 0: there are none */
	bool adapts;      /* to what looks find; else each wait looks */
	unsigned credit;  /* looks that paid, less those that did not */
	unsigned skipped; /* waits since the last look */
	unsigned apart;   /* waits from one try to the next */
};

/* Sets how long looks last. `adapts`: at most so long. */
static inline void spokei_looks_init(struct spokei_looks *looks, uint64_t ns, bool adapts)
{
	*looks = (struct spokei_looks){ .ns = ns, .adapts = adapts, .apart = SPOKEI_LOOKS_TRY };
}

/* Returns whether the next wait looks. */
static inline bool spokei_looks_next(struct spokei_looks *looks)
{
	if (!looks->adapts || looks->credit > 0)
		return looks->ns > 0;
	if (++looks->skipped < looks->apart)
		return false;
	looks->skipped = 0;
	return true;
}

/* Notes what a look has found. */
static inline void spokei_looks_note(struct spokei_looks *looks, bool found)
{
	if (found) {
		looks->credit += looks->credit < SPOKEI_LOOKS_CREDIT;
		looks->apart = SPOKEI_LOOKS_TRY;
	} else if (looks->credit > 0) {
		looks->credit -= looks->credit < SPOKEI_LOOKS_LOSS ? looks->credit
								   : SPOKEI_LOOKS_LOSS;
	} else if (looks->apart < SPOKEI_LOOKS_TRY_MAX) {
		looks->apart *= 2;
	}
}

#endif
