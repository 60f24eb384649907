/* SPDX-License-Identifier: Apache-2.0 */
/* Policies at work, also driven at random without limits. */
#include "cluster/policy/policies.h"
#include "tests/cluster/clusterrig.h"
#include "tests/cluster/dice.h"
#include "tests/support/test.h"

/* --- policies with one attempt and with parallel attempts, fallback results, and filters */

#define rig clusterrig

static unsigned runs_of_all(void)
{
	return rig.runs;
}

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(forking_takes_the_first_answer)
{
	struct rig_call *call;

	clusterrig_provide(3);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("cluster=forking&forks=3", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(50 * MS);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 3);
	assert_int_equal(runs_of_all(), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig.providers[i].runs, 1);
}

TEST(forking_fails_when_all_do)
{
	struct rig_call *call;

	clusterrig_provide(3);
	for (unsigned i = 0; i < 3; i++)
		rig.providers[i].manner = RIG_REFUSE;
	clusterrig_consume("cluster=forking&forks=2", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREFUSED);
	assert_int_equal(call->attempts, 2);
}

TEST(broadcast_calls_all_and_reports_the_failure)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(5);
	clusterrig_consume("cluster=broadcast", NULL);
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig.providers[i].runs, 1);
	rig.providers[3].manner = RIG_ERROR;
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREMOTE);
	assert_int_equal(runs_of_all(), 10);
}

TEST(available_picks_first_able_endpoint)
{
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("cluster=available", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 10; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(rig.providers[0].runs, 10);
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	for (unsigned i = 0; i < 10; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(rig.providers[1].runs, 10);
	assert_int_equal(rig.providers[2].runs, 0);
}

TEST(failsafe_excuses_every_failure)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_consume("cluster=failsafe", NULL);
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	clusterrig_kill(0);
	clusterrig_pass(200 * MS);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
}

TEST(failsafe_excuses_call_that_waited)
{
	struct spoke_method *echo;
	struct rig_call *call;

	rig.provider_count = 2;
	clusterrig_consume("cluster=failsafe&wait.ready=true&timeout=300ms", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	call = clusterrig_call(echo);
	clusterrig_pass(10 * MS);
	clusterrig_free_consumer();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECLOSED);
}

TEST(failsafe_excuses_reached_limit)
{
	struct rig_call *call;
	struct spoke_method *echo;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("cluster=failsafe&wait.ready=true&endpoint.actives=1", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 2; i++)
		(void)clusterrig_call(echo);
	call = clusterrig_call(echo);
	clusterrig_pass(MS);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_OK);
}

TEST(failsafe_returns_fallback_however_a_call_fails)
{
	static const unsigned char seven[] = { 0x07 };
	const struct spoke_method_options options = { .fallback = { seven, 1 } };
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("cluster=failsafe&timeout=50ms", NULL);
	echo = clusterrig_method("echo", &options);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_true(call->fallback);
	clusterrig_kill(0);
	clusterrig_pass(200 * MS);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_true(call->fallback);
}

TEST(fallback_replaces_failures_but_not_answers)
{
	static const unsigned char seven[] = { 0x07 };
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_REFUSE;
	rig.providers[1].manner = RIG_REFUSE;
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo",
				 &(struct spoke_method_options){ .fallback = { seven, 1 } });
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_true(call->fallback);
	clusterrig_kill(0);
	clusterrig_kill(1);
	clusterrig_pass(300 * MS);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_true(call->fallback);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_CALLS_FALLBACK), 2);
	clusterrig_start(0);
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_pass(2 * SECOND);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREMOTE);
	assert_false(call->fallback);
}

static struct spoke_policy_verdict finish_first(const struct spoke_policy_history *history)
{
	(void)history;
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
}

static struct spoke_policy_verdict wait_first(const struct spoke_policy_history *history)
{
	return (struct spoke_policy_verdict){
		.step = history->waited ? SPOKE_STEP_FINISH : SPOKE_STEP_WAIT,
		.wait_ns = 10 * MS,
	};
}

TEST(policy_that_never_sends_gets_eunavailable)
{
	static const struct spoke_policy finishes = { .name = "finishes", .next = finish_first };
	static const struct spoke_policy waits = { .name = "waits", .next = wait_first };
	struct spoke_call_options options = { .policy = &finishes };
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(2);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", NULL);
	assert_int_equal(clusterrig_try(echo, &options), SPOKE_EUNAVAILABLE);
	options.policy = &waits;
	call = clusterrig_call_with(echo, &options);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EUNAVAILABLE);
}

static unsigned asked;

static struct spoke_policy_verdict follow(const struct spoke_policy_history *history)
{
	asked++;
	assert_int_equal(history->open, 0);
	if (history->begun == 0)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = 1 };
	assert_int_equal(history->begun, history->failed + history->ok);
	assert_int_equal(history->fresh, 2 - history->begun);
	return (struct spoke_policy_verdict){
		.step = history->last == SPOKE_FATE_SAFE && history->fresh ? SPOKE_STEP_SEND
									   : SPOKE_STEP_FINISH,
	};
}

TEST(first_answer_policy_is_asked_after_failures_only)
{
	static const struct spoke_policy plain = {
		.name = "plain",
		.next = follow,
		.retries = 1,
		.attempts = SPOKE_ATTEMPTS_IN_TURN,
	};
	static const struct {
		enum rig_manner first, second;
		int error;
		unsigned asked, attempts;
	} rows[] = {
		{ RIG_ECHO, RIG_ECHO, SPOKE_OK, 0, 1 },
		{ RIG_ERROR, RIG_ERROR, SPOKE_EREMOTE, 1, 1 },
		{ RIG_REFUSE, RIG_ECHO, SPOKE_OK, 1, 2 },
		{ RIG_REFUSE, RIG_REFUSE, SPOKE_EREFUSED, 2, 2 },
	};
	const struct spoke_method_options options = { .policy = &plain };
	struct spoke_method *echo;

	clusterrig_provide(2);
	clusterrig_consume("loadbalance=roundrobin", NULL);
	echo = clusterrig_method("echo", &options);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_call *call;

		rig.providers[0].manner = rows[i].first;
		rig.providers[1].manner = rows[i].second;
		asked = 0;
		call = clusterrig_call(echo);
		clusterrig_end(call);
		assert_int_equal(call->error, rows[i].error);
		assert_int_equal(call->attempts, rows[i].attempts);
		assert_int_equal(asked, rows[i].asked);
	}
}

TEST(policy_that_promises_nothing_is_always_asked)
{
	static const struct spoke_policy plain = { .name = "plain", .next = follow };
	struct rig_call *call;

	clusterrig_provide(2);
	clusterrig_consume("", NULL);
	asked = 0;
	call = clusterrig_call_with(clusterrig_method("echo", NULL),
				    &(struct spoke_call_options){ .policy = &plain });
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(asked, 2);
}

TEST(policy_that_excuses_hides_a_call_that_cannot_begin)
{
	static const struct spoke_policy silent = {
		.name = "silent",
		.next = finish_first,
		.excuses = true,
	};
	struct rig_call *call;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	call = clusterrig_call_with(clusterrig_method("echo", NULL),
				    &(struct spoke_call_options){ .policy = &silent });
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(rig.runs, 0);
}

TEST(repeating_policy_is_always_asked)
{
	static const struct spoke_policy repeats = {
		.name = "repeats",
		.next = follow,
		.repeats = true,
	};
	struct rig_call *call;

	clusterrig_provide(2);
	clusterrig_consume("", NULL);
	asked = 0;
	call = clusterrig_call_with(clusterrig_method("echo", NULL),
				    &(struct spoke_call_options){ .policy = &repeats });
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(asked, 2);
	assert_int_equal(rig.run_list[0].attempt, 1);
}

static unsigned before_count;

static unsigned after_count;

static size_t after_len; /* length of the arguments passed to it */

static struct spoke_method *inner_method;

static struct spoke_filter_verdict call_inside(void *arg, const struct spoke_filter_call *call)
{
	static const unsigned char two[] = { 0x92, 0x01, 0x02 };

	(void)arg;
	(void)call;
	before_count++;
	if (inner_method) {
		struct spoke_method *method = inner_method;

		inner_method = NULL;
		assert_int_equal(spoke_call(method, (struct spoke_span){ two, 3 }, NULL, NULL, NULL,
					    NULL),
				 0);
	}
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static struct spoke_filter_verdict note_after(void *arg, const struct spoke_filter_call *call)
{
	(void)arg;
	after_count++;
	after_len = call->args.len;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

TEST(filters_run_after_each_call_that_they_let_pass)
{
	static const struct spoke_filter filter = {
		.name = "inside",
		.before_call = call_inside,
		.after_call = note_after,
	};
	static const struct spoke_filter *const filters[] = { &filter };
	struct spoke_consumer_options options = { .filters = filters, .filter_count = 1 };
	struct rig_call *call;

	before_count = 0;
	after_count = 0;
	clusterrig_provide(2);
	clusterrig_consume("", &options);
	inner_method = clusterrig_method("echo", NULL);
	call = clusterrig_call(inner_method);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	clusterrig_pass(10 * MS);
	assert_int_equal(before_count, 2);
	assert_int_equal(after_count, 2);
	assert_int_not_equal(after_len, 0);
	clusterrig_kill(0);
	clusterrig_kill(1);
	clusterrig_pass(300 * MS);
	assert_int_equal(clusterrig_try(clusterrig_method("echo", NULL), NULL), SPOKE_EUNAVAILABLE);
	assert_int_equal(before_count, 3);
	assert_int_equal(after_count, 3);
	assert_int_equal(after_len, 0); /* the copy of the arguments is freed */
}

/*
 * --- calls with each policy, driven at random without limits. Providers come and go, attempts
 * end in every way. No call may send attempts for ever
 */

FIXTURE(NULL, NULL);

static void end_one(struct spoke_policy_history *history, uint64_t dice)
{
	static const enum spoke_policy_fate fates[] = { SPOKE_FATE_OK,   SPOKE_FATE_ANSWERED,
							SPOKE_FATE_SAFE, SPOKE_FATE_UNSURE,
							SPOKE_FATE_SAFE, SPOKE_FATE_UNSURE };

	history->open--;
	history->last = fates[dice % (sizeof(fates) / sizeof(fates[0]))];
	if (history->last == SPOKE_FATE_OK)
		history->ok++;
	else
		history->failed++;
}

static void begin(struct spoke_policy_history *history, uint32_t count)
{
	history->begun += count;
	history->open += count;
	history->waited = false;
	history->fresh -= count < history->fresh ? count : history->fresh;
}

static bool fans_out(const struct spoke_policy *policy)
{
	return policy == &spoke_policy_forking || policy == &spoke_policy_broadcast;
}

static uint32_t attempts_allowed(const struct spoke_policy *policy,
				 const struct spoke_policy_history *start)
{
	uint32_t width = policy == &spoke_policy_broadcast ? start->able
			 : start->forks < start->able      ? start->forks
							   : start->able;

	return fans_out(policy) ? (width > 0 ? width : 1)
				: 1 + (policy->retries > 0 ? start->retries : 0);
}

/* Drives a call with a policy at random. The steps are bounded, because no call may last for ever.
 */
static void carry(const struct spoke_policy *policy, uint64_t *seed)
{
	struct spoke_policy_history history = {
		.able = (uint32_t)(dice_roll(seed) % 6),
		.repeatable = dice_roll(seed) % 2,
		.left_ns = dice_roll(seed) % (30 * SECOND),
		.retries = (uint32_t)(dice_roll(seed) % 6),
		.forks = (uint32_t)(dice_roll(seed) % 6),
		.fail_percent = (uint32_t)(dice_roll(seed) % 120),
		.growing = dice_roll(seed) % 2,
		.period_ns = dice_roll(seed) % (5 * SECOND),
	};
	uint32_t allowed = attempts_allowed(policy, &history);
	unsigned steps = 0;

	history.fresh = history.able;
	for (;;) {
		struct spoke_policy_verdict verdict;

		history.dice = dice_roll(seed);
		verdict = policy->next(&history);
		assert_true(steps++ < 40);
		if (verdict.step == SPOKE_STEP_FINISH)
			break;
		if (verdict.step == SPOKE_STEP_SEND) {
			assert_true(verdict.count > 0 && verdict.count <= allowed - history.begun);
			begin(&history, verdict.count);
		} else if (verdict.step == SPOKE_STEP_WAIT) {
			assert_true(history.open == 0 && verdict.defer && !history.waited);
			history.waited = history.deferred = true;
			history.left_ns -= verdict.wait_ns < history.left_ns ? verdict.wait_ns
									     : history.left_ns;
			history.able = history.fresh = (uint32_t)(dice_roll(seed) % 6);
			continue;
		}
		assert_true(history.open > 0); /* LISTEN too waits for the end of an attempt */
		end_one(&history, dice_roll(seed));
	}
	assert_true(history.begun >= 1);
	assert_true(history.open == 0 || fans_out(policy));
}

TEST(policies_end_every_call)
{
	uint64_t seed = 1;

	for (unsigned i = 0; spokei_policies[i]; i++)
		for (unsigned call = 0; call < 20000; call++)
			carry(spokei_policies[i], &seed);
}
