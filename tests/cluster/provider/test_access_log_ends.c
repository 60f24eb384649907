/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: the end of its provider, and a thread pool that is slow, full or gone. */
#include "tests/cluster/provider/logrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

/* --- the end */

FIXTURE(filterrig_set_up, filterrig_tear_down);

TEST(freed_provider_writes_all_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	log_serve(3);
	(void)filterrig_call(rig.later);
	filterrig_pass(10 * MS);
	assert_null(log_file());
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(10 * MS);
	assert_int_equal(log_count_lines(&missing), 4);
	assert_non_null(strstr(log_file(), "\"later\" 6 ECLOSED 10.000 abandoned\n"));
}

TEST(freed_engine_writes_all_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	log_serve(3);
	assert_null(log_file());
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_int_equal(log_count_lines(&missing), 3);
}

TEST(last_page_is_dropped_when_write_fails)
{
	log_begin(&log_to_file);
	log_serve(3);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1000, -ENOSPC);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(SECOND);
	assert_int_equal(log_appends(), 1);
	assert_int_equal(log_count_events("cannot be written"), 1);
}

TEST(engine_ends_when_writes_fail)
{
	log_begin(&log_to_file);
	log_serve(3);
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_APPEND, 1000, -ENOSPC);
	spoke_engine_free(rig.engines[SERVER]);
	rig.engines[SERVER] = NULL;
	rig.provider = NULL;
	assert_null(log_file());
}

/* --- a slow or full thread pool */

static struct slow {
	struct spoke_loop loop;
	int (*offload)(void *loop, struct spoke_work *work);
	int error;
	struct spoke_work *work; /* the work that waits */
	unsigned tries;
} slow;

static int slow_offload(void *loop, struct spoke_work *work)
{
	(void)loop;
	slow.tries++;
	if (slow.error)
		return slow.error;
	assert_null(slow.work);
	slow.work = work;
	return 0;
}

/* Makes the work of the pool wait for slow_work(). */
static void make_slow(void)
{
	memset(&slow, 0, sizeof(slow));
	slow.loop = *rig.faulty[SERVER].env.loop;
	rig.faulty[SERVER].env.loop = &slow.loop;
	slow.offload = slow.loop.offload;
	slow.loop.offload = slow_offload;
}

static void slow_work(int status)
{
	struct spoke_work *work = slow.work;

	assert_non_null(work);
	slow.work = NULL;
	if (status == 0)
		work->run(work);
	work->status = status;
	work->done(work);
}

TEST(second_page_fills_while_first_is_written)
{
	unsigned missing;
	unsigned lines;

	log_begin(&log_to_file);
	make_slow();
	log_serve(1000);
	log_serve(1000);
	assert_int_equal(slow.tries, 1);
	slow_work(0);
	assert_in_range(log_count_lines(&missing), 300, 600);
	assert_int_equal(missing, 0);
	assert_int_equal(slow.tries, 2);
	slow_work(0);
	assert_int_equal(missing, 0);
	lines = log_count_lines(&missing);
	assert_in_range(lines, 1000, 1500);
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), lines);
	assert_int_equal(missing, 2000 - lines);
	log_serve(1);
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), lines + 1);
	assert_int_equal(missing, 2000 - lines);
}

static void fail_many(unsigned count, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		(void)filterrig_call_with(rig.fail, text, NULL);
	filterrig_pass(20 * MS);
}

/*
 * Here a line of "fail" has 79 bytes, 80 with long arguments, and a line of "echo" 74. After a
 * dropped line a shorter line would fit, but must wait until the number of dropped lines is
 * written.
 */
TEST(missing_lines_are_counted_before_later_lines)
{
	unsigned missing;

	log_begin(&log_to_file);
	make_slow();
	fail_many(415, "hello");
	assert_int_equal(slow.tries, 1);
	fail_many(779, "hello");
	fail_many(49, "hello, you");
	fail_many(1, "hello");
	log_serve(1);
	slow_work(0);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), 415 + 779 + 49);
	assert_int_equal(strlen(log_file()), (415 + 779) * 79 + 49 * 80);
	assert_int_equal(missing, 0);
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), 415 + 779 + 49);
	assert_int_equal(missing, 2);
}

TEST(lines_wait_while_pool_is_full)
{
	unsigned missing;

	log_begin(&log_to_file);
	make_slow();
	slow.error = -EAGAIN;
	log_serve(3);
	filterrig_pass(5 * SECOND);
	assert_in_range(slow.tries, 4, 6);
	slow.error = 0;
	filterrig_pass(SECOND);
	slow_work(0);
	assert_int_equal(log_count_lines(&missing), 3);
	assert_int_equal(missing, 0);
	slow.error = -EAGAIN;
	log_serve(3);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(MS);
	assert_int_equal(log_count_lines(&missing), 6);
}

TEST(page_returned_by_ending_pool_is_written)
{
	unsigned missing;

	log_begin(&log_to_file);
	make_slow();
	log_serve(3);
	filterrig_pass(SECOND);
	log_serve(2);
	spoke_provider_free(rig.provider);
	rig.provider = NULL;
	filterrig_pass(MS);
	slow.error = -ECANCELED;
	slow_work(-ECANCELED);
	assert_int_equal(log_count_lines(&missing), 5);
	assert_int_equal(missing, 0);
}
