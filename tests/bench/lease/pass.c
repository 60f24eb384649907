/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long a lease takes from one process to another: after a release, and after the
 * holder was killed.
 */
#include "lease.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TOOK_MS 4u /* a holder keeps the lease, so that the other process surely waits */
#define REST_MS 2u /* before a process asks again, so that the other one gets the lease */
#define KILLS_MAX 16u
#define TTL_NS (500 * MS)

/* --- handed over */

/* Of both processes: memory that they share. */
struct shared {
	_Atomic uint64_t released_ns; /* when the last holder released the lease; 0: not yet */
	_Atomic unsigned handed_over;
	struct samples samples;
};

struct relay {
	const struct bench *bench;
	struct shared *shared;
	unsigned rounds;
};

struct runner {
	struct relay *relay;
	struct client client;
	struct spoke_lease lease;
	struct spoke_alarm alarm;
	uint64_t asked_ns;
};

static void ask(struct runner *runner);

static void rested(struct spoke_alarm *alarm)
{
	ask(spoke_container_of(alarm, struct runner, alarm));
}

static void held_enough(struct spoke_alarm *alarm)
{
	struct runner *runner = spoke_container_of(alarm, struct runner, alarm);

	atomic_store(&runner->relay->shared->released_ns, now_ns());
	must("release", spoke_lease_release(runner->lease, NULL, NULL));
	must("alarm", spoke_alarm_after(runner->client.engine, alarm, REST_MS * MS, rested));
}

static void passed_on(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct runner *runner = arg;
	struct shared *shared = runner->relay->shared;
	uint64_t told_ns = now_ns();
	uint64_t released_ns = atomic_exchange(&shared->released_ns, 0);

	must("lease", answer->error);
	runner->lease = lease;
	if (released_ns > runner->asked_ns + MS) {
		samples_add(&shared->samples, told_ns - released_ns);
		atomic_fetch_add(&shared->handed_over, 1);
	}
	must("alarm",
	     spoke_alarm_after(runner->client.engine, &runner->alarm, TOOK_MS * MS, held_enough));
}

static void ask(struct runner *runner)
{
	const struct spoke_lease_options options = { .wait_ns = SPOKE_LEASE_FOREVER,
						     .arg = runner };

	runner->asked_ns = now_ns();
	must("ask",
	     spoke_lease_ask(runner->client.leases, "bench:handover", &options, passed_on, NULL));
}

static void play_runner(void *arg, int in, int out)
{
	static struct runner runner;

	(void)in;
	runner.relay = arg;
	client_make(&runner.client, runner.relay->bench, NULL, 0);
	ask(&runner);
	while (atomic_load(&runner.relay->shared->handed_over) < runner.relay->rounds)
		must("turn", spoke_engine_turn(runner.client.engine, true));
	write_all(out, "e", 1);
	must("run", spoke_engine_run(runner.client.engine));
}

void measure_handover(struct bench *bench)
{
	struct relay relay = { .bench = bench, .rounds = bench->is_quick ? 200 : 1500 };
	struct helper helpers[2];
	char end;

	relay.shared = mmap(NULL, sizeof(*relay.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (relay.shared == MAP_FAILED)
		die("no shared memory");
	for (unsigned i = 0; i < 2; i++)
		helper_start(&helpers[i], play_runner, &relay);
	helper_hear(&helpers[0], NULL, &end, 1);
	for (unsigned i = 0; i < 2; i++)
		helper_end(&helpers[i]);
	lease_report("handed_over_p50",
		     (double)samples_percentile(&relay.shared->samples, 500000) / 1e3, "us", 1000,
		     300);
	lease_report("handed_over_p99",
		     (double)samples_percentile(&relay.shared->samples, 990000) / 1e3, "us", 5000,
		     1000);
	(void)munmap(relay.shared, sizeof(*relay.shared));
}

/* --- taken over */

static void hold_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	(void)lease;
	must("lease", answer->error);
	write_all(*(int *)arg, "h", 1);
}

/* Waits for a byte, and holds the lease until it is killed. */
static void play_holder(void *arg, int in, int out)
{
	const struct spoke_lease_options options = { .wait_ns = SPOKE_LEASE_FOREVER, .arg = &out };
	struct client client;
	char begin;

	read_all(in, &begin, 1);
	client_make(&client, arg, NULL, TTL_NS);
	must("ask", spoke_lease_ask(client.leases, "bench:takeover", &options, hold_told, NULL));
	must("run", spoke_engine_run(client.engine));
}

struct heir {
	struct spoke_lease lease;
	uint64_t told_ns;
	bool told;
};

static void inherited(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct heir *heir = arg;

	must("lease", answer->error);
	heir->told_ns = now_ns();
	heir->lease = lease;
	heir->told = true;
}

static void gone(void *arg, int error)
{
	must("release", error);
	*(bool *)arg = true;
}

/* Returns when the server ends the lock, with its resolution of 1 ms. */
static uint64_t end_of_lock(struct bench *bench)
{
	const char *left = redisclient_ask(&bench->client, REDIS_WORDS("PTTL", "bench:takeover"));
	uint64_t now = now_ns();

	if (left[0] == '-')
		die("the lock has ended before its holder was killed");
	return now + strtoull(left, NULL, 10) * MS;
}

/* Kills the holder after `phase_ns`. */
static void take_over(struct bench *bench, struct client *client, struct helper *helper,
		      uint64_t phase_ns, struct samples *after_end, struct samples *after_kill)
{
	struct heir heir = { 0 };
	const struct spoke_lease_options options = { .wait_ns = SPOKE_LEASE_FOREVER, .arg = &heir };
	bool is_gone = false;
	uint64_t killed_ns;
	uint64_t end_ns;
	char byte = 'g';

	helper_tell(helper, &byte, 1);
	helper_hear(helper, client->engine, &byte, 1);
	must("ask", spoke_lease_ask(client->leases, "bench:takeover", &options, inherited, NULL));
	client_run_until(client, now_ns() + phase_ns);
	killed_ns = now_ns();
	helper_end(helper);
	end_ns = end_of_lock(bench);
	client_run(client, &heir.told);
	samples_add(after_end, heir.told_ns > end_ns ? heir.told_ns - end_ns : 0);
	samples_add(after_kill, heir.told_ns - killed_ns);
	must("release", spoke_lease_release(heir.lease, gone, &is_gone));
	client_run(client, &is_gone);
}

void measure_takeover(struct bench *bench)
{
	static struct samples after_end;
	static struct samples after_kill;
	struct helper helpers[KILLS_MAX];
	unsigned kills = bench->is_quick ? 4 : 12;
	struct client client;

	for (unsigned i = 0; i < kills; i++)
		helper_start(&helpers[i], play_holder, bench);
	client_make(&client, bench, NULL, 0);
	for (unsigned i = 0; i < kills; i++)
		take_over(bench, &client, &helpers[i],
			  TTL_NS / 3 + (2 * i + 1) * TTL_NS / (2 * kills), &after_end, &after_kill);
	client_unmake(&client);
	lease_report("taken_over_after_ttl_p50",
		     (double)samples_percentile(&after_end, 500000) / 1e6, "ms", 100, 10);
	lease_report("taken_over_after_ttl_max",
		     (double)samples_percentile(&after_end, 1000000) / 1e6, "ms", 100, 10);
	lease_report("taken_over_after_kill_max",
		     (double)samples_percentile(&after_kill, 1000000) / 1e6, "ms",
		     (double)TTL_NS / 1e6 + 100, (double)TTL_NS / 1e6 + 10);
}
