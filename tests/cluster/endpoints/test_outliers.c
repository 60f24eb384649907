/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints that are ejected for their errors or their latency, among others. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include "core/engine/engine.h"

#define TIMES "?eject.failures=0&eject.calls=10&eject.time=60s"

static const struct spoke_consumer_options presets;

static void start(const char *parameters)
{
	for (unsigned i = 0; i < PROVIDERS; i++)
		dirrig_start(i);
	dirrig_consume(parameters, &presets);
	LIST(A, B, C, D);
	dirrig_pass(10 * MS);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), PROVIDERS);
}

/* Counts the ends of attempts at an endpoint. */
static void end(unsigned side, unsigned count, int error, uint64_t took_ns)
{
	const struct spokei_candidates *candidates = &dirrig.consumer->directory->candidates;

	spokei_engine_refresh(dirrig.engine);
	for (unsigned i = 0; i < count; i++) {
		struct spokei_endpoint *endpoint = candidates->endpoints[side];

		spokei_directory_begun(endpoint, dirrig.engine->begin_ns);
		spokei_directory_ended(endpoint, error, took_ns);
	}
}

static unsigned count_ejected(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PROVIDERS; i++)
		count += dirrig_info(i).ejected;
	return count;
}

/* Has the endpoints answer after these times, and looks at all of them, more than once: a round
 * compares with the one before it. */
static void answer(unsigned slow, unsigned count, uint64_t slow_ns, uint64_t others_ns)
{
	for (unsigned round = 0; round < 3; round++) {
		uint32_t able;
		uint32_t fresh;

		for (unsigned i = 0; i < PROVIDERS; i++) {
			end(i, i == slow ? count : 100, SPOKE_OK, i == slow ? slow_ns : others_ns);
			if (i != slow)
				end(i, 100, SPOKE_EREFUSED, 1000);
		}
		dirrig_pass(1100 * MS);
		spokei_engine_refresh(dirrig.engine);
		spokei_directory_count(dirrig.consumer->directory, NULL, NULL, 0, &able, &fresh);
	}
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(endpoint_with_many_errors_is_ejected_among_successes)
{
	start(TIMES);
	for (unsigned i = 0; i < 40; i++) {
		end(0, 1, i % 3 ? SPOKE_ETIMEOUT : SPOKE_OK, MS);
		end(1, 1, i % 3 ? SPOKE_OK : SPOKE_ETIMEOUT, MS);
	}
	assert_true(dirrig_info(0).ejected);
	assert_int_equal(count_ejected(), 1);
}

TEST(share_bounds_ejections_by_errors)
{
	start(TIMES);
	for (unsigned i = 0; i < PROVIDERS; i++)
		end(i, 100, SPOKE_ETIMEOUT, MS);
	assert_int_equal(count_ejected(), 1);
}

TEST(larger_share_ejects_more)
{
	start(TIMES "&eject.share=50");
	for (unsigned i = 0; i < PROVIDERS; i++)
		end(i, 100, SPOKE_ETIMEOUT, MS);
	assert_int_equal(count_ejected(), 2);
}

TEST(last_endpoint_is_not_ejected_by_errors)
{
	start(TIMES "&eject.share=100");
	for (unsigned i = 0; i < PROVIDERS; i++)
		end(i, 100, SPOKE_ETIMEOUT, MS);
	assert_int_equal(count_ejected(), PROVIDERS - 1);
}

TEST(errors_eject_nobody_if_off)
{
	start(TIMES "&eject.errors=0");
	end(0, 1000, SPOKE_ETIMEOUT, MS);
	assert_int_equal(count_ejected(), 0);
}

TEST(refused_attempts_are_no_errors_and_no_attempts)
{
	start(TIMES);
	end(0, 1000, SPOKE_EREFUSED, MS);
	assert_int_equal(count_ejected(), 0);
	end(0, 9, SPOKE_ETIMEOUT, MS);
	end(0, 1000, SPOKE_EREFUSED, MS);
	end(0, 1000, SPOKE_ECANCELED, MS);
	assert_int_equal(count_ejected(), 0);
	end(0, 1, SPOKE_ETIMEOUT, MS);
	assert_int_equal(count_ejected(), 1);
}

TEST(slow_endpoint_is_ejected)
{
	start(TIMES "&eject.latency=5");
	answer(2, 100, 50 * MS, 5 * MS);
	assert_true(dirrig_info(2).ejected);
	assert_int_equal(count_ejected(), 1);
}

TEST(slow_endpoint_is_kept_by_default)
{
	start(TIMES);
	answer(2, 100, 500 * MS, 5 * MS);
	assert_int_equal(count_ejected(), 0);
}

TEST(refusals_do_not_make_others_look_slow)
{
	start(TIMES "&eject.latency=5");
	answer(2, 100, 50 * MS, 50 * MS);
	assert_int_equal(count_ejected(), 0);
}

TEST(few_answers_show_no_latency)
{
	start(TIMES "&eject.latency=5");
	answer(2, 2, 50 * MS, 5 * MS);
	assert_int_equal(count_ejected(), 0);
}
