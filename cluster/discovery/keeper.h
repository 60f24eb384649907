/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps true at a registry what a consumer or a provider wants there: what is published, and what
 * is subscribed to. What fails is tried again on the engine's wheel, after `retry_ns`, 20 % more or
 * less; what was lost is said anew at once. Of two wishes about the same thing the newer one
 * counts. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_KEEPER_H
#define SPOKEI_CLUSTER_DISCOVERY_KEEPER_H

#include <spoke/base.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOKEI_KEEPER_RETRY_NS UINT64_C(5000000000)

struct spoke_engine;
struct spoke_registry;
struct spoke_url;
struct spokei_keeper;

struct spokei_keeper_options {
	const char *registry;              /* a URL */
	const struct spoke_registry *kind; /* NULL: by its scheme */
	uint64_t retry_ns;                 /* from 10 ms to a day; 0: as above */
	uint32_t retries_max;              /* in a row; 0: no limit */
	const char *cache;                 /* file of the providers last heard of; NULL: none */
	bool takes_empty;                  /* an empty list counts like any other */
};

struct spokei_keeper_up {
	/* All providers of the service that was subscribed to. Borrowed. Never from inside a
	 * function of the keeper. May free the keeper. Returns 0; or ENOMEM, to be told again after
	 * a pause. */
	int (*list)(void *arg, const struct spoke_url *urls, size_t count);
};

/*
 * The options are copied. `up` may be NULL of who only publishes. Returns 0; ENOMEM; ELIMIT (no
 * timer left in the wheel: it holds one for its life, so that it can always try again); or another
 * error, of which the engine's newest event has a sentence.
 */
SPOKE_MUST_USE int spokei_keeper_new(struct spoke_engine *engine,
				     const struct spokei_keeper_options *options,
				     const struct spokei_keeper_up *up, void *up_arg,
				     struct spokei_keeper **ret_keeper);

/* From now on a provider of the service is listed at the registry, as soon as that can be; of one
 * place and service there is one: the newest. Returns 0, SPOKE_ENOMEM, SPOKE_ELIMIT (1,024 are
 * enough), SPOKE_ECLOSED (it has ended) or what spoke_url_parse() says. */
SPOKE_MUST_USE int spokei_keeper_publish(struct spokei_keeper *keeper, const char *service,
					 const char *url);

/* From now on nothing is: all is withdrawn, as soon as that can be. */
void spokei_keeper_withdraw_all(struct spokei_keeper *keeper);

/* Asks who provides a service; one per keeper. A list that was kept is told first. Returns 0,
 * SPOKE_ENOMEM or SPOKE_ECLOSED (it has ended). */
SPOKE_MUST_USE int spokei_keeper_subscribe(struct spokei_keeper *keeper, const char *service);

/*
 * Tells nothing any more. What is published is withdrawn first: it goes on doing that by itself,
 * at most for 3 s and not after its engine, and is gone then. It stays on the engine's roll
 * meanwhile, so that a drain waits for it; one that its owner has not freed has to be freed when
 * its owner drains. NULL is fine.
 */
void spokei_keeper_free(struct spokei_keeper *keeper);

/* How many things are wanted, and how many of them are true now. */
void spokei_keeper_count(const struct spokei_keeper *keeper, size_t *ret_wanted, size_t *ret_true);

#endif
