/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps publications and subscriptions at a registry up to date. Failed requests are retried
 * after `retry_ns` with 20 % jitter, lost entries are repeated at once. Of two publications of the
 * same provider the newer one wins. On the engine's thread.
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
struct spokei_buffer;
struct spokei_keeper;
struct spokei_route_rule;
struct spokei_url_list;

/* The ways in which providers are published, as in Dubbo 3: by their services, by the instances of
 * applications at their addresses, or both. Registries without instances have the first one only,
 * and so have providers at unix sockets. */
enum spokei_keeper_mode {
	SPOKEI_KEEPER_ALL,
	SPOKEI_KEEPER_INTERFACE,
	SPOKEI_KEEPER_INSTANCE,
};

struct spokei_keeper_options {
	const char *registry;              /* its URL */
	const struct spoke_registry *kind; /* NULL: chosen by the URL's scheme */
	uint64_t retry_ns;                 /* from 10 ms to a day; 0: SPOKEI_KEEPER_RETRY_NS */
	uint32_t retries_max;              /* consecutive; 0: no limit */
	const char *cache;                 /* cache file; NULL: none */
	uint8_t mode;                      /* enum spokei_keeper_mode */
};

struct spokei_keeper_up {
	/* Receives all providers of the service: `count` texts, each with its NUL. May exchange
	 * their memory for other. Never called from inside a function of the keeper. May free the
	 * keeper. Returns 0, or ENOMEM to get the list again after a pause. */
	int (*list)(void *arg, struct spokei_buffer *texts, size_t count);
	/* Receives all URLs of another category, like list(), or those of a rule: see override.h.
	 * May take them out of the list. NULL without such a subscription. */
	void (*rules)(void *arg, const char *service, const char *category,
		      struct spokei_url_list *list);
	/* Receives a rule that is no configurator; *rule is NULL if there is none any more. May
	 * take it by setting NULL. NULL without such a subscription. */
	void (*route)(void *arg, const char *key, const char *category,
		      struct spokei_route_rule **rule);
};

/*
 * Copies the options. `up` may be NULL without a subscription. Returns 0; ENOMEM; ELIMIT if the
 * wheel has no timer left, because the keeper holds one for its life; or another error, which the
 * engine's newest event explains.
 */
SPOKE_MUST_USE int spokei_keeper_new(struct spoke_engine *engine,
				     const struct spokei_keeper_options *options,
				     const struct spokei_keeper_up *up, void *up_arg,
				     struct spokei_keeper **ret_keeper);

/* Publishes a provider or a consumer as soon as possible. The newest URL per address and service
 * wins. Returns 0, SPOKE_ENOMEM, SPOKE_ELIMIT (at most 1,024), SPOKE_ECLOSED or an error of
 * spoke_url_parse(). */
SPOKE_MUST_USE int spokei_keeper_publish(struct spokei_keeper *keeper, const char *service,
					 const char *url);

/* Withdraws the publication of a URL's address and service, if there is one, as soon as possible.
 * Returns 0, SPOKE_ENOMEM, SPOKE_ECLOSED or an error of spoke_url_parse(). */
SPOKE_MUST_USE int spokei_keeper_withdraw(struct spokei_keeper *keeper, const char *service,
					  const char *url);

/* Withdraws all publications as soon as possible. */
void spokei_keeper_withdraw_all(struct spokei_keeper *keeper);

/* Subscribes, once, to a category of a service, or to a rule with this key. The cached list of
 * SPOKE_REGISTRY_PROVIDERS, of which there is one per keeper, is passed on first. Returns 0,
 * SPOKE_ENOMEM, SPOKE_ELIMIT or SPOKE_ECLOSED. */
SPOKE_MUST_USE int spokei_keeper_subscribe(struct spokei_keeper *keeper, const char *service,
					   const char *category);

/* Ends a subscription, if there is one. */
void spokei_keeper_unsubscribe(struct spokei_keeper *keeper, const char *service,
			       const char *category);

/* Returns whether the registry has other categories than the providers, or instances. */
bool spokei_keeper_has_categories(const struct spokei_keeper *keeper);
bool spokei_keeper_has_instances(const struct spokei_keeper *keeper);

/*
 * Ends all callbacks, withdraws all publications and then frees the keeper, after at most 3 s and
 * before its engine. Until then it stays a member of the engine, so that a drain waits for it.
 * The owner must free it when the owner drains. NULL is fine.
 */
void spokei_keeper_free(struct spokei_keeper *keeper);

/* Counts the entries that are wanted, and those of them that the registry has, in each way. */
void spokei_keeper_count(const struct spokei_keeper *keeper, size_t *ret_wanted, size_t *ret_true);

#endif
