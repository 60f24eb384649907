/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registries: directories in which providers are published and consumers find them. A registry is a
 * table of functions, chosen by the scheme of its URL: "file:///run/spoke/providers",
 * "zookeeper://127.0.0.1:2181". Its user wants entries: publications and subscriptions. A registry
 * tries once to make each true, and reports the outcome. Trying again, and publishing again after a
 * loss, is the user's task.
 *
 * A program may provide registries of its own: see spoke_consumer_options and
 * spoke_provider_options.
 */
#ifndef SPOKE_REGISTRY_H
#define SPOKE_REGISTRY_H

#include <spoke/engine.h>
#include <spoke/url.h>

SPOKE_BEGIN_DECLS

/* Categories of a service. */
#define SPOKE_REGISTRY_PROVIDERS "providers"
#define SPOKE_REGISTRY_CONSUMERS "consumers"
#define SPOKE_REGISTRY_CONFIGURATORS "configurators"
#define SPOKE_REGISTRY_ROUTERS "routers"
/* Of applications and instances, see below. */
#define SPOKE_REGISTRY_INSTANCES "instances"
#define SPOKE_REGISTRY_METADATA "metadata"
#define SPOKE_REGISTRY_MAPPING "mapping"

/*
 * An entry of a registry, wanted by its user. It is the first member of the registry's own struct,
 * of `entry_size` bytes, which the user allocates, zeroed and aligned as by malloc(). Memory and
 * fields stay as they are from the first want() until the success of unwant() is reported, or until
 * close().
 */
struct spoke_registry_entry {
	/* A publication lists the URL under this service. A subscription requests the list of the
	 * service; that of "*" are the services, each as "consumer://any/NAME". */
	const char *service;
	/*
	 * SPOKE_REGISTRY_PROVIDERS, or another category if the registry has them. A category that
	 * begins with a dot, e.g. ".configurators", is a rule of Dubbo 2.7 and later: `service` is
	 * its key then, "SERVICE:VERSION:GROUP" or an application, and its list is the one text of
	 * the rule, or empty.
	 *
	 * SPOKE_REGISTRY_INSTANCES is that of Dubbo 3, where `service` is an application: `url` is
	 * an address with parameters that describe this instance, and `text` is JSON, the metadata
	 * of its services. Such an entry may be wanted again with other ones, to change it
	 * without a gap. A subscription to it lists such URLs. SPOKE_REGISTRY_MAPPING lists the
	 * applications that have a service, each as "consumer://any/NAME", and
	 * SPOKE_REGISTRY_METADATA, whose `service` is "APPLICATION/REVISION", the URLs of the
	 * services in metadata, with the host 0.0.0.0.
	 */
	const char *category;
	const struct spoke_url *url; /* NULL: a subscription */
	const char *text;            /* the URL as text, or metadata */
};

/*
 * The functions that a registry calls, on the engine's thread, also inside its own functions, but
 * not after close(). They do not call the registry. `arg` is that of open(). All pointers but the
 * entry are borrowed for the call.
 */
struct spoke_registry_up {
	/* Reports the outcome of the latest want() or unwant() of an entry, once: 0 or an error.
	 * After a failure the entry may be at the registry or not. A further error means that a
	 * wanted entry was lost, e.g. because the session has ended or another program has removed
	 * it. */
	void (*state)(void *arg, struct spoke_registry_entry *entry, int error);
	/* Reports the list of a subscription, once it succeeds and again after each change: `count`
	 * texts, each with its NUL, one after the other. */
	void (*list)(void *arg, struct spoke_registry_entry *entry, const char *texts,
		     size_t count);
};

/* A registry. The functions are called on the engine's thread and must not block. */
struct spoke_registry {
	const char *scheme;
	size_t entry_size; /* bytes; 0: those of struct spoke_registry_entry */
	/* The registry has categories. Then consumers are published, too: URLs with the scheme
	 * "consumer" and the host "0.0.0.0", which it replaces by an address of this machine. */
	bool categories;
	/* It has instances of applications. Then providers are published in this way, too. */
	bool instances;
	/* Opens a registry. Returns 0, or an error for a wrong URL, with a sentence in the newest
	 * event of the engine. An unreachable registry is not an error here. `url` is borrowed for
	 * the call, `up` and `arg` until close(). */
	int (*open)(struct spoke_engine *engine, const struct spoke_url *url,
		    const struct spoke_registry_up *up, void *arg, void **ret_registry);
	/* Requests an entry that is not there, or after a failure or a loss. Without services to
	 * list, the subscription to "*" fails with EUNSUPPORTED. */
	void (*want)(void *registry, struct spoke_registry_entry *entry);
	/* Requests that an entry that was wanted be removed, and nothing of it stay in its struct.
	 * The outcome of a want() in flight is not reported any more, nor are lists. */
	void (*unwant)(void *registry, struct spoke_registry_entry *entry);
	/* Aborts pending requests and frees the registry. Publications stay listed for as long as
	 * the registry keeps entries of closed clients. The only function that is called in a
	 * forked child, where it must not disturb the parent. */
	void (*close)(void *registry);
};

/*
 * The registries of the library: FIRST(scheme, url), then a ROW for each further one.
 *
 * - file: a file that the processes of one machine share.
 * - zookeeper: Dubbo's layout, "zookeeper://host:2181?backup=host2:2181". Published providers are
 *   ephemeral nodes. Without the client library its open() fails and says so.
 * - static: its URL contains the providers of all services:
 *   "static://10.0.0.1:20880?backup=10.0.0.2:20880,[::1]:20880" lists
 *   "dubbo://10.0.0.1:20880/demo.Echo" and two more for demo.Echo. The parameter "protocol" sets
 *   another scheme for them. Publishing succeeds and has no effect.
 */
#define SPOKE_REGISTRIES(FIRST, ROW)                                                               \
	FIRST(file, "file:///PATH")                                                                \
	ROW(zookeeper, "zookeeper://HOST:PORT")                                                    \
	ROW(static, "static://HOST:PORT")

/* Their URLs, as error messages and help name them: "file:///PATH or zookeeper://HOST:PORT ...". */
#define SPOKE_REGISTRY_URL(scheme, url) url
#define SPOKE_REGISTRY_OR_URL(scheme, url) " or " url
#define SPOKE_REGISTRY_URLS SPOKE_REGISTRIES(SPOKE_REGISTRY_URL, SPOKE_REGISTRY_OR_URL)

/* Returns the registry of a scheme, e.g. "file"; NULL if there is none. A registry that is not
 * built in is found, but open() fails. Any thread. */
SPOKE_API const struct spoke_registry *spoke_registry_find(const char *scheme);

SPOKE_END_DECLS

#endif
