/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases at a Redis server at a unix socket, next to its bare PING: acquired, handed over,
 * taken over from a killed process, and 10,000 held.
 */
#include "cluster/lease/script.h"
#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"
#include "tests/integration/redisclient.h"
#include "tests/integration/redisserver.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/lease.h>
#include <spoke/stats.h>

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * --- the benchmark of leases against a Redis server of its own, at a unix socket. Every figure
 * is one row on stdout
 */

/* What all measurements share. */
struct bench {
	bool is_quick;
	struct redisserver server;
	struct redisclient client; /* bare */
	char url[128];             /* of the store */
};

/* --- samples, in ns */

#define SAMPLES_MAX 32768u

struct samples {
	uint64_t ns[SAMPLES_MAX];
	uint32_t count; /* more are dropped */
};

/* --- a client of leases */

struct client {
	struct spoke_engine *engine;
	struct spoke_leases *leases;
};

static void samples_add(struct samples *samples, uint64_t ns);

/* Returns the value that `ppm` millionths of the samples do not exceed. Sorts them. */
static uint64_t samples_percentile(struct samples *samples, uint32_t ppm);

/* Prints a row: figure, value, unit, first bar, goal; larger values miss them. 0: none. */
static void lease_report(const char *figure, double value, const char *unit, double bar,
			 double goal);

/* Makes an engine and leases at the store; ttl_ns 0: the default. Ends the program on an error. */
static void client_make(struct client *client, const struct bench *bench,
			const struct spoke_env *env, uint64_t ttl_ns);

static void client_unmake(struct client *client);

/* Runs the engine until *flag is true, or until a time. */
static void client_run(struct client *client, const bool *flag);

static void client_run_until(struct client *client, uint64_t end_ns);

/*
 * --- measures how long a lease takes that no other client wants, next to a bare PING, and to
 * the same script of a bare client: all in turns, one at a time, from callbacks of the engine
 */

#define WARM_UP 200u
/* The times of a round. */
struct contest {
	struct bench *bench;
	struct client client;
	struct samples ping;
	struct samples script;
	struct samples acquire;
	struct samples release;
	char sha1[64]; /* of the script, by which the server knows it */
	uint64_t begun_ns;
	unsigned round;
	unsigned rounds;
	bool done;
};

static void next_round(struct contest *contest);

/* Like an event loop with one connection: write, wait, read. Returns how long the answer took. */
static uint64_t bare(int fd, const char *request, const char *wanted)
{
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	char reply[64];
	ssize_t len;
	uint64_t begun_ns = now_ns();

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request) ||
	    poll(&answer, 1, -1) != 1)
		die("the server does not answer");
	len = read(fd, reply, sizeof(reply));
	begun_ns = now_ns() - begun_ns;
	if (len < (ssize_t)strlen(wanted) || memcmp(reply, wanted, strlen(wanted)) != 0)
		die("another answer than %s", wanted);
	return begun_ns;
}

static uint64_t ping(const struct contest *contest)
{
	return bare(contest->bench->client.fd, "*1\r\n$4\r\nPING\r\n", "+PONG\r\n");
}

/* Acquires another lock with the script of leases. */
static uint64_t script(const struct contest *contest)
{
	int fd = contest->bench->client.fd;
	char request[512];
	uint64_t took_ns;

	(void)snprintf(request, sizeof(request),
		       "*7\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$12\r\nbench:bare:a\r\n"
		       "$34\r\nredisson_lock_token:{bench:bare:a}\r\n$5\r\n30000\r\n$38\r\n"
		       "285475da-9152-4c83-822a-67ee2f116a79:1\r\n",
		       contest->sha1);
	took_ns = bare(fd, request, "*2\r\n:0\r\n");
	(void)bare(fd, "*2\r\n$3\r\nDEL\r\n$12\r\nbench:bare:a\r\n", ":1\r\n");
	return took_ns;
}

static void released(void *arg, int error)
{
	struct contest *contest = arg;

	must("release", error);
	if (contest->round > WARM_UP)
		samples_add(&contest->release, now_ns() - contest->begun_ns);
	next_round(contest);
}

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct contest *contest = arg;

	must("lease", answer->error);
	if (contest->round > WARM_UP)
		samples_add(&contest->acquire, now_ns() - contest->begun_ns);
	contest->begun_ns = now_ns();
	must("release", spoke_lease_release(lease, released, contest));
}

static void next_round(struct contest *contest)
{
	const struct spoke_lease_options options = { .arg = contest };
	uint64_t ping_ns = ping(contest);
	uint64_t script_ns = script(contest);

	if (contest->round >= contest->rounds) {
		contest->done = true;
		return;
	}
	if (contest->round++ > WARM_UP) {
		samples_add(&contest->ping, ping_ns);
		samples_add(&contest->script, script_ns);
	}
	contest->begun_ns = now_ns();
	must("ask", spoke_lease_ask(contest->client.leases, "bench:acquire", &options, told, NULL));
}

static void report_both(const char *name, struct samples *samples, double p50_bar, double p50_goal,
			double p99_bar, double p99_goal)
{
	char figure[64];

	(void)snprintf(figure, sizeof(figure), "%s_p50", name);
	lease_report(figure, (double)samples_percentile(samples, 500000) / 1e3, "us", p50_bar,
		     p50_goal);
	(void)snprintf(figure, sizeof(figure), "%s_p99", name);
	lease_report(figure, (double)samples_percentile(samples, 990000) / 1e3, "us", p99_bar,
		     p99_goal);
}

static void measure_acquire(struct bench *bench)
{
	static struct contest contest;

	contest.bench = bench;
	contest.rounds = WARM_UP + (bench->is_quick ? 2000 : 20000);
	client_make(&contest.client, bench, NULL, 0);
	(void)snprintf(contest.sha1, sizeof(contest.sha1), "%s",
		       redisclient_ask(&bench->client,
				       REDIS_WORDS("SCRIPT", "LOAD",
						   spokei_script_text(SPOKEI_SCRIPT_ACQUIRE))));
	next_round(&contest);
	client_run(&contest.client, &contest.done);
	client_unmake(&contest.client);
	report_both("ping", &contest.ping, 0, 0, 0, 0);
	report_both("bare_script", &contest.script, 0, 0, 0, 0);
	report_both("acquire", &contest.acquire, 0, 0, 1000, 300);
	lease_report("acquire_p50_per_ping_p50",
		     (double)samples_percentile(&contest.acquire, 500000) /
			     (double)samples_percentile(&contest.ping, 500000),
		     "x", 3, 2);
	report_both("release", &contest.release, 0, 0, 0, 0);
}

/*
 * --- measures what many held leases cost: bytes, CPU time of the engine, commands to the store
 */

#define LEASES 10000u

struct crowd {
	struct client client;
	unsigned held;
	unsigned lost;
	bool all;
};

static void held_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct crowd *crowd = arg;

	(void)lease;
	must("lease", answer->error);
	crowd->all = ++crowd->held == LEASES;
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	struct crowd *crowd = arg;

	(void)lease;
	(void)why;
	crowd->lost++;
}

/* --- an environment that counts memory */

static int64_t bytes;

static void *resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	void *grown = spoke_host_env()->resize(ctx, memory, old_len, len);

	if (grown || len == 0)
		bytes += (int64_t)len - (memory ? (int64_t)old_len : 0);
	return grown;
}

/* --- commands that the server has counted */

/* Returns the calls of a command, of a line "cmdstat_<name>:calls=<n>,...". */
static uint64_t calls_of(const char *info, const char *name)
{
	char wanted[64];
	const char *at;

	(void)snprintf(wanted, sizeof(wanted), "cmdstat_%s:calls=", name);
	at = strstr(info, wanted);
	return at ? strtoull(at + strlen(wanted), NULL, 10) : 0;
}

static uint64_t scripts(struct bench *bench)
{
	const char *info = redisclient_ask(&bench->client, REDIS_WORDS("INFO", "commandstats"));

	return calls_of(info, "evalsha") + calls_of(info, "eval");
}

/* --- the measurement */

static void hold(struct crowd *crowd)
{
	const struct spoke_lease_options options = { .lost = lost, .arg = crowd };
	int64_t before = bytes;
	char name[32];

	for (unsigned i = 0; i < LEASES; i++) {
		(void)snprintf(name, sizeof(name), "bench:held:%u", i);
		must("ask", spoke_lease_ask(crowd->client.leases, name, &options, held_told, NULL));
	}
	client_run(&crowd->client, &crowd->all);
	/* Buffers and other memory of the acquires are given back with time. */
	client_run_until(&crowd->client, now_ns() + SECOND);
	lease_report("held_lease", (double)(bytes - before) / LEASES, "bytes", 384, 192);
}

static void measure_held(struct bench *bench)
{
	struct spoke_env env = *spoke_host_env();
	static struct crowd crowd;
	struct spoke_engine *engine;
	uint64_t begun_ns;
	uint64_t commands;
	uint64_t sent;
	uint64_t used_ns;
	double seconds;

	env.resize = resize;
	client_make(&crowd.client, bench, &env, 0);
	engine = crowd.client.engine;
	hold(&crowd);
	begun_ns = now_ns();
	used_ns = cpu_ns();
	commands = spoke_stat_get(engine, SPOKE_STAT_LEASE_COMMANDS);
	sent = scripts(bench);
	/* Intervals of renewals: a third of the default time to live. */
	client_run_until(&crowd.client, begun_ns + (bench->is_quick ? 10 : 30) * SECOND);
	used_ns = cpu_ns() - used_ns;
	commands = spoke_stat_get(engine, SPOKE_STAT_LEASE_COMMANDS) - commands;
	sent = scripts(bench) - sent;
	seconds = (double)(now_ns() - begun_ns) / (double)SECOND;
	lease_report("held_10000_cpu", (double)used_ns / (double)SECOND / seconds * 100,
		     "% of a core", 1, 0.2);
	lease_report("held_10000_commands", (double)commands / seconds, "1/s", 20, 10);
	lease_report("held_10000_scripts_at_the_server", (double)sent / seconds, "1/s", 0, 0);
	if (crowd.lost)
		die("%u leases were lost", crowd.lost);
	if (spoke_stat_get(engine, SPOKE_STAT_LEASE_RENEWALS) < LEASES)
		die("only %" PRIu64 " renewals", spoke_stat_get(engine, SPOKE_STAT_LEASE_RENEWALS));
	client_unmake(&crowd.client);
}

/*
 * --- measures how long after the end of its validity a holder learns that its lease is lost:
 * the server is frozen, so that no renewal is answered
 */

#define LOST_COUNT 100u
#define TTL_NS (600 * MS)
#define APART_NS (3 * MS)
#define SETTLE_NS (2 * MS) /* for answers that were under way when the server froze */

struct holder {
	struct group *group;
	struct spoke_lease lease;
	uint64_t end_ns; /* of its validity; 0: not frozen yet */
};

struct group {
	struct client client;
	struct holder holders[LOST_COUNT];
	struct samples late;
	unsigned asked;
	unsigned held;
	unsigned lost;
	bool all_held;
	bool all_lost;
};

static void lost_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct holder *holder = arg;

	must("lease", answer->error);
	holder->lease = lease;
	holder->group->all_held = ++holder->group->held == LOST_COUNT;
}

static void lost_held(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	const struct holder *holder = arg;
	struct group *group = holder->group;
	uint64_t now = now_ns();

	(void)lease;
	if (why != SPOKE_LEASE_EXPIRED || holder->end_ns == 0)
		die("a lease was lost before the server was frozen");
	if (now < holder->end_ns)
		die("a lease was lost before its validity ended");
	samples_add(&group->late, now - holder->end_ns);
	group->all_lost = ++group->lost == LOST_COUNT;
}

static void measure_lost(struct bench *bench)
{
	static struct group group;

	client_make(&group.client, bench, NULL, TTL_NS);
	for (unsigned i = 0; i < LOST_COUNT; i++) {
		struct holder *holder = &group.holders[i];
		const struct spoke_lease_options options = { .fixed = i % 2 == 0,
							     .lost = lost_held,
							     .arg = holder };
		char name[32];

		holder->group = &group;
		(void)snprintf(name, sizeof(name), "bench:lost:%u", i);
		must("ask", spoke_lease_ask(group.client.leases, name, &options, lost_told, NULL));
		client_run_until(&group.client, now_ns() + APART_NS);
	}
	client_run(&group.client, &group.all_held);
	redisserver_freeze(&bench->server);
	client_run_until(&group.client, now_ns() + SETTLE_NS);
	for (unsigned i = 0; i < LOST_COUNT; i++)
		group.holders[i].end_ns = now_ns() + spoke_lease_left(group.holders[i].lease);
	client_run(&group.client, &group.all_lost);
	redisserver_thaw(&bench->server);
	client_unmake(&group.client);
	/* The wheel ends a lease at the next tick, and the process has to be woken for it. */
	lease_report("lost_after_end_p50", (double)samples_percentile(&group.late, 500000) / 1e6,
		     "ms", 2, 1.1);
	lease_report("lost_after_end_p90", (double)samples_percentile(&group.late, 900000) / 1e6,
		     "ms", 2, 1.1);
	lease_report("lost_after_end_max", (double)samples_percentile(&group.late, 1000000) / 1e6,
		     "ms", 0, 0);
}

/*
 * --- measures how long a lease takes from one process to another: after a release, and after
 * the holder was killed
 */

#define TOOK_MS 4u /* a holder keeps the lease, so that the other process surely waits */
#define REST_MS 2u /* before a process asks again, so that the other one gets the lease */
#define KILLS_MAX 16u
#define PASS_TTL_NS (500 * MS)
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

/* Both begin with processes of their own, so they are called before any engine is made. */
static void measure_handover(struct bench *bench)
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
	client_make(&client, arg, NULL, PASS_TTL_NS);
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

static void measure_takeover(struct bench *bench)
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
			  PASS_TTL_NS / 3 + (2 * i + 1) * PASS_TTL_NS / (2 * kills), &after_end,
			  &after_kill);
	client_unmake(&client);
	lease_report("taken_over_after_ttl_p50",
		     (double)samples_percentile(&after_end, 500000) / 1e6, "ms", 100, 10);
	lease_report("taken_over_after_ttl_max",
		     (double)samples_percentile(&after_end, 1000000) / 1e6, "ms", 100, 10);
	lease_report("taken_over_after_kill_max",
		     (double)samples_percentile(&after_kill, 1000000) / 1e6, "ms",
		     (double)PASS_TTL_NS / 1e6 + 100, (double)PASS_TTL_NS / 1e6 + 10);
}

/* --- runs all measurements of leases; fails if a first bar was missed */

#define SKIPPED 77
/* --- samples */

static void samples_add(struct samples *samples, uint64_t ns)
{
	if (samples->count < SAMPLES_MAX)
		samples->ns[samples->count++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t samples_percentile(struct samples *samples, uint32_t ppm)
{
	if (samples->count == 0)
		die("nothing was measured");
	qsort(samples->ns, samples->count, sizeof(samples->ns[0]), compare);
	return samples->ns[(uint64_t)(samples->count - 1) * ppm / 1000000];
}

/* --- rows */

static bool missed;

static void print_target(double target, const char *end)
{
	if (target > 0)
		printf("<= %g%s", target, end);
	else
		printf("-%s", end);
}

static void look(const char *figure, double value, const char *unit, const char *what,
		 double target)
{
	if (target > 0 && value > target)
		(void)fprintf(stderr, "missed: %s is %.3f %s, %s %g\n", figure, value, unit, what,
			      target);
}

static void lease_report(const char *figure, double value, const char *unit, double bar,
			 double goal)
{
	static bool begun;

	if (!begun)
		printf("figure\tvalue\tunit\tfirst bar\tgoal\n");
	begun = true;
	printf("%s\t%.*f\t%s\t", figure, value < 100 ? 3 : 0, value, unit);
	print_target(bar, "\t");
	print_target(goal, "\n");
	(void)fflush(stdout);
	missed |= bar > 0 && value > bar;
	if (bar > 0 && value > bar)
		look(figure, value, unit, "first bar", bar);
	else
		look(figure, value, unit, "goal", goal);
}

/* Returns whether all first bars were reached. */
static bool lease_report_is_good(void)
{
	return !missed;
}

/* --- a client of leases */

static void client_make(struct client *client, const struct bench *bench,
			const struct spoke_env *env, uint64_t ttl_ns)
{
	const struct spoke_engine_options options = { .env = env };
	const struct spoke_leases_options leases = { .store = bench->url, .ttl_ns = ttl_ns };
	struct spoke_leases_look look_at = { 0 };

	must("engine", spoke_engine_new(&options, &client->engine));
	must("leases", spoke_leases_new(client->engine, &leases, &client->leases));
	while (!look_at.connected) {
		must("turn", spoke_engine_turn(client->engine, true));
		spoke_leases_look(client->leases, &look_at);
	}
}

static void client_unmake(struct client *client)
{
	spoke_engine_free(client->engine);
}

static void client_run(struct client *client, const bool *flag)
{
	while (!*flag)
		must("turn", spoke_engine_turn(client->engine, true));
}

static void over(struct spoke_alarm *alarm)
{
	(void)alarm;
}

static void client_run_until(struct client *client, uint64_t end_ns)
{
	struct spoke_alarm alarm = { 0 };
	uint64_t begun_ns = now_ns();

	if (begun_ns >= end_ns)
		return;
	must("alarm", spoke_alarm_after(client->engine, &alarm, end_ns - begun_ns, over));
	while (now_ns() < end_ns)
		must("turn", spoke_engine_turn(client->engine, true));
	(void)spoke_alarm_cancel(&alarm);
}

/* --- all */

/* Puts a process on a core, if there are at least two: the server on one, the clients on the
 * other. */
static void put(pid_t pid, unsigned core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		(void)sched_setaffinity(pid, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	const struct option_row quick = { "--quick", .flag = &bench.is_quick };

	options_read(argc, argv, &quick, 1, "[--quick]");
	if (redisserver_absent()) {
		(void)fprintf(stderr, "skipped: leases need Redis, which is not installed "
				      "(Debian's package redis-tools)\n");
		return SKIPPED;
	}
	redisserver_make(&bench.server, 0, "");
	put(bench.server.pid, 0);
	put(0, 1);
	redisclient_open(&bench.client, bench.server.path);
	(void)snprintf(bench.url, sizeof(bench.url), "redis+unix://%s", bench.server.path);
	measure_handover(&bench);
	measure_takeover(&bench);
	measure_acquire(&bench);
	measure_held(&bench);
	measure_lost(&bench);
	redisclient_close(&bench.client);
	redisserver_unmake(&bench.server);
	return !lease_report_is_good();
}
