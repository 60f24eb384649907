/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules faults and rests: see acts.h. */
#include "acts.h"

#include <stdio.h>

#define HARM_LEAST_MS 500u /* between two faults */
#define HARM_MOST_MS 4000u
#define FREEZE_LEAST_MS 200u
#define FREEZE_MOST_MS 8000u
#define AWAY_LEAST_MS 100u
#define AWAY_MOST_MS 3000u
#define HARMED_MAX 3u /* processes at a time */
#define PROVIDERS_HARMED_MAX 2u
#define WHOLE_NS NS_PER_S      /* long enough that no report is older than the phase */
#define CALM_NS (2 * NS_PER_S) /* long enough for a heartbeat on every connection */
#define TRIM_NS (100 * NS_PER_MS)
#define PATIENCE_NS (60 * NS_PER_S)

void acts_begin(struct acts *acts, const struct plan *plan)
{
	uint64_t now = cast_now();

	*acts = (struct acts){
		.plan = plan,
		.dice = sim_dice_make(plan->seed),
		.phase = ACT_HEAL,
		.phase_ns = now,
		.rest_ns = now,
	};
}

static void enter(struct acts *acts, enum act_phase phase)
{
	acts->phase = phase;
	acts->phase_ns = cast_now();
	acts->good_ns = 0;
	board->hush = phase == ACT_HUSH || phase == ACT_TRIM;
	board->trim = phase == ACT_TRIM;
}

/* Returns whether the phase's condition has held for the given time. */
static bool has_been(struct acts *acts, bool good, uint64_t for_ns)
{
	uint64_t now = cast_now();

	if (!good)
		acts->good_ns = 0;
	else if (acts->good_ns == 0)
		acts->good_ns = now;
	return good && now - acts->good_ns >= for_ns;
}

static unsigned providers_harmed(void)
{
	unsigned harmed = 0;

	for (unsigned i = 0; i < PROVIDERS; i++)
		harmed += cast.actors[i].state != ACTOR_UP || !board->desks[i].up;
	return harmed;
}

/* Disturbs a random process. The first process of each kind lives for the whole run. */
static void harm(struct acts *acts)
{
	static const struct {
		unsigned percent;
		bool provider;
		enum actor_harm harm;
		uint64_t least_ms;
		uint64_t most_ms;
	} harms[] = {
		{ 30, true, HARM_FREEZE, FREEZE_LEAST_MS, FREEZE_MOST_MS },
		{ 25, true, HARM_KILL, AWAY_LEAST_MS, AWAY_MOST_MS },
		{ 15, true, HARM_END, 0, 0 },
		{ 15, false, HARM_FREEZE, FREEZE_LEAST_MS, FREEZE_MOST_MS },
		{ 8, false, HARM_END, 0, 0 },
		{ 7, false, HARM_KILL, AWAY_LEAST_MS, AWAY_MOST_MS },
	};
	uint64_t pick = sim_throw(&acts->dice) % 100;
	unsigned i = 0;
	unsigned spared;
	unsigned whom;

	while (pick >= harms[i].percent)
		pick -= harms[i++].percent;
	spared = harms[i].harm == HARM_FREEZE ? 0 : 1;
	if (harms[i].provider)
		whom = (unsigned)sim_between(&acts->dice, spared, PROVIDERS - 1);
	else
		whom = PROVIDERS + (unsigned)sim_between(&acts->dice, spared, CONSUMERS - 1);
	if (cast_harmed() < HARMED_MAX &&
	    (!harms[i].provider || providers_harmed() < PROVIDERS_HARMED_MAX))
		cast_harm(&cast.actors[whom], harms[i].harm,
			  (harms[i].most_ms
				   ? sim_magnitude(&acts->dice, harms[i].least_ms, harms[i].most_ms)
				   : 0) *
				  NS_PER_MS);
}

static void tell_patience(void)
{
	cast_fail("after %d s the processes are not ready and at rest:",
		  (int)(PATIENCE_NS / NS_PER_S));
	for (unsigned i = 0; i < PROCESSES; i++)
		(void)fprintf(stderr,
			      "  %s: state %d, connections %llu, endpoints ready %llu, open %llu\n",
			      cast.actors[i].name, (int)cast.actors[i].state,
			      (unsigned long long)board->desks[i].connections,
			      (unsigned long long)board->desks[i].ready,
			      (unsigned long long)board->desks[i].open);
}

/* Reports a phase that lasts too long, and ends it. */
static bool is_over(const struct acts *acts)
{
	if (cast_now() - acts->phase_ns < PATIENCE_NS)
		return false;
	tell_patience();
	return true;
}

bool acts_step(struct acts *acts)
{
	uint64_t now = cast_now();

	switch (acts->phase) {
	case ACT_HARM:
		if (now >= acts->rest_ns) {
			enter(acts, ACT_HEAL);
		} else if (now >= acts->next_ns && !acts->plan->calm) {
			harm(acts);
			acts->next_ns = now + NS_PER_MS * sim_between(&acts->dice, HARM_LEAST_MS,
								      HARM_MOST_MS);
		}
		return false;
	case ACT_HEAL:
		if (has_been(acts, cast_whole(), WHOLE_NS) || is_over(acts))
			enter(acts, ACT_HUSH);
		return false;
	case ACT_HUSH:
		if (has_been(acts, cast_rests() && cast_whole(), CALM_NS) || is_over(acts))
			enter(acts, ACT_TRIM);
		return false;
	case ACT_TRIM:
		if (!has_been(acts, cast_trimmed(), TRIM_NS) && !is_over(acts))
			return false;
		acts->rests++;
		acts->rest_ns += acts->plan->rest_ns;
		if (acts->rest_ns < now)
			acts->rest_ns = now + acts->plan->rest_ns;
		return true;
	}
	return false;
}

void acts_wake(struct acts *acts)
{
	enter(acts, ACT_HARM);
}
