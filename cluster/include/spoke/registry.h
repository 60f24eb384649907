/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where providers are listed, and consumers find them. A registry is a table of functions, chosen
 * by the scheme of its URL: "file:///run/spoke/providers", "zookeeper://127.0.0.1:2181". It does
 * once what it is asked for, asynchronously, and says how that ended; to try again, and to say anew
 * what was lost, is not its work.
 *
 * A program may bring registries of its own: spoke_consumer_options and spoke_provider_options.
 */
#ifndef SPOKE_REGISTRY_H
#define SPOKE_REGISTRY_H

#include <spoke/engine.h>
#include <spoke/url.h>

SPOKE_BEGIN_DECLS

/*
 * What a registry tells, on the engine's thread, never from inside one of its functions, and not
 * any more after close(). `intent` is what was asked for: see below. Everything is borrowed.
 */
struct spoke_registry_up {
	/* What was asked for is done, or has failed. Once for each. */
	void (*done)(void *arg, uint64_t intent, int error);
	/* All providers of a service that was subscribed to, as URLs: now, and whenever it changes.
	 * Of the service "*": what services there are, each as "consumer://any/NAME", once or more.
	 */
	void (*list)(void *arg, uint64_t intent, const char *const *urls, size_t count);
	/* What was done does not hold any more: the session is over, somebody has removed the
	 * entry. 0: nothing does. */
	void (*lost)(void *arg, uint64_t intent, int error);
};

struct spoke_registry {
	const char *scheme;
	/* Returns 0, or an error of which the engine's newest event has a sentence: the URL is
	 * wrong. That the registry cannot be reached is no error here. `url` is borrowed. */
	int (*open)(struct spoke_engine *engine, const struct spoke_url *url,
		    const struct spoke_registry_up *up, void *arg, void **ret_registry);
	/*
	 * Asks for something; `intent` is a number not 0 that the caller chooses, each time another
	 * one, and by which it is told; `url` a provider's, `service` a name. Texts are borrowed
	 * for the call. What is withdrawn and unsubscribed is named by the intent that published or
	 * subscribed it (`which`), which is over with that, done or not: nothing is told of it any
	 * more; if that failed it may be asked for again, of the same intent, or published anew.
	 * An error says that nothing was begun: ENOMEM, or EUNAVAILABLE. To subscribe to "*" is
	 * done with EUNSUPPORTED by a registry that does not know what services there are.
	 */
	int (*publish)(void *registry, uint64_t intent, const char *service, const char *url);
	int (*withdraw)(void *registry, uint64_t intent, uint64_t which);
	int (*subscribe)(void *registry, uint64_t intent, const char *service);
	int (*unsubscribe)(void *registry, uint64_t intent, uint64_t which);
	/* Gives up what is under way, and is gone. What was published stays where it is for as long
	 * as the registry keeps entries of those who are gone. In a forked child it is the only one
	 * of these functions that is called, and disturbs nothing of the parent's. */
	void (*close)(void *registry);
};

/* The registry of a scheme, as "file"; NULL: there is none. One that is not built in says so when
 * it is opened. Any thread. */
SPOKE_API const struct spoke_registry *spoke_registry_find(const char *scheme);

SPOKE_END_DECLS

#endif
