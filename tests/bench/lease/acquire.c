/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long a lease takes that no other client wants, next to a bare PING, and to the same
 * script of a bare client: all in turns, one at a time, from callbacks of the engine.
 */
#include "lease.h"

#include "cluster/lease/script.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

void measure_acquire(struct bench *bench)
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
