/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registries: directories in which providers are published and consumers find them. A registry is a
 * table of functions, chosen by the scheme of its URL: "file:///run/spoke/providers",
 * "zookeeper://127.0.0.1:2181". It performs each request once, asynchronously, and reports the
 * outcome. Retrying, and publishing again after a loss, is the caller's task.
 *
 * A program may provide registries of its own: see spoke_consumer_options and
 * spoke_provider_options.
 */
#ifndef SPOKE_REGISTRY_H
#define SPOKE_REGISTRY_H

#include <spoke/engine.h>
#include <spoke/url.h>

SPOKE_BEGIN_DECLS

/*
 * The functions that a registry calls, on the engine's thread, never inside one of its own
 * functions and never after close(). `arg` is that of open(). `intent` is the number that the
 * caller chose for its request: see below. All pointers are borrowed for the call.
 */
struct spoke_registry_up {
	/* A request is complete, or has failed. Once for each request. */
	void (*done)(void *arg, uint64_t intent, int error);
	/* The list of a subscription: the URLs of all providers of the service, first after the
	 * subscription and again after each change. For the service "*": the services, each as
	 * "consumer://any/NAME", at least once. */
	void (*list)(void *arg, uint64_t intent, const char *const *urls, size_t count);
	/* A completed request is void, e.g. because the session ended or the entry was removed.
	 * `intent` 0: all of them are. */
	void (*lost)(void *arg, uint64_t intent, int error);
};

/*
 * A registry. The functions are called on the engine's thread and must not block.
 *
 * Each request has an `intent`: a number other than 0 that the caller uses once, and that
 * identifies the request in the functions of spoke_registry_up. withdraw() and unsubscribe() name
 * an earlier request by its intent (`which`). From that call on nothing is reported for `which`,
 * even if the withdrawal fails; a failed one may be requested again for the same `which`. Texts are
 * borrowed for the call. The requests return 0, ENOMEM or EUNAVAILABLE; after an error the request
 * was not begun and done() is not called.
 */
struct spoke_registry {
	const char *scheme;
	/* Opens a registry. Returns 0, or an error for a wrong URL, with a sentence in the newest
	 * event of the engine. An unreachable registry is not an error here. `url` is borrowed for
	 * the call, `up` and `arg` until close(). */
	int (*open)(struct spoke_engine *engine, const struct spoke_url *url,
		    const struct spoke_registry_up *up, void *arg, void **ret_registry);
	/* Requests that the provider's `url` be listed under `service`. */
	int (*publish)(void *registry, uint64_t intent, const char *service, const char *url);
	/* Requests that the publication `which` be removed; it may then be published again. */
	int (*withdraw)(void *registry, uint64_t intent, uint64_t which);
	/* Requests the list of a service, now and after each change. done() gets EUNSUPPORTED for
	 * the service "*" if the registry cannot list services. */
	int (*subscribe)(void *registry, uint64_t intent, const char *service);
	/* Requests that the subscription `which` end. */
	int (*unsubscribe)(void *registry, uint64_t intent, uint64_t which);
	/* Aborts pending requests and frees the registry. Publications stay listed for as long as
	 * the registry keeps entries of closed clients. The only function that is called in a
	 * forked child, where it must not disturb the parent. */
	void (*close)(void *registry);
	/*
	 * Requests the URLs of a service in another category than its providers, "configurators" or
	 * "routers", now and after each change. done(), list() and unsubscribe() as for
	 * subscribe(). NULL: the registry has no categories.
	 *
	 * A category that begins with a dot, e.g. ".configurators", is a rule of Dubbo 2.7 and
	 * later. `service` is its key then: "SERVICE:VERSION:GROUP" or an application. Its list is
	 * the one text of the rule, or empty.
	 *
	 * A registry with categories also publishes consumers: URLs with the scheme "consumer" and
	 * the host "0.0.0.0", which it replaces by an address of this machine.
	 */
	int (*watch)(void *registry, uint64_t intent, const char *service, const char *category);
};

/* The URLs of all registries of the library, as error messages and help name them. */
#define SPOKE_REGISTRY_URLS "file:///PATH, zookeeper://HOST:PORT or static://HOST:PORT"

/* Returns the registry of a scheme, e.g. "file"; NULL if there is none. A registry that is not
 * built in is found, but open() fails. Any thread. */
SPOKE_API const struct spoke_registry *spoke_registry_find(const char *scheme);

SPOKE_END_DECLS

#endif
