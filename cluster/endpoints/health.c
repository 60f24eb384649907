/* SPDX-License-Identifier: Apache-2.0 */
/* Measures endpoints, ejects those that fail repeatedly, and readmits them. */
#include "cluster/endpoints/health.h"

#include "core/base/pace.h"

/* --- ejection */

void spokei_eject_start(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			uint64_t now_ns, uint64_t dice)
{
	const struct spokei_backoff backoff = { rule->first_ns, SPOKEI_EJECT_CAP_NS };

	eject->aside = true;
	eject->probing = false;
	eject->row = 0;
	eject->errors.begun_ns = 0;
	eject->pace.begun_ns = 0;
	eject->since_ns = now_ns;
	eject->until_ns = now_ns + spokei_backoff_pause(&backoff, eject->times, dice);
	if (eject->times < UINT32_MAX)
		eject->times++;
}

bool spokei_eject_failed(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			 uint64_t begun_ns, uint64_t now_ns, bool alone, uint64_t dice)
{
	if (eject->aside) {
		if (begun_ns < eject->since_ns || !eject->probing)
			return false;
		spokei_eject_start(eject, rule, now_ns, dice);
		return true;
	}
	if (rule->failures == 0)
		return false;
	if (eject->row < UINT32_MAX)
		eject->row++;
	if (eject->row < rule->failures || alone)
		return false;
	spokei_eject_start(eject, rule, now_ns, dice);
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

/* --- rates */

/* Begins an interval if none lasts. `ended` is as of its beginning. */
static void begin_window(struct spokei_eject_window *window, uint64_t interval_ns, uint64_t ended,
			 uint64_t now_ns)
{
	if (window->begun_ns == 0 || now_ns - window->begun_ns >= interval_ns)
		*window = (struct spokei_eject_window){ .begun_ns = now_ns, .ended = ended };
}

bool spokei_eject_rate(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
		       uint64_t ended, uint64_t now_ns)
{
	struct spokei_eject_window *window = &eject->errors;
	uint64_t count;

	if (rule->errors == 0 || eject->aside)
		return false;
	begin_window(window, rule->interval_ns, ended - 1, now_ns);
	window->failed++;
	count = ended - window->ended;
	return count >= rule->calls && UINT64_C(100) * window->failed >= count * rule->errors;
}

bool spokei_eject_slow(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
		       uint64_t ended, uint64_t mean_ns, uint64_t others_ns, uint64_t now_ns)
{
	struct spokei_eject_window *window = &eject->pace;
	bool slow = others_ns > 0 && mean_ns / rule->latency >= others_ns;

	if (eject->aside)
		return false;
	begin_window(window, rule->interval_ns, ended, now_ns);
	return slow && ended - window->ended >= rule->calls;
}
