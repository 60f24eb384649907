/* SPDX-License-Identifier: Apache-2.0 */
/* The acts of the demo. */
#ifndef DEMO_ACTS_H
#define DEMO_ACTS_H

#include "examples/demo/cast.h"
#include "examples/demo/plan.h"

#include <stdbool.h>

#define ACTS_WORKERS 2

/* The processes of the demo. */
struct stage {
	const struct plan *plan;
	const char *registry; /* its URL */
	const char *folder;   /* for files */
	struct actor *providers[PLAN_PROVIDERS_MAX];
	struct actor *consumer;  /* of the first service */
	struct actor *consumer2; /* of the second */
	struct actor *guest;     /* a consumer that is no program of spoke; NULL: none */
	struct actor *store;     /* Redis, for leases; NULL: not installed */
	struct actor *workers[ACTS_WORKERS]; /* that want the same lease; NULL: without a store */
	char store_url[CAST_TEXT];
	unsigned acts; /* that have begun */
};

#define ACTS_ECHO "demo.EchoService"
#define ACTS_ORDERS "demo.OrderService"

/* Plays all acts. Returns false on a failure, which cast.trouble describes. */
bool acts_play(struct stage *stage);

/* Plays the story with Node peers, likewise. */
bool acts_play_dubbo(struct stage *stage);

/* Play the acts of repeated orders, which cast their own processes: after a lost answer, and after
 * a kill of the buyer. */
bool acts_play_repeat(struct stage *stage);
bool acts_play_journal(struct stage *stage);

/* Plays the act of the lease, or prints that it is left out. */
bool acts_play_lease(struct stage *stage);

/* Ends the workers and the store, if there are any. */
bool acts_end_lease(struct stage *stage);

/* Prints the headline of the next act. */
__attribute__((format(printf, 2, 3))) void acts_head(struct stage *stage, const char *format, ...);

/* Begin to play: add a provider that remembers requests for some time (0: it does not), one by its
 * number from 0 on, and a consumer. */
struct actor *acts_cast_server(const struct stage *stage, const char *name, const char *service,
			       uint64_t dedupe_ns);
void acts_cast_provider(struct stage *stage, unsigned number, const char *service);
struct actor *acts_cast_consumer(struct stage *stage, const char *name, const char *service,
				 uint64_t rate, uint64_t tasks);

/* Acts of both stories, with the second provider and the second consumer. */
bool acts_play_silence(struct stage *stage);
bool acts_play_kill(struct stage *stage);

/* Keeps the cluster running until `end_ns` or an interrupt, while visitors of the pages inject
 * faults. */
bool acts_live(struct stage *stage, uint64_t end_ns);

/* Ends all processes, consumers first. */
bool acts_end(struct stage *stage);

#endif
