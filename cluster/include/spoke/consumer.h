/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling. A consumer keeps connections to the providers it was told of, or that a registry lists,
 * and calls their methods:
 *
 *     struct spoke_consumer_options options = {
 *             .url = "dubbo://127.0.0.1:20880/demo.EchoService?timeout=500ms",
 *     };
 *     struct spoke_consumer *consumer;
 *     struct spoke_method *echo;
 *
 *     error = spoke_consumer_new(engine, &options, &consumer);
 *     error = spoke_consumer_method(consumer, "echo", NULL, &echo);
 *     error = spoke_call(echo, args, NULL, done, arg, NULL);
 *
 * A call that was taken (spoke_call() returned 0) ends exactly once, by its callback, never from
 * inside spoke_call(): with a reply, with an error that says what went wrong and whether the
 * request had been written, at the latest when the time of its last attempt is over: `timeout` is
 * that of an attempt, and most calls have one (<spoke/policy.h>). A call that was not taken has no
 * callback.
 *
 * Everything here belongs to the engine's thread; <spoke/future.h> is for the others.
 */
#ifndef SPOKE_CONSUMER_H
#define SPOKE_CONSUMER_H

#include <spoke/balancer.h>
#include <spoke/call.h>
#include <spoke/engine.h>
#include <spoke/filter.h>
#include <spoke/link.h>
#include <spoke/policy.h>
#include <spoke/registry.h>
#include <spoke/ticket.h>

SPOKE_BEGIN_DECLS

struct spoke_config;
struct spoke_consumer;
struct spoke_request;

/* What becomes of a failback call when there are failback.tasks already. */
enum spoke_consumer_overflow {
	SPOKE_OVERFLOW_DEFAULT,     /* what the URL says, else the next */
	SPOKE_OVERFLOW_REJECT,      /* it ends with ELIMIT, and is not tried again */
	SPOKE_OVERFLOW_DROP_OLDEST, /* the oldest one is settled (REFUSED) to make room */
};

/* Zero-initialised, every default stands; all texts are copied. */
struct spoke_consumer_options {
	/*
	 * An endpoint: "dubbo://host:port/service", "msgpack-rpc://host:port/service",
	 * "unix:/path?interface=service", "msgpack-rpc+unix:/path". What its parameters say
	 * counts for the whole consumer, and yields to the fields below: interface, version, group;
	 * timeout ("500ms", "2s"; a bare number is of ms), heartbeat and idle.close (0: none),
	 * pending.max, frame.max ("1MiB"), and what the fields below are called there; with a
	 * method's name before it, as "echo.timeout", for the calls of that method. Keys of Dubbo's
	 * that say nothing to spoke are passed over, any other one is refused.
	 *
	 * With a registry it names no place but the service: "consumer://any/demo.EchoService".
	 */
	const char *url;
	/* Further endpoints of the same service. What their parameters say has to be what the first
	 * URL says. */
	const char *const *more_urls;
	size_t more_count;
	/* Where providers are found: "file:///run/spoke/providers", "zookeeper://host:2181". NULL:
	 * the URLs are they; with a file that names a registry that one, if the scheme of the URL
	 * is "consumer". */
	const char *registry;
	const struct spoke_registry *registry_kind; /* a program's own; NULL: by the scheme */
	/* Providers as last heard of are kept in this file, and begun with when the registry does
	 * not answer; NULL: "registry.cache" of the URL, else they are not kept. */
	const char *registry_cache;
	uint64_t timeout_ns;  /* of a call; 0: what the URL says, else 1 s */
	uint32_t pending_max; /* calls that wait for an answer; beyond: ELIMIT. 0: 65,536 */
	size_t frame_max;     /* bytes of a frame, read or written; 0: 8 MiB, which is the most */
	/* Silence after which a provider is asked whether it lives, from 10 ms on; SPOKE_OFF:
	 * never. 0: what the URL says, else 60 s. */
	uint64_t heartbeat_ns;
	/* Silence that ends a connection whose wire has no heartbeats, unless somebody waits for an
	 * answer there; from 10 ms on. SPOKE_OFF: none does. 0: what the URL says, else none. */
	uint64_t idle_close_ns;
	spoke_link_changed_fn changed; /* told of what becomes of connections; NULL: not wanted */
	void *changed_arg;
	/* Serves requests that a provider pushes; NULL: they are answered "no such service". */
	void (*handle)(struct spoke_request *request, void *arg);
	void *handle_arg;
	/* From here on, 0 and NULL mean: what the URL says under the name in quotes, else the
	 * value that follows it. */
	const struct spoke_policy *policy;     /* "cluster", failover */
	const struct spoke_balancer *balancer; /* "loadbalance", random */
	uint32_t retries;                      /* "retries", of the policy: 2, failback 3; or
						* SPOKE_NONE */
	uint64_t retry_period_ns;              /* "retry.period", 5 s; from 10 ms on */
	uint64_t retry_deadline_ns;            /* "retry.deadline": of a ticket, since its call;
						* (retries + 1) x (retry.period + timeout) */
	uint32_t failback_tasks_max;           /* "failback.tasks", 100 */
	size_t failback_bytes_max; /* "failback.bytes", 1 MiB; of arguments and the like */
	enum spoke_consumer_overflow
		failback_overflow; /* "failback.overflow", "reject" or "drop-oldest" */
	/* Told of every ticket's end, whoever else is. */
	spoke_ticket_done_fn settled;
	void *settled_arg;
	uint32_t forks;                /* "forks", 2: providers that forking calls at a time */
	uint32_t endpoint_actives_max; /* "endpoint.actives": calls under way at one endpoint;
					* beyond: another one, or ELIMIT. No limit */
	uint32_t connections;          /* "connections" to each endpoint, 1; up to 16 */
	bool wait_ready;               /* "wait.ready": while no endpoint is connected a call waits
					* for one, until its timeout */
	bool lazy;                     /* "lazy": connects with the first call */
	bool sticky;                   /* "sticky": the endpoint of the last call again, if it can
					* take it */
	const struct spoke_filter *const *filters; /* copied are the pointers */
	size_t filter_count;
	/* What a file says, which yields to the URL and to these options: <spoke/config.h>. NULL:
	 * no file. */
	struct spoke_config *config;
};

/*
 * Makes a consumer, which begins to connect. Returns 0, EINVAL, ESYNTAX, ERANGE, ETOOLARGE,
 * EUNSUPPORTED (an option; spoke_engine_why() has a sentence), ELIMIT, ENOMEM, ECLOSED (the engine
 * is ending) or EFORKED. Undo with
 * spoke_consumer_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_consumer_new(struct spoke_engine *engine,
						const struct spoke_consumer_options *options,
						struct spoke_consumer **ret_consumer);

/*
 * Ends the consumer and its methods; NULL is fine. May be called anywhere on the engine's thread,
 * also from a callback of its own. Calls that still wait end with ECLOSED, a little later; until
 * then their `arg` is used. A consumer that was drained is freed the same way, or by the engine's
 * end.
 */
SPOKE_API void spoke_consumer_free(struct spoke_consumer *consumer);

/* How many endpoints are connected now, and neither suspect, on probation nor read-only. */
SPOKE_API size_t spoke_consumer_ready(const struct spoke_consumer *consumer);

enum spoke_endpoint_state {
	SPOKE_ENDPOINT_IDLE,       /* lazy, and not called yet */
	SPOKE_ENDPOINT_CONNECTING, /* calls wait there */
	SPOKE_ENDPOINT_BACKOFF,    /* it waits for its next attempt to connect */
	SPOKE_ENDPOINT_PROBATION,  /* connected; silent before, has to answer first */
	SPOKE_ENDPOINT_READY,
	SPOKE_ENDPOINT_SUSPECT,  /* a heartbeat is unanswered */
	SPOKE_ENDPOINT_READONLY, /* it takes no more calls */
	SPOKE_ENDPOINT_REMOVED,  /* no longer listed: calls under way end there, no new ones begin
				  */
};

/* The name of a state in small letters; NULL for none. */
SPOKE_API const char *spoke_endpoint_state_name(enum spoke_endpoint_state state);

struct spoke_endpoint_info {
	char name[64]; /* as "127.0.0.1:20880"; longer ones are cut */
	enum spoke_endpoint_state state;
	bool ejected;     /* put aside after failures in a row */
	uint32_t weight;  /* as it is now, while it warms up */
	uint32_t actives; /* calls under way */
	uint32_t connections;
	uint64_t mean_ns; /* of the times of answered calls; 0: none of late */
	uint64_t calls;   /* attempts that were begun there */
	uint64_t failures;
	unsigned missed;   /* heartbeats without an answer, 0 to 3 */
	uint32_t attempt;  /* of BACKOFF: the number of the next attempt to connect ... */
	uint64_t retry_ns; /* ... and how long until it */
	uint64_t heard_ns; /* since the last byte came; UINT64_MAX: none has */
	char admin[64];    /* where its process shows itself (<spoke/admin.h>), as it says in the
			    * registry: "127.0.0.1:9090"; "": it does not say */
};

/* The endpoints there are, in the order of the list, then those that are removed and not gone yet;
 * as many as there is room for. Returns how many there are. */
SPOKE_API size_t spoke_consumer_endpoints(const struct spoke_consumer *consumer,
					  struct spoke_endpoint_info *infos, size_t max);

/*
 * A method to call, which belongs to the consumer and lives as long. The same name with the same
 * options is a method of its own each time: keep it. Returns 0, EINVAL, ERANGE (timeout, retries,
 * actives or per_second), ETOOLARGE (a name), what is wrong with the fallback (ETRUNCATED,
 * ECORRUPT, EDEPTH), EFORKED or ENOMEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_consumer_method(struct spoke_consumer *consumer,
						   const char *name,
						   const struct spoke_method_options *options,
						   struct spoke_method **ret_method);

/*
 * Calls. `args` are values one after another, as spoke_builder_finish() gives them, borrowed for
 * the call; `done` may be NULL, `ret_call` too. Returns 0; or, when the call was not taken: what is
 * wrong with the values (ETRUNCATED, ECORRUPT, EDEPTH, ETOOLARGE; of attachments also ETYPE,
 * EEXIST, EINVAL, ELIMIT), EINVAL (not as many as type_names, or a provider's method), ERANGE (the
 * timeout), ENOPROVIDER (none is listed), EUNAVAILABLE (no endpoint is connected or connecting),
 * ELIMIT (pending_max, bytes waiting to be written, actives, per_second), what a filter refuses
 * with, EUNSUPPORTED (a wire that cannot say it: MessagePack-RPC has no versions,
 * groups and attachments), ECLOSED, EFORKED or ENOMEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_call(struct spoke_method *method, struct spoke_span args,
					const struct spoke_call_options *options,
					spoke_call_done_fn done, void *arg,
					struct spoke_call *ret_call);

/* Ends the call with ECANCELED, a little later, by its callback. A request that is written already
 * is run all the same. Returns whether there was such a call. */
SPOKE_API bool spoke_call_cancel(struct spoke_consumer *consumer, struct spoke_call call);

SPOKE_END_DECLS

#endif
