/* SPDX-License-Identifier: Apache-2.0 */
/* Admission control by deadlines: measures how fast requests are answered, and estimates the wait
 * of the next one. */
#include "cluster/filter/admission.h"

#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define WINDOW_NS (100 * NS_PER_MS) /* shortest length of a window */
#define ANSWERS_MIN 8u              /* in a window, and to change the margin */
#define BURST 4u                    /* times the average load for which an estimate is good */

/* The margin, in parts of the time left. */
#define WHOLE 64u
#define MARGIN_MIN (WHOLE / 2)
#define MARGIN_MAX (WHOLE + WHOLE / 4)
#define LATE_SHARE 16u /* more than one of so many is late: the margin falls */
#define HELD_FOR 32u   /* windows */
#define SHARE_ONE 256u /* parts of the requests that have ended */

/* If a round begins so soon after the one before, or within a sixteenth of that one's length, the
 * loop has not slept between. */
#define AWAKE_NS NS_PER_MS
#define AWAKE_SHARE 16u
/* One of so many parts of the time left is for the rest of the round: answers are written at its
 * end. */
#define ROUND_SHARE 4u

/* Nothing is known. */
static void forget(struct spokei_admission *admission, uint64_t now_ns)
{
	const struct spokei_admission_round round = admission->round;

	*admission = (struct spokei_admission){
		.begun_ns = now_ns,
		.seen_ns = now_ns,
		.changed_ns = now_ns,
		.margin = MARGIN_MAX,
		.round = round,
	};
}

/* Counts the time until now. */
static void count_time(struct spokei_admission *admission, uint64_t now_ns, uint32_t active)
{
	uint64_t passed_ns = now_ns > admission->seen_ns ? now_ns - admission->seen_ns : 0;

	if (active > 0) {
		admission->now.busy_ns += passed_ns;
		admission->now.load += passed_ns * active;
	}
	admission->seen_ns += passed_ns;
}

/* --- the margin */

static void set_margin(struct spokei_admission *admission, uint32_t margin, uint64_t now_ns)
{
	admission->margin = margin;
	admission->changed_ns = now_ns;
	admission->judged = 0;
	admission->late = 0;
}

/* Requests were late, on average with `load` under way. */
static void lower_margin(struct spokei_admission *admission, uint64_t load, uint64_t now_ns)
{
	uint64_t late = admission->late * SHARE_ONE / admission->judged;
	uint32_t margin = MARGIN_MIN;

	if (admission->held_for > 0) {
		admission->held_for--;
		margin = admission->margin;
	} else if (admission->low_load == 0) {
		admission->low_load = load;
		admission->low_late = late;
	} else if (load * 2 <= admission->low_load && late * 2 >= admission->low_late) {
		/* Fewer requests are no less late. */
		admission->held_for = HELD_FOR;
		admission->low_load = 0;
		margin = MARGIN_MAX;
	}
	set_margin(admission, margin, now_ns);
}

static void judge(struct spokei_admission *admission, uint64_t load, uint64_t now_ns)
{
	if (admission->judged < ANSWERS_MIN)
		return;
	if (admission->late * LATE_SHARE > admission->judged) {
		lower_margin(admission, load, now_ns);
		return;
	}
	admission->low_load = 0;
	admission->held_for -= admission->held_for > 0;
	set_margin(admission, admission->margin < MARGIN_MAX ? admission->margin + 1 : MARGIN_MAX,
		   now_ns);
}

/* --- windows */

static void end_window(struct spokei_admission *admission, uint64_t now_ns)
{
	struct spokei_admission_window *window = &admission->now;
	uint64_t load = window->busy_ns ? window->load / window->busy_ns : 0;

	window->length_ns = now_ns - admission->begun_ns;
	admission->last = *window;
	memset(window, 0, sizeof(*window));
	admission->begun_ns = now_ns;
	judge(admission, load ? load : 1, now_ns);
}

/* Returns the estimated time until `active` requests are answered; 0: it is not known. */
static uint64_t estimate(const struct spokei_admission *admission, uint32_t active)
{
	const struct spokei_admission_window *last = &admission->last;
	const struct spokei_admission_window *now = &admission->now;
	const struct spokei_admission_window *of = last->answers > 0 ? last : now;
	uint64_t length_ns = admission->seen_ns - admission->begun_ns;
	uint64_t wait_ns = 0;
	uint64_t now_wait_ns;

	if ((last->busy_ns + now->busy_ns) * 2 < last->length_ns + length_ns || of->busy_ns == 0 ||
	    (active + UINT64_C(1)) * of->busy_ns > BURST * of->load)
		return 0;
	if (last->answers > 0)
		wait_ns = active * last->busy_ns / last->answers;
	if (length_ns < WINDOW_NS)
		return wait_ns;
	/* This window takes long, because there are few answers: there might be enough now. */
	now_wait_ns = active * now->busy_ns / (now->answers + ANSWERS_MIN);
	return now_wait_ns > wait_ns ? now_wait_ns : wait_ns;
}

/* --- rounds of the loop */

/* Returns how long a message that this round reads may have been in the socket: since the round
 * before began, if the loop has not slept. */
static uint64_t unread_since(const struct spokei_admission_round *before,
			     const struct spokei_admission_asked *asked)
{
	uint64_t slept_ns;
	uint64_t length_ns;

	if (before->begin_ns == 0 || asked->turn - before->turn > 1 ||
	    asked->settled_ns < before->begin_ns || asked->begin_ns < asked->settled_ns)
		return 0;
	length_ns = asked->settled_ns - before->begin_ns;
	slept_ns = asked->begin_ns - asked->settled_ns;
	return slept_ns < AWAKE_NS || slept_ns < length_ns / AWAKE_SHARE
		       ? asked->begin_ns - before->begin_ns
		       : 0;
}

static void note_round(struct spokei_admission_round *round,
		       const struct spokei_admission_asked *asked)
{
	if (round->turn == asked->turn && round->begin_ns == asked->begin_ns)
		return;
	*round = (struct spokei_admission_round){
		.turn = asked->turn,
		.begin_ns = asked->begin_ns,
		.unread_ns = unread_since(round, asked),
	};
}

/* Returns how long the request will have waited and run, if handlers answer at once. */
static uint64_t serial_time(const struct spokei_admission_round *round,
			    const struct spokei_admission_asked *asked)
{
	uint64_t passed_ns = asked->now_ns > asked->begin_ns ? asked->now_ns - asked->begin_ns : 0;
	uint64_t run_ns = round->admitted ? passed_ns / round->admitted : 0;

	return round->unread_ns + passed_ns + run_ns;
}

/* --- decisions */

static uint64_t deadline_of(uint64_t deadline_ns, uint64_t arrived_ns)
{
	return deadline_ns < UINT64_MAX ? deadline_ns : arrived_ns + SPOKEI_ADMISSION_TARGET_NS;
}

/* Returns by how much the request would be late; 0: it would not. */
static uint64_t lateness(const struct spokei_admission *admission,
			 const struct spokei_admission_asked *asked, uint64_t left_ns,
			 uint32_t active)
{
	uint64_t wait_ns = serial_time(&admission->round, asked);
	uint64_t may_ns = left_ns - left_ns / ROUND_SHARE;

	if (wait_ns >= may_ns)
		return wait_ns - may_ns + 1;
	may_ns = (left_ns - wait_ns) / WHOLE * admission->margin;
	wait_ns = estimate(admission, active);
	return wait_ns > may_ns ? wait_ns - may_ns : 0;
}

uint64_t spokei_admission_ask(struct spokei_admission *admission,
			      const struct spokei_admission_asked *asked, uint32_t active)
{
	uint64_t deadline_ns = deadline_of(asked->deadline_ns, asked->begin_ns);
	uint64_t late_ns;

	if (admission->margin == 0 ||
	    (active == 0 && asked->begin_ns > admission->seen_ns + WINDOW_NS))
		forget(admission, asked->begin_ns);
	count_time(admission, asked->begin_ns, active);
	note_round(&admission->round, asked);
	if (admission->seen_ns - admission->begun_ns >= WINDOW_NS &&
	    admission->now.answers >= ANSWERS_MIN)
		end_window(admission, admission->seen_ns);
	if (deadline_ns <= asked->begin_ns)
		return 0; /* it has expired, which is another answer */
	late_ns = lateness(admission, asked, deadline_ns - asked->begin_ns, active);
	admission->round.admitted += late_ns == 0;
	return late_ns;
}

void spokei_admission_end(struct spokei_admission *admission,
			  const struct spokei_admission_end *end, uint32_t active)
{
	uint64_t deadline_ns = deadline_of(end->deadline_ns, end->arrived_ns);
	uint64_t time_ns = deadline_ns - end->arrived_ns;
	uint64_t took_ns = end->now_ns > end->arrived_ns ? end->now_ns - end->arrived_ns : 0;

	count_time(admission, end->now_ns, active);
	admission->now.answers += end->has_run;
	if (deadline_ns <= end->arrived_ns || end->arrived_ns < admission->changed_ns)
		return;
	admission->judged++;
	/* The deadline of the caller is earlier, by the time on the way. A caller may also have
	 * given up for another reason. */
	admission->late += took_ns >= time_ns || (end->is_gone && took_ns >= time_ns - time_ns / 8);
}
