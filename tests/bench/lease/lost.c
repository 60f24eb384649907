/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long after the end of its validity a holder learns that its lease is lost: the
 * server is frozen, so that no renewal is answered. */
#include "lease.h"

#include <stdio.h>

#define LEASES 100u
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
	struct holder holders[LEASES];
	struct samples late;
	unsigned asked;
	unsigned held;
	unsigned lost;
	bool all_held;
	bool all_lost;
};

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct holder *holder = arg;

	must("lease", answer->error);
	holder->lease = lease;
	holder->group->all_held = ++holder->group->held == LEASES;
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
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
	group->all_lost = ++group->lost == LEASES;
}

void measure_lost(struct bench *bench)
{
	static struct group group;

	client_make(&group.client, bench, NULL, TTL_NS);
	for (unsigned i = 0; i < LEASES; i++) {
		struct holder *holder = &group.holders[i];
		const struct spoke_lease_options options = { .fixed = i % 2 == 0,
							     .lost = lost,
							     .arg = holder };
		char name[32];

		holder->group = &group;
		(void)snprintf(name, sizeof(name), "bench:lost:%u", i);
		must("ask", spoke_lease_ask(group.client.leases, name, &options, told, NULL));
		client_run_until(&group.client, now_ns() + APART_NS);
	}
	client_run(&group.client, &group.all_held);
	redisserver_freeze(&bench->server);
	client_run_until(&group.client, now_ns() + SETTLE_NS);
	for (unsigned i = 0; i < LEASES; i++)
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
