/* SPDX-License-Identifier: Apache-2.0 */
/* Measures endpoints, ejects those that fail repeatedly, and readmits them. */
#include "cluster/endpoints/health.h"

#include "core/base/pace.h"

#define SHARE 16u
#define MEAN_MAX_NS (UINT64_C(1) << 48) /* 78 hours */

void spokei_score_answered(struct spokei_score *score, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t pause_ns = now_ns - score->seen_ns;
	uint64_t took = took_ns < MEAN_MAX_NS ? took_ns : MEAN_MAX_NS;
	/* 0 means "no mean". */
	int64_t sample = took ? (int64_t)took : 1;
	int64_t mean = (int64_t)score->mean_ns;

	if (mean == 0 || pause_ns >= SPOKEI_SCORE_NS)
		mean = sample;
	else if (pause_ns <= SPOKEI_SCORE_NS / SHARE)
		mean += (sample - mean) / (int64_t)SHARE;
	else
		/* In units of 1/1024, so that it cannot overflow. */
		mean += (sample - mean) / 1024 * (int64_t)(pause_ns / (SPOKEI_SCORE_NS / 1024));
	score->mean_ns = mean > 0 ? (uint64_t)mean : 1;
	score->seen_ns = now_ns;
}

/* --- ejection */

static void start_ejection(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			   uint64_t now_ns, uint64_t dice)
{
	const struct spokei_backoff backoff = { rule->first_ns, SPOKEI_EJECT_CAP_NS };

	eject->aside = true;
	eject->probing = false;
	eject->row = 0;
	eject->since_ns = now_ns;
	eject->until_ns = now_ns + spokei_backoff_pause(&backoff, eject->times, dice);
	if (eject->times < UINT32_MAX)
		eject->times++;
}

bool spokei_eject_failed(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			 uint64_t begun_ns, uint64_t now_ns, bool alone, uint64_t dice)
{
	if (rule->failures == 0)
		return false;
	if (eject->aside) {
		if (begun_ns < eject->since_ns || !eject->probing)
			return false;
		start_ejection(eject, rule, now_ns, dice);
		return true;
	}
	if (eject->row < UINT32_MAX)
		eject->row++;
	if (eject->row < rule->failures || alone)
		return false;
	start_ejection(eject, rule, now_ns, dice);
	return true;
}

bool spokei_eject_forgive(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			  uint64_t begun_ns, uint64_t now_ns)
{
	if (eject->aside) {
		if (begun_ns < eject->since_ns)
			return false;
		eject->aside = false;
		eject->probing = false;
		eject->row = 0;
		eject->calm_ns = now_ns + rule->first_ns;
		return true;
	}
	eject->row = 0;
	if (now_ns >= eject->calm_ns) {
		eject->times--;
		eject->calm_ns = now_ns + rule->first_ns;
	}
	return false;
}
