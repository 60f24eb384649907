/* SPDX-License-Identifier: Apache-2.0 */
/* Measures endpoints, ejects those that fail repeatedly, and readmits them. */
#include "cluster/endpoints/health.h"

#include "core/base/pace.h"

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

bool spokei_eject_answered(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
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
	if (eject->times > 0 && now_ns >= eject->calm_ns) {
		eject->times--;
		eject->calm_ns = now_ns + rule->first_ns;
	}
	return false;
}
