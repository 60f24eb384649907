/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers: a consumer keeps connections to the providers of a service, which are configured or
 * found in a registry, and calls their methods:
 *
 *     struct spoke_consumer_options options = {
 *             .url = "dubbo://127.0.0.1:20880/demo.EchoService?timeout=500ms",
 *     };
 *     struct spoke_consumer *consumer;
 *     struct spoke_method *echo;
 *
 *     error = spoke_consumer_new(engine, &options, &consumer);
 *     error = spoke_consumer_method(consumer, "echo", NULL, &echo);
 *     error = spoke_call_with(echo, SPOKE_ARGS("hello", 42), done, arg);
 *
 * A call that was accepted (spoke_call() returned 0) ends exactly once, with its callback, which is
 * never called inside spoke_call(). The result is a reply or an error; the error tells whether the
 * request had been written. A call that was refused has no callback.
 *
 * `timeout` bounds the call: all its attempts and backups, and its waits for a provider, which end
 * at most one tick later; of a failback call until its answer or its ticket. `attempt.timeout`
 * bounds each attempt. By default an attempt gets no more than what leaves each further attempt an
 * equal part of the time, and at least 10 ms: a call of 1 s with three providers, the first of
 * which is frozen, leaves it after 333 ms. An attempt that no other one would follow goes on until
 * the end of the call, e.g. because it may have run and its method is not idempotent.
 *
 * All functions: the engine's thread. For other threads see <spoke/future.h>.
 */
#ifndef SPOKE_CONSUMER_H
#define SPOKE_CONSUMER_H

#include <spoke/args.h>
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
struct spoke_tls_info;
struct spoke_tls_options;
struct spoke_consumer;
struct spoke_request;

/* The treatment of a failback call when failback.tasks tickets exist already. */
enum spoke_consumer_overflow {
	SPOKE_OVERFLOW_DEFAULT,     /* as set in the URL, else REJECT */
	SPOKE_OVERFLOW_REJECT,      /* the call ends with ELIMIT and is not retried */
	SPOKE_OVERFLOW_DROP_OLDEST, /* the oldest ticket is settled (REFUSED) to make room */
};

/* The contents of a journal when its consumer was made. */
struct spoke_recovered {
	/* SPOKE_OK; ECORRUPT (damaged), EUNSUPPORTED (of a newer version), EINVAL (of another
	 * journal), ESYSTEM or ENOMEM: the journal is not used. The newest event has the file and
	 * the reason. */
	int error;
	uint64_t tickets; /* that go on */
	uint64_t expired; /* ... after their deadline: they are settled */
	uint64_t unknown; /* ... that may have run, and must not run twice: the same */
	uint64_t damaged; /* pieces of the journal that are lost: journal.damaged = salvage */
	uint64_t took_ns;
};

/* Options of a consumer. 0 or NULL in a field selects its default; all texts are copied. */
struct spoke_consumer_options {
	/*
	 * An endpoint: "dubbo://host:port/service", "msgpack-rpc://host:port/service",
	 * "unix:/path?interface=service", "msgpack-rpc+unix:/path"; tcp:// means dubbo://. Its
	 * parameters apply to the whole consumer, and the fields below override them: interface,
	 * version, group; timeout
	 * ("500ms", "2s"; a bare number is in ms), heartbeat and idle.close (0: off), pending.max,
	 * frame.max ("1MiB"), and the names in quotes below. A method name before a key sets it for
	 * this method only, e.g. "echo.timeout". Keys of Dubbo without a meaning in spoke are
	 * ignored; other unknown keys are errors.
	 *
	 * With a registry the URL names only the service: "consumer://any/demo.EchoService".
	 */
	const char *url;
	/* Further endpoints of the same service. Their parameters must not contradict the first
	 * URL. The array is borrowed for the call. */
	const char *const *more_urls;
	size_t more_count;
	/* The registry to find providers in: "file:///run/spoke/providers",
	 * "zookeeper://host:2181". NULL: the URLs are the providers. If the scheme of the URL is
	 * "consumer", NULL selects the registry of the settings file. */
	const char *registry;
	const struct spoke_registry *registry_kind; /* of the program; NULL: by the scheme */
	/* A file that caches the last list of providers, used while the registry does not answer.
	 * NULL: "registry.cache" of the URL, else no cache. */
	const char *registry_cache;
	uint64_t timeout_ns;  /* timeout of a call; 0: as in the URL, else 1 s */
	uint32_t pending_max; /* outstanding calls; further ones get ELIMIT. 0: 65,536 */
	size_t frame_max;     /* bytes of a frame, read or written; 0: 8 MiB; at most 64 MiB */
	/* A provider that has sent nothing for this long is probed. At least 10 ms; SPOKE_OFF: no
	 * heartbeats; 0: as in the URL, else 60 s. A provider that asks for a shorter interval in
	 * the registry gets it. */
	uint64_t heartbeat_ns;
	/* Idle timeout of connections whose protocol has no heartbeats, while no call is
	 * outstanding there. At least 10 ms; SPOKE_OFF: none; 0: as in the URL, else none. */
	uint64_t idle_close_ns;
	spoke_link_changed_fn changed; /* called for state changes of connections; NULL: none */
	void *changed_arg;
	/* Serves requests that a provider pushes, like a handler of a provider. NULL: pushes are
	 * answered with "no such service". */
	void (*handle)(struct spoke_request *request, void *arg);
	void *handle_arg;
	/* For the fields from here on, 0 and NULL mean: as set in the URL under the name in quotes,
	 * else the default after the name. */
	const struct spoke_policy *policy;     /* "cluster", failover */
	const struct spoke_balancer *balancer; /* "loadbalance", random */
	uint32_t retries;                      /* "retries", by policy: 2, failback 3; or
						* SPOKE_NONE */
	uint64_t retry_period_ns;              /* "retry.period", 5 s; at least 10 ms */
	uint64_t retry_deadline_ns;            /* "retry.deadline" of a ticket, since its call;
						* (retries + 1) x (retry.period + timeout) */
	uint64_t attempt_timeout_ns;           /* "attempt.timeout", see above */
	uint64_t hedge_after_ns;               /* "hedge.after", none; or SPOKE_OFF: see
						* struct spoke_method_options */
	uint32_t failback_tasks_max;           /* "failback.tasks", 100 tickets */
	size_t failback_bytes_max;             /* "failback.bytes", 1 MiB of kept arguments etc. */
	enum spoke_consumer_overflow
		failback_overflow; /* "failback.overflow": "reject" or "drop-oldest"; reject */
	/* Called when a ticket is settled, in addition to its own callback; NULL: none. */
	spoke_ticket_done_fn settled;
	void *settled_arg;
	/* The program expects EDEFERRED and tickets; implied by `settled`. Else a settings file, a
	 * provider's URL or a rule that chooses failback is not followed, and an event names the
	 * method: its calls would end in a way that the program does not know. */
	bool takes_tickets;
	/* "journal" in the file: a folder, which exists, for tickets that survive this process. The
	 * next consumer with this folder goes on with them, and tells their outcome to its
	 * `settled`. NULL: none. If another consumer uses it, spoke_consumer_new() returns EEXIST.
	 */
	const char *journal;
	enum spoke_durability durability; /* "durability" in the file */
	/* Called after the tickets of earlier processes were read; NULL: none. If the files could
	 * not be read (ESYSTEM, ENOMEM), that is told first, and tried again every 10 s until this
	 * is called once more. */
	void (*recovered)(void *arg, const struct spoke_recovered *recovered);
	void *recovered_arg;
	uint32_t forks;                /* "forks", 2: providers that forking calls in parallel */
	uint32_t endpoint_actives_max; /* "endpoint.actives": calls in flight at one endpoint;
					* further ones go to another, or get ELIMIT; no limit */
	uint32_t connections;          /* "connections" to each endpoint, 1; at most 16 */
	bool wait_ready;               /* "wait.ready": calls wait for a connected endpoint, until
					* their timeout */
	bool lazy;                     /* "lazy": connect with the first call */
	bool sticky;                   /* "sticky": prefer the endpoint of the last call */
	const struct spoke_filter *const *filters; /* the pointers are copied, not the filters */
	size_t filter_count;
	/* Settings from a file, which the URL and these options override: <spoke/config.h>. NULL:
	 * no file. */
	struct spoke_config *config;
	enum spoke_serialization serialization; /* "serialization", AUTO */
	/* The name of the application, "application": shown by registries that list consumers, and
	 * sent with each request in Hessian 2, as Java does. NULL: "spoke", and it is not sent. */
	const char *application;
	/* "tag": calls go to providers with this tag; where there is none, to those without a tag.
	 * It is sent as the attachment "dubbo.tag", with which a call sets its own; a call in a
	 * handler has the tag of its request. NULL: none, and calls never go to a provider with a
	 * tag. */
	const char *tag;
	uint32_t values_max; /* "values.max" in the body of a frame that is read, 4,194,304 */
	/* "values.cycles": accept replies in which a Java object refers to a container around it.
	 * Such a reference reads as nil. */
	bool values_cycles;
	/* TLS of all connections: <spoke/tls.h>. Borrowed for the call. NULL: "tls" ("on" or "off")
	 * with the files of the settings file, else plain connections. */
	const struct spoke_tls_options *tls;
	/* A token to send with each request, 8 to 256 visible ASCII characters, in place of that in
	 * the provider's URL. It is not sent over plain TCP to another machine: such calls end with
	 * EUNSUPPORTED, and with URLs of providers spoke_consumer_new() returns EINVAL. NULL:
	 * "token" in the settings file, else none. */
	const char *token;
	const char *token_file; /* a file with it, which only its owner may read; NULL: none */
	bool token_plain;       /* it is sent all the same; "token.plain" in the file */
	/* Name and file of a key that signs each request, as Dubbo's "accesskey" does. NULL: those
	 * in the settings file, else none. */
	const char *access_id;
	const char *access_secret_file;
};

/*
 * Makes a consumer, which begins to connect. Returns 0, EEXIST (the journal is in use), EINVAL,
 * ESYNTAX, ERANGE, ETOOLARGE or EUNSUPPORTED (an option; see spoke_engine_why()), ELIMIT, ENOMEM,
 * ECLOSED (the engine is ending) or EFORKED. Undo with spoke_consumer_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_consumer_new(struct spoke_engine *engine,
						const struct spoke_consumer_options *options,
						struct spoke_consumer **ret_consumer);

/*
 * Frees a consumer and its methods; NULL is allowed. May be called anywhere on the engine's thread,
 * also in the consumer's own callbacks. Outstanding calls end with ECLOSED soon afterwards; their
 * `arg` must stay valid until then. A drained consumer is freed in the same way, or with the
 * engine.
 */
SPOKE_API void spoke_consumer_free(struct spoke_consumer *consumer);

/* Returns the number of endpoints that are connected and neither suspect, on probation nor
 * read-only; 0 on another thread than the engine's. */
SPOKE_API size_t spoke_consumer_ready(const struct spoke_consumer *consumer);

/* States of an endpoint. */
enum spoke_endpoint_state {
	SPOKE_ENDPOINT_IDLE,       /* lazy, and not called yet */
	SPOKE_ENDPOINT_CONNECTING, /* calls may be queued for it */
	SPOKE_ENDPOINT_BACKOFF,    /* pauses before its next attempt to connect */
	SPOKE_ENDPOINT_PROBATION,  /* connected, but was silent before and must answer first */
	SPOKE_ENDPOINT_READY,
	SPOKE_ENDPOINT_SUSPECT,  /* a heartbeat is unanswered */
	SPOKE_ENDPOINT_READONLY, /* takes no more calls */
	SPOKE_ENDPOINT_REMOVED,  /* no longer listed: calls in flight continue, none begin */
};

/* Returns the name of a state in lower case; NULL for other numbers. */
SPOKE_API const char *spoke_endpoint_state_name(enum spoke_endpoint_state state);

/* The state and health of an endpoint. */
struct spoke_endpoint_info {
	char name[64]; /* e.g. "127.0.0.1:20880"; cut if longer */
	enum spoke_endpoint_state state;
	bool ejected;     /* by outlier ejection */
	uint32_t weight;  /* the present weight, lower during warm-up */
	uint32_t actives; /* calls in flight */
	uint32_t connections;
	uint64_t mean_ns; /* moving average of response times; 0: no recent reply */
	uint64_t calls;   /* attempts begun */
	uint64_t failures;
	unsigned missed;   /* unanswered heartbeats in a row, 0 to 3 */
	uint32_t attempt;  /* in BACKOFF: number of the next attempt to connect ... */
	uint64_t retry_ns; /* ... and the time until it */
	uint64_t heard_ns; /* time since the last received byte; UINT64_MAX: none received */
	bool tls;          /* a connection uses TLS: see spoke_consumer_tls() */
	bool local;        /* a connection uses the provider's unix socket on this host */
	char admin[64];    /* admin address (<spoke/admin.h>) that the provider has published in
			    * the registry, e.g. "127.0.0.1:9090"; "": none */
};

/* Lists the endpoints, at most `max`: in the order of the provider list, then removed ones that
 * still exist. Returns their total number; 0 on another thread than the engine's. */
SPOKE_API size_t spoke_consumer_endpoints(const struct spoke_consumer *consumer,
					  struct spoke_endpoint_info *infos, size_t max);

/* Describes the TLS (<spoke/tls.h>) of a connection to the endpoint with this index in
 * spoke_consumer_endpoints(). Returns false if none of its connections uses TLS now,
 * and on another thread than the engine's. */
SPOKE_API bool spoke_consumer_tls(const struct spoke_consumer *consumer, size_t index,
				  struct spoke_tls_info *ret_info);

/*
 * Makes a method to call. The consumer owns it and frees it at its end. Every call makes a new
 * method, so keep the result. Returns 0, EINVAL, ERANGE (timeout, retries, actives or per_second),
 * ETOOLARGE (a name), ETRUNCATED, ECORRUPT or EDEPTH (the fallback), EFORKED or ENOMEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_consumer_method(struct spoke_consumer *consumer,
						   const char *name,
						   const struct spoke_method_options *options,
						   struct spoke_method **ret_method);

/*
 * Begins a call. `args` is a sequence of values, as from spoke_builder_finish(), borrowed for the
 * call. `done` and `ret_call` may be NULL. Returns 0, or an error if the call was refused, about
 * which spoke_engine_why() has a sentence:
 *
 * - ETRUNCATED, ECORRUPT, EDEPTH, ETOOLARGE: invalid arguments or attachments
 * - ETYPE, EEXIST, EINVAL, ELIMIT: invalid attachments
 * - EINVAL: a number of arguments other than that of type_names, or a provider's method
 * - ERANGE: the timeout
 * - ENOPROVIDER: no provider is listed
 * - EUNAVAILABLE: no endpoint is connected or connecting
 * - ELIMIT: pending_max, queued bytes, actives or per_second; the sentence names the limit
 * - EUNSUPPORTED: not possible in the protocol; MessagePack-RPC has no versions, groups and
 *   attachments
 * - ELEASE: the lease of the call is over; EINVAL: it is of another engine
 * - ETIMEOUT_UNSENT, ECANCELED: the request for which it is made has no time left, or is abandoned
 * - ECLOSED, EFORKED, ENOMEM, or the error of a filter
 */
SPOKE_API SPOKE_MUST_USE int spoke_call(struct spoke_method *method, struct spoke_span args,
					const struct spoke_call_options *options,
					spoke_call_done_fn done, void *arg,
					struct spoke_call *ret_call);

/* Like spoke_call(), with arguments made in place: spoke_call_args(echo, SPOKE_ARGS("hi", 42),
 * ...), which are borrowed for the call. Returns an error of spoke_pack_args(), too. */
SPOKE_API SPOKE_MUST_USE int spoke_call_args(struct spoke_method *method, struct spoke_args args,
					     const struct spoke_call_options *options,
					     spoke_call_done_fn done, void *arg,
					     struct spoke_call *ret_call);

/* Does the same with the defaults of the method. */
SPOKE_MUST_USE static inline int spoke_call_with(struct spoke_method *method,
						 struct spoke_args args, spoke_call_done_fn done,
						 void *arg)
{
	return spoke_call_args(method, args, NULL, done, arg, NULL);
}

/* Cancels a call: its callback is called soon afterwards, with ECANCELED. A request that was
 * already written may still run; a provider of spoke is told that it need not (see
 * spoke_request_abandoned()). Returns whether there was such a call. */
SPOKE_API bool spoke_call_cancel(struct spoke_consumer *consumer, struct spoke_call call);

SPOKE_END_DECLS

#endif
