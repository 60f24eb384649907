/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an endpoint is put aside: after failures in a row it is, for a time that grows by 1.6
 * each time; when that is over one attempt is let through (the probe), and its end decides. What
 * began before it was put aside decides nothing any more. Judges only: time and dice are
 * parameters. Part of an endpoint, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_EJECT_H
#define SPOKEI_CLUSTER_ENDPOINTS_EJECT_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_EJECT_CAP_NS UINT64_C(300000000000)

struct spokei_eject_rule {
	uint32_t failures; /* in a row; 0: it is never put aside */
	uint64_t first_ns; /* for so long the first time, 20 % more or less */
};

/* Zero-initialised nothing speaks against it. */
struct spokei_eject {
	uint32_t row;      /* failures in a row */
	uint32_t times;    /* it was put aside; one less for each calm time that has passed since */
	bool aside;        /* until somebody has seen it answer */
	bool probing;      /* an attempt is under way that will tell */
	uint64_t since_ns; /* aside since then ... */
	uint64_t until_ns; /* ... and not to be tried before */
	uint64_t calm_ns;  /* from then on one time less counts */
};

/* Is it to be left out? */
static inline bool spokei_eject_excludes(const struct spokei_eject *eject, uint64_t now_ns)
{
	return eject->aside && (eject->probing || now_ns < eject->until_ns);
}

/* An attempt begins: the probe, if it is time for that. */
static inline void spokei_eject_begun(struct spokei_eject *eject, uint64_t now_ns)
{
	eject->probing |= eject->aside && now_ns >= eject->until_ns;
}

/* An attempt that was begun then has failed. `alone`: nobody else could take calls, so that it is
 * not put aside. Returns whether it is now, or is again. */
bool spokei_eject_failed(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			 uint64_t begun_ns, uint64_t now_ns, bool alone, uint64_t dice);

/* spokei_eject_answered(), of one that is aside or was of late. */
bool spokei_eject_forgive(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			  uint64_t begun_ns, uint64_t now_ns);

/* An attempt that was begun then was answered. Returns whether it is aside no more. */
static inline bool spokei_eject_answered(struct spokei_eject *eject,
					 const struct spokei_eject_rule *rule, uint64_t begun_ns,
					 uint64_t now_ns)
{
	if (eject->aside || eject->times > 0)
		return spokei_eject_forgive(eject, rule, begun_ns, now_ns);
	eject->row = 0;
	return false;
}

/* An attempt has ended, which says nothing about it. */
static inline void spokei_eject_over(struct spokei_eject *eject)
{
	eject->probing = false;
}

/* Would one more failure put it aside? */
static inline bool spokei_eject_near(const struct spokei_eject *eject,
				     const struct spokei_eject_rule *rule)
{
	return rule->failures > 0 && !eject->aside && eject->row + 1 >= rule->failures;
}

#endif
