/* SPDX-License-Identifier: Apache-2.0 */
/* Admission by deadlines, in front of a queue with servers, or of servers without end. */
#include "cluster/filter/admission.h"
#include "tests/support/test.h"

#include <string.h>

#define QUEUE 65536u
#define NEVER UINT64_MAX
#define GRAIN (MS / 10)

struct job {
	uint64_t arrived_ns;
	uint64_t deadline_ns;
	uint64_t done_ns; /* of one that a server has */
};

/* A method: its requests wait in a queue for one of the servers. */
struct method {
	struct spokei_admission admission;
	unsigned servers; /* at most QUEUE: as good as no limit */
	uint64_t service_ns;
	uint64_t spread; /* percent of service_ns, up and down */
	uint64_t timeout_ns;
	uint64_t now_ns;
	uint64_t dice;
	uint32_t active;
	unsigned running;
	struct job run[QUEUE]; /* unordered */
	struct job queue[QUEUE];
	unsigned head;
	unsigned queued;
	/* Results; zeroed by the test. */
	unsigned offered;
	unsigned refused;
	unsigned in_time;
	unsigned late;
};

static struct method method;

STEP(set_up)
{
	memset(&method, 0, sizeof(method));
	method = (struct method){
		.servers = 10,
		.service_ns = 10 * MS,
		.spread = 20,
		.timeout_ns = 100 * MS,
		.now_ns = 1000 * SECOND,
		.dice = 1,
	};
}

FIXTURE(set_up, NULL);

/* Returns a number from 0 to 999. */
static uint64_t roll(void)
{
	method.dice = method.dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (method.dice >> 33) % 1000;
}

static void start(struct job job)
{
	uint64_t least_ns = method.service_ns - method.service_ns * method.spread / 100;
	uint64_t range_ns = 2 * method.service_ns * method.spread / 100;

	job.done_ns = method.now_ns + least_ns + range_ns * roll() / 1000;
	method.run[method.running++] = job;
}

static void end(const struct job *job, bool has_run)
{
	const struct spokei_admission_end of = {
		.arrived_ns = job->arrived_ns,
		.deadline_ns = job->deadline_ns,
		.now_ns = method.now_ns,
		.has_run = has_run,
	};

	spokei_admission_end(&method.admission, &of, method.active--);
	method.in_time += method.now_ns < job->deadline_ns;
	method.late += method.now_ns >= job->deadline_ns;
}

/* Ends what is over, and starts what waits; requests that are late already are dropped. */
static void serve(void)
{
	for (unsigned i = method.running; i-- > 0;) {
		struct job job = method.run[i];

		if (job.done_ns > method.now_ns)
			continue;
		method.run[i] = method.run[--method.running];
		end(&job, true);
	}
	while (method.queued > 0 && method.running < method.servers) {
		struct job job = method.queue[method.head++ % QUEUE];

		method.queued--;
		if (job.deadline_ns <= method.now_ns)
			end(&job, false);
		else
			start(job);
	}
}

/* Returns whether a request is admitted. */
static bool offer(uint64_t timeout_ns)
{
	const struct spokei_admission_asked asked = {
		.deadline_ns = timeout_ns == NEVER ? NEVER : method.now_ns + timeout_ns,
		.now_ns = method.now_ns,
		.begin_ns = method.now_ns,
		.turn = method.now_ns / MS,
	};
	const struct job job = { method.now_ns, asked.deadline_ns, 0 };

	method.offered++;
	if (spokei_admission_ask(&method.admission, &asked, method.active) > 0) {
		method.refused++;
		return false;
	}
	assert_in_range(++method.active, 1, QUEUE);
	method.queue[(method.head + method.queued++) % QUEUE] = job;
	serve();
	return true;
}

/* Lets time pass, with so many requests a second. */
static void load(unsigned per_second, uint64_t ns)
{
	uint64_t until_ns = method.now_ns + ns;

	method.offered = method.refused = method.in_time = method.late = 0;
	for (; method.now_ns < until_ns; method.now_ns += GRAIN) {
		serve();
		if (roll() * (SECOND / GRAIN) < per_second * UINT64_C(1000))
			(void)offer(method.timeout_ns);
	}
}

/* --- where nothing may be refused */

TEST(idle_provider_refuses_none)
{
	method.servers = 1;
	method.service_ns = 30 * MS;
	load(8, 60 * SECOND);
	assert_in_range(method.offered, 300, 700);
	assert_int_equal(method.refused, 0);
}

TEST(busy_provider_refuses_none_while_all_are_in_time)
{
	load(900, 60 * SECOND);
	assert_int_equal(method.refused, 0);
	assert_int_equal(method.late, 0);
}

TEST(burst_onto_idle_provider_is_admitted)
{
	for (unsigned i = 0; i < 10; i++) {
		for (unsigned k = 0; k < 80; k++)
			assert_true(offer(method.timeout_ns));
		load(0, SECOND);
		assert_int_equal(method.late, 0);
	}
}

TEST(burst_onto_servers_without_end_is_admitted)
{
	method.servers = QUEUE;
	method.service_ns = 20 * MS;
	load(100, 2 * SECOND);
	assert_int_equal(method.refused, 0);
	for (unsigned k = 0; k < 500; k++)
		assert_true(offer(method.timeout_ns));
	load(100, 2 * SECOND);
	assert_int_equal(method.refused, 0);
}

/* What was measured while few requests came does not tell what many would take. */
TEST(provider_that_is_idle_between_calls_refuses_none)
{
	method.servers = QUEUE;
	method.service_ns = 60 * MS;
	for (unsigned i = 0; i < 20; i++) {
		assert_true(offer(method.timeout_ns));
		load(0, 150 * MS);
	}
	for (unsigned k = 0; k < 4; k++)
		assert_true(offer(method.timeout_ns));
}

/* Their time is not that of a queue. */
TEST(calls_that_take_long_are_admitted)
{
	method.servers = QUEUE;
	method.service_ns = 70 * MS;
	load(500, 30 * SECOND);
	assert_in_range(method.refused, 0, method.offered / 20);
}

TEST(expired_request_is_not_refused)
{
	const struct spokei_admission_asked asked = {
		.deadline_ns = method.now_ns - 1,
		.now_ns = method.now_ns,
		.begin_ns = method.now_ns,
	};

	load(5000, 2 * SECOND);
	assert_true(spokei_admission_ask(&method.admission, &asked, method.active) == 0);
}

/* --- overload */

static void assert_goodput(unsigned servers, uint64_t service_ns, uint64_t timeout_ns,
			   unsigned times)
{
	unsigned capacity = (unsigned)(servers * SECOND / service_ns);

	assert_int_equal(set_up(NULL), 0);
	method.servers = servers;
	method.service_ns = service_ns;
	method.timeout_ns = timeout_ns;
	load(capacity * times, 5 * SECOND);
	load(capacity * times, 20 * SECOND);
	assert_in_range(method.in_time, 20 * capacity * 9 / 10, 20 * capacity * 11 / 10);
}

TEST(overload_leaves_nine_tenths_of_the_capacity)
{
	for (unsigned times = 2; times <= 5; times += 3) {
		assert_goodput(1, 2 * MS, 100 * MS, times);
		assert_goodput(1, 10 * MS, 100 * MS, times);
		assert_goodput(10, 10 * MS, 100 * MS, times);
		assert_goodput(50, 5 * MS, 200 * MS, times);
		assert_goodput(10, 50 * MS, SECOND, times);
	}
}

/* The estimate is about the time that this request has left. */
TEST(request_with_more_time_left_is_admitted)
{
	unsigned patient = 0;

	load(3000, 5 * SECOND);
	for (unsigned i = 0; i < 1000; i++) {
		bool admitted = offer(method.timeout_ns);

		if (!admitted)
			patient += offer(10 * method.timeout_ns);
		load(3000, MS);
	}
	assert_in_range(patient, 100, 1000);
}

TEST(request_without_deadline_has_a_second)
{
	method.timeout_ns = NEVER;
	load(3000, 5 * SECOND);
	load(3000, 20 * SECOND);
	/* As many as are answered within the second wait. */
	assert_in_range(method.active, 400, 1300);
}

/* --- changes */

TEST(provider_refuses_none_after_the_overload)
{
	load(5000, 10 * SECOND);
	assert_in_range(method.refused, method.offered / 2, method.offered);
	load(800, SECOND);
	load(800, 10 * SECOND);
	assert_int_equal(method.refused, 0);
	assert_int_equal(method.late, 0);
}

TEST(sudden_slowness_ends_without_a_trace)
{
	load(800, 5 * SECOND);
	method.service_ns = 50 * MS;
	load(800, 2 * SECOND);
	load(800, 8 * SECOND);
	/* The capacity is 200/s. */
	assert_in_range(method.in_time, 8 * 200 * 6 / 10, 8 * 220);
	method.service_ns = 10 * MS;
	load(800, 2 * SECOND);
	load(800, 10 * SECOND);
	assert_int_equal(method.refused, 0);
	assert_int_equal(method.late, 0);
}

/* Others cause it, and fewer requests would not be faster. */
TEST(slowness_of_others_does_not_close_the_door)
{
	method.servers = QUEUE;
	method.service_ns = 20 * MS;
	load(500, 5 * SECOND);
	method.service_ns = 90 * MS;
	method.spread = 40;
	load(500, 20 * SECOND);
	/* Without a limit 64 % are in time. */
	assert_in_range(method.in_time, method.offered * 32 / 100, method.offered);
	method.service_ns = 20 * MS;
	load(500, 2 * SECOND);
	load(500, 10 * SECOND);
	assert_int_equal(method.refused, 0);
}

TEST(hopeless_slowness_ends_without_a_trace)
{
	method.servers = QUEUE;
	method.service_ns = 300 * MS;
	load(500, 20 * SECOND);
	assert_in_range(method.refused, method.offered / 2, method.offered);
	method.service_ns = 20 * MS;
	load(500, 2 * SECOND);
	load(500, 10 * SECOND);
	assert_int_equal(method.refused, 0);
}

/* --- handlers that answer at once */

static uint64_t ask_in_round(uint64_t begin_ns, uint64_t passed_ns, uint64_t settled_ns,
			     uint64_t turn, uint64_t left_ns)
{
	const struct spokei_admission_asked asked = {
		.deadline_ns = begin_ns + left_ns,
		.now_ns = begin_ns + passed_ns,
		.begin_ns = begin_ns,
		.settled_ns = settled_ns,
		.turn = turn,
	};

	return spokei_admission_ask(&method.admission, &asked, 0);
}

TEST(round_admits_what_it_begins_in_time)
{
	assert_true(ask_in_round(SECOND, 0, 0, 1, 50 * MS) == 0);
	assert_true(ask_in_round(SECOND, 20 * MS, 0, 1, 60 * MS) == 0);
	/* Handlers take 20 ms each, and a quarter of the time is for the rest of the round. */
	assert_true(ask_in_round(SECOND, 40 * MS, 0, 1, 80 * MS) > 0);
	assert_true(ask_in_round(SECOND, 40 * MS, 0, 1, 81 * MS) == 0);
}

TEST(request_may_have_come_during_the_round_before)
{
	assert_true(ask_in_round(SECOND, 0, 0, 1, 50 * MS) == 0);
	assert_true(ask_in_round(SECOND + 40 * MS, 0, SECOND + 40 * MS, 2, 60 * MS) == 0);
	assert_true(ask_in_round(SECOND + 80 * MS, 0, SECOND + 80 * MS, 3, 50 * MS) > 0);
}

TEST(request_after_a_sleep_has_not_waited)
{
	assert_true(ask_in_round(SECOND, 0, 0, 1, 50 * MS) == 0);
	assert_true(ask_in_round(SECOND + 90 * MS, 0, SECOND + 40 * MS, 2, 20 * MS) == 0);
	assert_true(ask_in_round(SECOND + 91 * MS, 0, SECOND + 90 * MS, 5, 20 * MS) == 0);
}
