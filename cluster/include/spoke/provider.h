/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving. A provider listens at any number of places and hands requests to handlers:
 *
 *     static void echo(struct spoke_request *request, void *arg)
 *     {
 *             struct spoke_cursor args = spoke_request_args(request);
 *             struct spoke_value text;
 *
 *             if (spoke_cursor_next(&args, &text))
 *                     spoke_reply(request, text);
 *             else
 *                     spoke_reply_error(request, 1, "echo: argument missing");
 *     }
 *
 * The handler answers now or later, once. Everything here belongs to the engine's thread, but for
 * the functions of a request whose handler runs on the pool: see SPOKE_HANDLER_POOL.
 */
#ifndef SPOKE_PROVIDER_H
#define SPOKE_PROVIDER_H

#include <spoke/call.h>
#include <spoke/engine.h>
#include <spoke/filter.h>
#include <spoke/link.h>
#include <spoke/registry.h>

SPOKE_BEGIN_DECLS

struct spoke_config;
struct spoke_provider;

/* A request that is being served. It lives until it is answered. */
struct spoke_request;

/* Zero-initialised, every default stands. */
struct spoke_provider_options {
	uint32_t connections_max;          /* in all; 0: 10,000 */
	uint32_t connections_per_peer_max; /* of one address; 0: 1,000 */
	/* Being served, in all, also when nobody waits for the answer any more; 0: 10,000. */
	uint32_t requests_max;
	uint32_t requests_per_connection_max; /* 0: 1,024 */
	uint32_t pushes_max; /* that wait for an answer, or to be written; beyond: ELIMIT. 0: 65,536
			      */
	size_t frame_max;    /* bytes of a frame, read or written; 0: 8 MiB, the most */
	size_t queued_max;   /* bytes of answers that wait, in all; 0: 256 MiB */
	/* Silence after which a consumer is asked whether it lives, from 10 ms on; one that never
	 * says anything is closed after four. 0: 60 s; SPOKE_OFF: nobody is asked, and mute
	 * ones have 4 minutes. */
	uint64_t heartbeat_ns;
	/* Silence that ends a connection whose wire has no heartbeats, unless somebody waits for an
	 * answer there; from 10 ms on. 0 or SPOKE_OFF: none does. */
	uint64_t idle_close_ns;
	spoke_link_changed_fn changed; /* told of what becomes of connections; NULL: not wanted */
	void *changed_arg;
	/* Of MessagePack-RPC, where a method without a dot is one of this service; NULL: of the
	 * first that was added. */
	const char *default_service;
	/* Where its services are listed, each at every place it listens at, from the end of the
	 * turn on in which both are known until it drains: "file:///run/spoke/providers",
	 * "zookeeper://host:2181". NULL: nowhere. */
	const char *registry;
	const struct spoke_registry *registry_kind; /* a program's own; NULL: by the scheme */
	/* The host under which others reach it; NULL: the one it listens at, which then has to be a
	 * single one. */
	const char *advertise;
	const char *application; /* its name, for people; NULL: "spoke" */
	uint32_t weight;         /* of its share of calls; 0: 100; SPOKE_NONE: 0, none */
	/* Its weight grows from 1 on for so long; 0: 10 minutes, as Dubbo's; SPOKE_OFF: it does
	 * not. */
	uint64_t warmup_ns;
	uint64_t registry_retry_ns; /* pause after a failure, 20 % more or less; 0: 5 s */
	uint32_t registry_retries;  /* 0: no limit */
	const struct spoke_filter *const *filters; /* copied are the pointers */
	size_t filter_count;
	/* A line for every request: NULL: none; "true": to the engine's log; else a file. */
	const char *access_log;
	/* What a file says where this says 0 or NULL: <spoke/config.h>. NULL: no file. */
	struct spoke_config *config;
	/* Where its process shows itself, as spoke_admin_address() has it (<spoke/admin.h>), to be
	 * listed with it: a wildcard as the host that is listed, unix:PATH not at all. NULL: not
	 * listed. */
	const char *admin;
};

/* Makes a provider that serves nothing and listens nowhere yet. Returns 0, ERANGE, EINVAL, ESYNTAX,
 * EUNSUPPORTED or what the registry says (an option; spoke_engine_why() has a sentence, but not for
 * a filter that is NULL), ELIMIT (also beyond 64 filters), ENOMEM, ECLOSED (the engine is ending)
 * or EFORKED. Undo with spoke_provider_free(). */
SPOKE_API SPOKE_MUST_USE int spoke_provider_new(struct spoke_engine *engine,
						const struct spoke_provider_options *options,
						struct spoke_provider **ret_provider);

/*
 * Closes all; NULL is fine. May be called anywhere on the engine's thread, also from a handler.
 * Requests that are being served are abandoned; they have to be answered all the same, while the
 * engine is there. Pushes that wait end with ECLOSED, a little later. A provider that was drained
 * is freed the same way, or by the engine's end.
 */
SPOKE_API void spoke_provider_free(struct spoke_provider *provider);

enum spoke_handler_flags {
	/*
	 * The handler runs on a thread of the pool, and may block. It has the request to itself,
	 * with a copy of all that it says, and may call what is marked "any thread"; nothing else
	 * of the engine. While the pool's queue is full requests are refused. One that runs when
	 * the provider is freed runs to its end: `arg` has to outlive the engine.
	 */
	SPOKE_HANDLER_POOL = 1,
};

struct spoke_handler {
	const char *method; /* NULL: every method that has no handler of its own */
	void (*handle)(struct spoke_request *request, void *arg);
	void *arg;
	unsigned flags; /* of enum spoke_handler_flags */
	/* Requests being served at a time, also when nobody waits for the answer any more; beyond:
	 * refused at once. 0: no limit of its own. */
	uint32_t executes;
	uint32_t
		per_second; /* requests a second, on average and at once; beyond: refused. 0: any */
};

struct spoke_service_options {
	const char *name;    /* as "demo.EchoService" */
	const char *version; /* NULL: none */
	const char *group;   /* NULL: none */
};

/*
 * Serves a service; all is copied. Every service has "$echo", which answers with its argument.
 * Returns 0, EINVAL, EEXIST (the same name, version and group), ETOOLARGE (a name), EFORKED or
 * ENOMEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_add(struct spoke_provider *provider,
						const struct spoke_service_options *service,
						const struct spoke_handler *handlers, size_t count);

/*
 * Listens: "dubbo://0.0.0.0:20880", "dubbo://[::]:20880", "unix:/run/echo.sock". Whatever the
 * scheme of the two, Dubbo and MessagePack-RPC are both understood. The host is given in digits;
 * port 0 is one that the system chooses. With a registry and without `advertise` a wildcard address
 * is refused, for nobody could be told to call it. Heartbeat and the like are said in the
 * provider's options, and refused here. With "?shared=true" or "?shared=turns" providers of other
 * engines may join at this place, see spoke_provider_join(); with the first, at a port, so may
 * other processes of the same user. Returns 0, ESTATE (it has joined another), ESYNTAX, ERANGE,
 * EINVAL, EUNSUPPORTED or ESYSTEM (spoke_engine_why() has a sentence), ELIMIT, ENOMEM, ECLOSED or
 * EFORKED.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_listen(struct spoke_provider *provider,
						   const char *url);

/* Listens at all places that the file of its option `config` names (its key "listen"). Returns how
 * many these are, 0: it names none; or what spoke_provider_listen() says of the first that fails,
 * where those before it stay. */
SPOKE_API SPOKE_MUST_USE int spoke_provider_listen_configured(struct spoke_provider *provider);

/*
 * Several engines that listen as one: `provider`, which serves the same on an engine of its own, is
 * there at every place where `first` listens with "?shared=true" or "?shared=turns", as of now.
 * Each connection is one provider's alone. With "true" those to a port are shared out by the
 * system, by the addresses of both ends (SO_REUSEPORT): a few may well come to one engine. With
 * "turns", and always at a path, they are accepted by `first` and handed on in turn; one that has
 * as many connections as it may, as far as `first` knows, is passed over.
 *
 *     error = spoke_provider_listen(first, "dubbo://0.0.0.0:20880?shared=true");
 *     error = spoke_provider_join(second, first);
 *
 * To be called on `provider`'s engine's thread, or before that runs; `first` may be on an engine
 * that runs on another thread, and must not be freed meanwhile. Afterwards each of them may be
 * drained and freed at any time, in any order: without `first` nobody accepts any more
 * where it hands on, and all that are connected stay. Limits, counters, admin pages are each
 * provider's own; only `first` is listed at its registry. What must outlive all is the engines'
 * environment, where that is one of the user's own, and it has to be the same network.
 *
 * Returns 0; EINVAL (they are on one engine, or `first` shares no place: spoke_engine_why() has a
 * sentence), ESTATE (it has joined before), ESYSTEM (it cannot listen there), ELIMIT, ENOMEM,
 * ECLOSED (one of them ends) or EFORKED. Nothing has happened then.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_join(struct spoke_provider *provider,
						 struct spoke_provider *first);

/* Where the provider listens, the `index`th place, as "127.0.0.1:20880" or "unix:/run/x.sock",
 * also where it has joined another, but for what that one hands on. Returns the length of the text,
 * 0: there is no such place. */
SPOKE_API size_t spoke_provider_address(const struct spoke_provider *provider, size_t index,
					char *text, size_t size);

/* How many connections it has now. */
SPOKE_API size_t spoke_provider_connections(const struct spoke_provider *provider);

/* How many listings of it hold at the registry now. *ret_wanted, which may be NULL, gets how many
 * there should be: one for each service and place; none without a registry, and once it drains. */
SPOKE_API size_t spoke_provider_registered(const struct spoke_provider *provider,
					   size_t *ret_wanted);

/* --- a request: what it says. Any thread that has it; valid while the handler runs, and until the
 * answer if spoke_request_keep() was called (pool handlers: always). */

SPOKE_API struct spoke_cursor spoke_request_args(const struct spoke_request *request);
SPOKE_API size_t spoke_request_arg_count(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_service(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_version(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_group(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_method(const struct spoke_request *request);

/* A map, or none. */
SPOKE_API struct spoke_value spoke_request_attachments(const struct spoke_request *request);

/* Does the caller wait for an answer? A one-way request is ended by an answer too, which goes
 * nowhere. */
SPOKE_API bool spoke_request_two_way(const struct spoke_request *request);

/* Time left for it, ns; UINT64_MAX: the caller did not say; 0: it is over. */
SPOKE_API uint64_t spoke_request_left(const struct spoke_request *request);

/* Where it came from, as "127.0.0.1:40000". Returns the length of the text. */
SPOKE_API size_t spoke_request_peer(const struct spoke_request *request, char *text, size_t size);

/* The connection it came by, to push to; { 0 } of one that a consumer serves. Without the request
 * it stays good for as long as the connection is there. */
SPOKE_API struct spoke_peer spoke_request_from(const struct spoke_request *request);

/* Is nobody there any more to read the answer? */
SPOKE_API bool spoke_request_abandoned(const struct spoke_request *request);

/* --- a request: what is done with it. The engine's thread, unless it says: any. */

/* Copies what the request says, for a handler that answers later. Returns 0 or ENOMEM: answer
 * now. */
SPOKE_API SPOKE_MUST_USE int spoke_request_keep(struct spoke_request *request);

/* Calls `abandoned` when the connection is lost before the answer. A caller that closed without a
 * word looks like one that only sends no more: it is taken to be lost after a minute, or when an
 * answer cannot be written. The request still has to be answered. Not
 * called if that has happened already: spoke_request_abandoned(). One per request. Not for handlers
 * on the pool. */
SPOKE_API void spoke_request_on_abandoned(struct spoke_request *request,
					  void (*abandoned)(struct spoke_request *request,
							    void *arg),
					  void *arg);

/* Answers, and ends the request. A value that is too large or too deep for a frame becomes an error
 * that says so. `value` is borrowed for the call; { 0 } is nil. Any thread, for requests of the
 * pool. */
SPOKE_API void spoke_reply(struct spoke_request *request, struct spoke_value value);

/* The same with attachments, a map with texts as keys. */
SPOKE_API void spoke_reply_with(struct spoke_request *request, struct spoke_value value,
				struct spoke_value attachments);

/* Answers with an error: `code` and `text`, which is copied, are the handler's own and reach the
 * caller. Any thread, for requests of the pool. */
SPOKE_API void spoke_reply_error(struct spoke_request *request, int32_t code, const char *text);

/*
 * --- push: requests to consumers that are connected, and have a handler for them (their option
 * `handle`). A push is a call in all other respects: it ends once, by its callback, at the latest
 * at its deadline, and what is said of spoke_call() holds.
 *
 *     struct spoke_method_options of = { .service = "demo.Prices" };
 *     struct spoke_method *moved;
 *     size_t count;
 *
 *     error = spoke_provider_method(provider, "moved", &of, &moved);
 *     error = spoke_push(moved, spoke_request_from(request), args, NULL, done, arg, NULL);
 *     error = spoke_push_all(moved, args, NULL, &count);
 *
 * A peer can be pushed to once it has spoken, which tells its wire: consumers of Dubbo's do at
 * once, by a heartbeat, those of MessagePack-RPC with their first call.
 */

/* A method to push, which belongs to the provider and lives as long; options->service has to be
 * there. Returns as spoke_consumer_method(). */
SPOKE_API SPOKE_MUST_USE int spoke_provider_method(struct spoke_provider *provider,
						   const char *name,
						   const struct spoke_method_options *options,
						   struct spoke_method **ret_method);

/*
 * Calls a consumer by its connection. One without a handler answers ENOSERVICE, or
 * EREMOTE where MessagePack-RPC is spoken, which has errors of one kind. Returns as
 * spoke_call() does; EUNAVAILABLE: the peer is gone, or sends no more, or was none; EINVAL also: a
 * consumer's method; ELIMIT also: pushes_max; ECLOSED: the provider ends or drains.
 */
SPOKE_API SPOKE_MUST_USE int spoke_push(struct spoke_method *method, struct spoke_peer peer,
					struct spoke_span args,
					const struct spoke_call_options *options,
					spoke_call_done_fn done, void *arg,
					struct spoke_call *ret_call);

/*
 * Pushes one way to all peers that take it. Those that cannot are passed over: too much waits to be
 * written to them, their wire cannot say it, a limit is reached, or no memory is left. Returns 0,
 * and how many took it (ret_count may be NULL); or what spoke_push() says of the method, the values
 * and the options, and nobody is called then.
 */
SPOKE_API SPOKE_MUST_USE int spoke_push_all(struct spoke_method *method, struct spoke_span args,
					    const struct spoke_call_options *options,
					    size_t *ret_count);

/* As spoke_call_cancel(). */
SPOKE_API bool spoke_push_cancel(struct spoke_provider *provider, struct spoke_call push);

/* The peers that can be pushed to now, as many as there is room for, in no order. Returns how many
 * there are. */
SPOKE_API size_t spoke_provider_peers(const struct spoke_provider *provider,
				      struct spoke_peer *peers, size_t max);

/* What is known of a connection now. */
struct spoke_peer_info {
	char name[64];      /* its address; longer ones are cut */
	bool readonly;      /* it takes no more pushes */
	unsigned missed;    /* heartbeats without an answer, 0 to 3 */
	uint32_t in_flight; /* its requests that are being served */
	uint64_t heard_ns;  /* since its last byte came */
};

/* Returns whether there is such a connection. */
SPOKE_API bool spoke_provider_peer(const struct spoke_provider *provider, struct spoke_peer peer,
				   struct spoke_peer_info *ret_info);

/* The address of a peer of this provider, as "127.0.0.1:40000". Returns the length of the text; 0:
 * it is gone, or never was. */
SPOKE_API size_t spoke_peer_print(const struct spoke_provider *provider, struct spoke_peer peer,
				  char *text, size_t size);

SPOKE_END_DECLS

#endif
