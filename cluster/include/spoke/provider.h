/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers: a provider listens at any number of addresses and passes requests to handlers:
 *
 *     static void greet(struct spoke_request *request, void *arg)
 *     {
 *             char name[64];
 *
 *             if (SPOKE_READ_REQUEST(request, SPOKE_TEXT(name)))
 *                     return;
 *             if (strcmp(name, "world") == 0)
 *                     SPOKE_REPLY(request, "hello, world");
 *             else
 *                     spoke_reply_error(request, 1, "%s is not known", name);
 *     }
 *
 * The handler answers each request exactly once, immediately or later. A second answer that comes
 * before the handler has returned is dropped, and an event names the method; later there is no
 * request any more. All functions: the engine's
 * thread, except those of requests whose handler runs on the pool: see SPOKE_HANDLER_POOL.
 */
#ifndef SPOKE_PROVIDER_H
#define SPOKE_PROVIDER_H

#include <spoke/args.h>
#include <spoke/call.h>
#include <spoke/engine.h>
#include <spoke/filter.h>
#include <spoke/link.h>
#include <spoke/read.h>
#include <spoke/registry.h>

SPOKE_BEGIN_DECLS

struct spoke_config;
struct spoke_tls_options;
struct spoke_provider;

/* A request that is being served. It is valid until it is answered. */
struct spoke_request;

/* Options of a provider. 0 or NULL in a field selects its default; all texts are copied. */
struct spoke_provider_options {
	uint32_t connections_max;          /* in all; 0: 10,000 */
	uint32_t connections_per_peer_max; /* from one address; 0: 1,000 */
	/* Bits of an IPv6 address that count as one address there, and for the handshakes of TLS.
	 * 0: 64; at most 128 */
	uint32_t connections_per_peer_prefix6;
	/* Requests in service, in all, also ones abandoned by their caller; 0: 10,000. */
	uint32_t requests_max;
	uint32_t requests_per_connection_max; /* 0: 1,024 */
	uint32_t pushes_max; /* outstanding pushes; further ones get ELIMIT. 0: 65,536 */
	size_t frame_max;    /* bytes of a frame, read or written; 0: 8 MiB; at most 64 MiB */
	size_t queued_max;   /* bytes of queued answers, in all; 0: 256 MiB */
	/* A consumer that has sent nothing for this long is probed. A peer that never sends is
	 * closed after four intervals, but not before 4 minutes: a Java consumer is silent until
	 * its first call or its own interval. connections_per_peer_max bounds such peers. At least
	 * 10 ms; 0: 60 s; SPOKE_OFF: no heartbeats. */
	uint64_t heartbeat_ns;
	/* Idle timeout of connections whose protocol has no heartbeats, while no request is in
	 * service there. At least 10 ms; 0 or SPOKE_OFF: none. */
	uint64_t idle_close_ns;
	/* Time for which the repeats of a request get its answer: those that bear the same id as
	 * attachment "spoke.id". From 1 s to 24 h; 0: repeats are not recognised. A file can set it
	 * for each service and method. */
	uint64_t dedupe_ns;
	spoke_link_changed_fn changed; /* called for state changes of connections; NULL: none */
	void *changed_arg;
	/* For MessagePack-RPC: the service of methods without a dot. NULL: the service that was
	 * added first. */
	const char *default_service;
	/* The registry in which each service is published with each address, from the end of the
	 * turn in which both are known until the drain: "file:///run/spoke/providers",
	 * "zookeeper://host:2181". NULL: none. */
	const char *registry;
	const struct spoke_registry *registry_kind; /* of the program; NULL: by the scheme */
	/* The host to publish. NULL: the host that the provider listens at, which then must not be
	 * a wildcard. */
	const char *advertise;
	const char *application; /* display name; NULL: "spoke" */
	const char *tag;         /* published; only calls with this tag come. NULL: none */
	uint32_t weight;         /* for load balancing; 0: 100; SPOKE_NONE: weight 0, no calls */
	/* The weight grows from 1 to its value during this time. 0: 10 minutes, as in Dubbo;
	 * SPOKE_OFF: full weight at once. */
	uint64_t warmup_ns;
	uint64_t registry_retry_ns; /* pause after a failure, +/- 20 % at random; 0: 5 s */
	uint32_t registry_retries;  /* 0: no limit */
	const struct spoke_filter *const *filters; /* the pointers are copied, not the filters */
	size_t filter_count;
	/* A line for every request. NULL: none; "true": to the engine's log; else to this file,
	 * which is created with the first line. ESYSTEM if it cannot be written now. */
	const char *access_log;
	/* Settings from a file, for fields that are 0 or NULL: <spoke/config.h>. NULL: no file. */
	struct spoke_config *config;
	/* The admin address to publish, as from spoke_admin_address() (<spoke/admin.h>). A wildcard
	 * is published as the provider's host; unix:PATH is not published. NULL: none. */
	const char *admin;
	/* Up to four texts, separated by commas, of which each request must contain one as the
	 * attachment "token", else it ends with EFORBIDDEN; three such requests close the
	 * connection. The first is published in the registry, where consumers find it, so it only
	 * keeps away callers that do not use the registry; see `token_private`. 8 to 256 visible
	 * ASCII characters each; "true": a random one; "false": none. NULL: none. */
	const char *token;
	uint32_t values_max; /* in the body of a frame that is read; 0: 4,194,304, the maximum */
	/* Accept requests in which a Java object refers to a container around it. Such a reference
	 * reads as nil. */
	bool values_cycles;
	/* How long a caller that has closed its sending side is served. Consumers of spoke never
	 * wait like that, so the end of theirs abandons their requests at once, except one-way
	 * ones. 0: 60 s; SPOKE_OFF: the same for every caller. */
	uint64_t half_close_ns;
	/* Browsers, for HTTP; lists separated by commas. Pages of these origins may call methods,
	 * e.g. "https://shop.example"; NULL: no page of another site. */
	const char *http_origins;
	/* Names of this host that HTTP clients may use, besides "localhost" and addresses in
	 * digits. NULL: none. */
	const char *http_hosts;
	/* TLS of all addresses, unless their URL says otherwise ("?tls=off"): <spoke/tls.h>.
	 * Borrowed for the call. NULL: as in the settings file, else plain connections. */
	const struct spoke_tls_options *tls;
	/* Peers that may connect, and callers that are let in: lists of up to 64 entries, separated
	 * by commas; NULL: all. An entry that is wrong makes the whole option invalid. A reload of
	 * the settings file changes the lists that it sets, and drains connections that are not
	 * allowed any more. */
	const char *allow_from; /* "10.0.0.0/8, 2001:db8::1, unix": others are closed at once */
	const char *deny_from;  /* the same, which are closed at once; comes before allow_from */
	/* Users and groups at unix sockets, by number: "1000, gid:100". */
	const char *allow_users;
	/* Callers by what they have proven: "dns:*.pay.test, uri:spiffe://x/y, uid:1000, gid:100,
	 * addr:10.0.0.0/8, token". Others get EFORBIDDEN. */
	const char *allow_callers;
	/* A file with these tokens, one a line, which only its owner may read. It is read again
	 * with the settings file. NULL: none. */
	const char *token_file;
	bool token_private; /* the token is not published in the registry */
	/* Name and file of a key by which each request must be signed, as by Dubbo's "accesskey".
	 * The file has the key in its first line, and only its owner may read it. NULL: none. */
	const char *access_id;
	const char *access_secret_file;
	/* The provider begins as after spoke_provider_offline(). */
	bool offline;
	/* The provider begins offline, and is online after this time, unless it is told before. 0:
	 * online at once. */
	uint64_t register_delay_ns;
	/* Time of requests whose callers name none, as with MessagePack-RPC: for the calls that are
	 * made for them, and spoke_request_left(). At least 1 ms; 0: no limit. */
	uint64_t timeout_default_ns;
	/* "journal" in the file: a folder, which exists, for the answers that `dedupe` remembers,
	 * so that they survive this process; nothing accepts before it is read. Each answer is sent
	 * once the journal has it. If another provider or consumer uses the folder,
	 * spoke_provider_new() returns EEXIST. Add services before the engine runs: answers of
	 * others are forgotten. NULL: none. */
	const char *journal;
	enum spoke_durability durability; /* "durability" in the file */
};

/* Makes a provider without services and addresses. Returns 0; ERANGE, EINVAL, ESYNTAX,
 * EUNSUPPORTED, ESYSTEM (a folder or file) or an error of the registry (an option; see
 * spoke_engine_why(), which has no sentence for a filter that is NULL); EEXIST (the journal is in
 * use); ELIMIT (e.g. more than 64 filters), ENOMEM, ECLOSED (the engine is ending) or EFORKED. Undo
 * with spoke_provider_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_new(struct spoke_engine *engine,
						const struct spoke_provider_options *options,
						struct spoke_provider **ret_provider);

/*
 * Frees a provider and closes its connections; NULL is allowed. May be called anywhere on the
 * engine's thread, also in a handler. Requests in service are abandoned, but must still be answered
 * while the engine exists. Outstanding pushes end with ECLOSED soon afterwards. A drained provider
 * is freed in the same way, or with the engine.
 */
SPOKE_API void spoke_provider_free(struct spoke_provider *provider);

/* Flags of a handler, as bits. */
enum spoke_handler_flags {
	/*
	 * The handler runs on a thread of the pool, and may block. It owns the request, with a copy
	 * of its content, and may call functions marked "any thread", but no others of the engine.
	 * Requests are refused while the queue of the pool is full. A handler that is running when
	 * the provider is freed runs to its end, so `arg` must outlive the engine.
	 */
	SPOKE_HANDLER_POOL = 1,
	/* The method changes nothing, so an HTTP client may call it by GET. */
	SPOKE_HANDLER_SAFE = 2,
};

/* For `executes` of a handler: as many requests as can be answered before their deadlines. */
#define SPOKE_EXECUTES_AUTO (UINT32_MAX - 1)

/* The handler of a method. */
struct spoke_handler {
	const char *method; /* NULL: every method without a handler of its own */
	/* Called for each request, on the engine's thread (where it must not block) or on the pool.
	 * Answers the request now or later. */
	void (*handle)(struct spoke_request *request, void *arg);
	void *arg;
	unsigned flags; /* of enum spoke_handler_flags */
	/* Concurrent requests, also ones abandoned by their caller; further ones are refused
	 * at once. SPOKE_EXECUTES_AUTO: refused are those that are expected to be late. 0: no limit
	 * for this handler. */
	uint32_t executes;
	/* Rate limit and burst, in requests per second; further ones are refused. 0: no limit. */
	uint32_t per_second;
};

/* The identity of a service. */
struct spoke_service_options {
	const char *name;    /* e.g. "demo.EchoService" */
	const char *version; /* NULL: none */
	const char *group;   /* NULL: none */
};

/*
 * Adds a service with its handlers; all options are copied. Every service has the method "$echo",
 * which returns its argument. Returns 0, EINVAL, EEXIST (the same name, version and group, or a
 * method twice), ETOOLARGE (a name; see spoke_engine_why()), EFORKED or ENOMEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_add(struct spoke_provider *provider,
						const struct spoke_service_options *service,
						const struct spoke_handler *handlers, size_t count);

/*
 * Listens at an address: "dubbo://0.0.0.0:20880", "dubbo://[::]:20880", "unix:/run/echo.sock". Both
 * Dubbo and MessagePack-RPC are accepted, with either scheme and with tcp, and HTTP at addresses
 * that only this machine reaches; "?http=on" accepts HTTP elsewhere, "?http=off" nowhere. "[::]"
 * takes connections over IPv6 only; listen at "0.0.0.0" too for IPv4. The host is an address in
 * digits; for port 0 the system chooses one. With a registry and without `advertise` a wildcard
 * address is refused, because consumers could not connect to it. Keys like heartbeat belong into
 * the provider's options and are errors here. "fd://NAME" is a listening socket that a service
 * manager has passed to the process, by its name or the number of its descriptor (socket
 * activation).
 *
 * "?allow.from=10.0.0.0/8" and "?deny.from=" have lists of the address alone, in addition to those
 * of the provider. "?mode=0660" sets the permission bits of the file of a unix socket.
 *
 * With "?shared=true" or "?shared=turns" providers of other engines may join at this address: see
 * spoke_provider_join(). With "?shared=true" other processes of the same user may share the port.
 *
 * Returns 0, ESTATE (the provider has joined another), ESYNTAX, ERANGE, EINVAL, EUNSUPPORTED or
 * ESYSTEM (see spoke_engine_why()), ELIMIT, ENOMEM, ECLOSED or EFORKED.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_listen(struct spoke_provider *provider,
						   const char *url);

/* Listens at all addresses that the key "listen" had in the settings file (option `config`) when
 * the provider was made. Returns their number, or the error of spoke_provider_listen() for the
 * first that fails; earlier addresses stay open. */
SPOKE_API SPOKE_MUST_USE int spoke_provider_listen_configured(struct spoke_provider *provider);

/*
 * Joins several engines at shared addresses. `provider`, with the same services on another engine,
 * takes part at every address where `first` listens now with "?shared=true" or "?shared=turns".
 * Each connection belongs to one provider. With "true" the system distributes the connections of a
 * port by the addresses of both ends (SO_REUSEPORT). Few connections may all go to one engine.
 * With "turns", and always for unix sockets, `first` accepts the connections and deals them out in
 * turn. Providers that have reached their limit of connections, as far as `first` knows, are
 * skipped.
 *
 *     error = spoke_provider_listen(first, "dubbo://0.0.0.0:20880?shared=true");
 *     error = spoke_provider_join(second, first);
 *
 * Call it on the thread of `provider`'s engine, or before that engine runs. `first` may be on an
 * engine that runs on another thread, and must not be freed meanwhile. Afterwards both may be
 * drained and freed at any time, in any order. Without `first` its handed-over addresses accept no
 * more connections; existing connections stay. Each provider has its own limits, counters and admin
 * server; only `first` is published in its registry. An environment of the user must outlive both
 * engines, and both must use the same network.
 *
 * Returns 0; EINVAL (both are on one engine, or `first` shares no address; see spoke_engine_why()),
 * ESTATE (`provider` has joined before), ESYSTEM (the system refuses to listen), ELIMIT, ENOMEM,
 * ECLOSED (one of them is ending) or EFORKED. After an error nothing has changed.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_join(struct spoke_provider *provider,
						 struct spoke_provider *first);

/* Writes the address number `index`, from 0 on, e.g. "127.0.0.1:20880" or "unix:/run/x.sock".
 * Joined addresses are included, unless `first` deals the connections out. Returns the length of
 * the text; 0 if there is no such address. */
SPOKE_API size_t spoke_provider_address(const struct spoke_provider *provider, size_t index,
					char *text, size_t size);

/*
 * Steps aside: the provider is withdrawn from its registry, and its consumers are told (READONLY):
 * those of spoke make their calls elsewhere, those of Java prefer others. It goes on to listen and
 * to answer, and closes no connection.
 * spoke_provider_online() takes this back (WRITABLE): it is published again, and its warm-up
 * begins again. Consumers of MessagePack-RPC and HTTP have no such notice; see /ready of the admin
 * page. Providers that have joined are told one by one.
 *
 * Return 0, also if nothing changes; ECLOSED (the provider drains, or has ended) or EFORKED.
 */
SPOKE_API SPOKE_MUST_USE int spoke_provider_offline(struct spoke_provider *provider);
SPOKE_API SPOKE_MUST_USE int spoke_provider_online(struct spoke_provider *provider);

/* Returns whether the provider is online. */
SPOKE_API bool spoke_provider_is_online(const struct spoke_provider *provider);

/* Returns the present number of connections. */
SPOKE_API size_t spoke_provider_connections(const struct spoke_provider *provider);

/* Returns the number of entries that are published in the registry now. *ret_wanted, if not NULL,
 * is set to the intended number: one for each service and address. Both are 0 without a registry,
 * while it is offline or drains, and on another thread than the engine's. */
SPOKE_API size_t spoke_provider_registered(const struct spoke_provider *provider,
					   size_t *ret_wanted);

/* --- the content of a request. Any thread that has the request. Views are valid while the handler
 * runs; after spoke_request_keep(), and in pool handlers, until the answer. */

/* Return parts of the request: the arguments, to be read one by one or with SPOKE_READ(), and their
 * number, the service and the method.
 * `version` and `group` are empty if the caller did not send them. */
SPOKE_API struct spoke_cursor spoke_request_args(const struct spoke_request *request);
SPOKE_API struct spoke_reader spoke_request_reader(const struct spoke_request *request);
SPOKE_API size_t spoke_request_arg_count(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_service(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_version(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_group(const struct spoke_request *request);
SPOKE_API struct spoke_span spoke_request_method(const struct spoke_request *request);

/* Writes the JVM descriptors of the arguments as the caller has declared them, e.g.
 * "Ljava/lang/String;I". Returns the length of the whole text; `size` includes the NUL, and a
 * longer text is cut. 0: there are no arguments, or the caller has sent no types, as in generic
 * calls without them and with MessagePack-RPC. */
SPOKE_API size_t spoke_request_types(const struct spoke_request *request, char *text, size_t size);

/* Returns the attachments: a map, or no value. */
SPOKE_API struct spoke_value spoke_request_attachments(const struct spoke_request *request);

/* Returns whether the caller waits for an answer. A one-way request must also be answered; its
 * answer is discarded. */
SPOKE_API bool spoke_request_two_way(const struct spoke_request *request);

/* Returns the time until the deadline, ns; 0: it has passed. If the caller sent none,
 * "timeout.default" of the provider counts from the arrival; UINT64_MAX: there is none either. */
SPOKE_API uint64_t spoke_request_left(const struct spoke_request *request);

/* Writes the address of the caller, e.g. "127.0.0.1:40000". Returns the length of the text. */
SPOKE_API size_t spoke_request_peer(const struct spoke_request *request, char *text, size_t size);

/* Writes one of the names of the caller, which have been proven, the strongest first: those of its
 * certificate, e.g. "dns:a.pay.test" or "uri:spiffe://x/y"; "uid:1000" at a unix socket, as of
 * connect(); "token" after a valid token; last the address, "addr:10.0.0.7". Returns the length of
 * the whole text; `size` includes the NUL, and a longer text is cut. 0: there is no name with this
 * number. For filters and handlers. */
SPOKE_API size_t spoke_request_identity(const struct spoke_request *request, size_t index,
					char *text, size_t size);

/* Returns the connection of the request, for pushes; { 0 } if a consumer serves the request. The
 * result is valid as long as the connection, also after the request. */
SPOKE_API struct spoke_peer spoke_request_from(const struct spoke_request *request);

/* Returns whether the request is abandoned: its caller of spoke has cancelled it or given up, its
 * connection was lost, the provider freed, or its HTTP client got status 504 at the deadline. An
 * answer is dropped. A request that waits for a thread of the pool does not begin. One that
 * `dedupe` remembers is never abandoned once it runs: repeats get its answer. */
SPOKE_API bool spoke_request_abandoned(const struct spoke_request *request);

/* --- answering a request. The engine's thread, unless the comment says "any thread". */

/* Copies the content of the request, for a handler that answers later. Returns 0, or ENOMEM: then
 * answer now. */
SPOKE_API SPOKE_MUST_USE int spoke_request_keep(struct spoke_request *request);

/* Sets a callback: `abandoned` is called if the request is abandoned before the answer. The request
 * must still be answered. A caller that closes without a drain notice looks like a half-close. Its
 * connection counts as lost after a minute, or when an answer cannot be written. If it is lost
 * already, `abandoned` is not called: see spoke_request_abandoned(). Each request takes one
 * callback. Not for handlers on the pool. */
SPOKE_API void spoke_request_on_abandoned(struct spoke_request *request,
					  void (*abandoned)(struct spoke_request *request,
							    void *arg),
					  void *arg);

/* Answers and ends the request. A value that is too large or too deep for a frame is replaced with
 * an error. `value` is borrowed for the call; { 0 } is nil. Any thread, for requests of the pool.
 */
SPOKE_API void spoke_reply(struct spoke_request *request, struct spoke_value value);

/* Answers with a value made in place, e.g. spoke_reply_arg(request, SPOKE_ARG("hello")), or shorter
 * SPOKE_REPLY(request, "hello"). All types of <spoke/args.h> are allowed. A value that cannot be
 * packed is replaced with an error. Any thread, for requests of the pool. */
SPOKE_API void spoke_reply_arg(struct spoke_request *request, struct spoke_arg value);
#define SPOKE_REPLY(request, value) spoke_reply_arg((request), SPOKE_ARG(value))

/* Like spoke_reply(), with attachments: a map whose keys are str. */
SPOKE_API void spoke_reply_with(struct spoke_request *request, struct spoke_value value,
				struct spoke_value attachments);

/*
 * Answers with an error and ends the request. The caller receives `code` and a text, which the
 * handler defines; the text is formatted as by printf() and cut to SPOKE_ERROR_TEXT_MAX - 1 bytes.
 * Pass a text from elsewhere with "%s". A Dubbo consumer in another language receives a
 * java.lang.RuntimeException with the message "TEXT (code CODE)". Any thread, for requests of the
 * pool.
 */
#define SPOKE_ERROR_TEXT_MAX 1024u /* bytes of the text of an error, with the NUL */
SPOKE_API SPOKE_PRINTF(3, 4) void spoke_reply_error(struct spoke_request *request, int32_t code,
						    const char *format, ...);

/*
 * Reads all arguments into variables, as SPOKE_READ() does. If they are not as wanted, answers the
 * request with the sentence of spoke_reader_why() and the error as its code, and returns the error:
 *
 *     if (SPOKE_READ_REQUEST(request, SPOKE_TEXT(name), &count))
 *             return;
 *
 * Any thread, for requests of the pool. spoke_reply_unread() answers with the sentence of a reader
 * that has failed.
 */
#define SPOKE_READ_REQUEST(request, ...)                                                           \
	spoke_request_read((request), SPOKE_INTO_ARRAY(__VA_ARGS__), SPOKE_ARGS_COUNT(__VA_ARGS__))
SPOKE_API SPOKE_MUST_USE int spoke_request_read(struct spoke_request *request,
						const struct spoke_into *into, size_t count);
SPOKE_API void spoke_reply_unread(struct spoke_request *request, const struct spoke_reader *reader);

/*
 * Like spoke_reply_error(), with an exception of a class that the caller knows, e.g.
 * "it.BizException"; NULL: as above. `text` becomes its message, NULL null; `code` other than 0 its
 * field `code`. `fields` are further fields, a map whose keys are str; { 0 }: none. Fields that
 * cannot be sent are replaced with an error. All is copied.
 *
 * Exceptions of java and javax have no field `code`, so other Dubbo consumers find the code at the
 * end of the message. A Java consumer reads other classes only if the interface there declares
 * them, or its serialize.allowlist names them; else it gets an RpcException, and calls again unless
 * it has retries=0. An event tells so once for each method, unless the class is of java.lang.
 * Callers of $invoke receive a GenericException that names the class. MessagePack-RPC has only the
 * text.
 */
SPOKE_API void spoke_reply_exception(struct spoke_request *request, const char *class_name,
				     int32_t code, const char *text, struct spoke_value fields);

/*
 * --- push: requests to connected consumers that have a handler (their option `handle`). In all
 * other respects a push is a call: it ends exactly once, with its callback, at the latest at its
 * deadline. The rules of spoke_call() apply.
 *
 *     struct spoke_method_options of = { .service = "demo.Prices" };
 *     struct spoke_method *moved;
 *     size_t count;
 *
 *     error = spoke_provider_method(provider, "moved", &of, &moved);
 *     error = spoke_push(moved, spoke_request_from(request), args, NULL, done, arg, NULL);
 *     error = spoke_push_all(moved, args, NULL, &count);
 *
 * A peer can receive pushes after its first bytes, which reveal its protocol. A Dubbo consumer of
 * spoke sends a heartbeat at once; a MessagePack-RPC consumer sends nothing before its first call.
 */

/* Makes a method to push. The provider owns it and frees it at its end. options->service is
 * required. Returns like spoke_consumer_method(). */
SPOKE_API SPOKE_MUST_USE int spoke_provider_method(struct spoke_provider *provider,
						   const char *name,
						   const struct spoke_method_options *options,
						   struct spoke_method **ret_method);

/*
 * Calls a consumer by its connection. A consumer without a handler answers ENOSERVICE, or EREMOTE
 * with MessagePack-RPC, which has only one kind of error. Returns like spoke_call(), and
 * EUNAVAILABLE (the connection is closed, half-closed or none), EINVAL (a consumer's method),
 * ELIMIT (pushes_max) or ECLOSED (the provider is ending or drains).
 */
SPOKE_API SPOKE_MUST_USE int spoke_push(struct spoke_method *method, struct spoke_peer peer,
					struct spoke_span args,
					const struct spoke_call_options *options,
					spoke_call_done_fn done, void *arg,
					struct spoke_call *ret_call);

/*
 * Pushes a one-way request to all peers. A peer is skipped if too many bytes are queued for it or
 * its protocol cannot express the request; also if a limit is reached or memory is short. Returns 0
 * and writes the number of peers that were not skipped (ret_count may be NULL). Returns an error of
 * spoke_push() for the method, the values or the options; then no request was sent.
 */
SPOKE_API SPOKE_MUST_USE int spoke_push_all(struct spoke_method *method, struct spoke_span args,
					    const struct spoke_call_options *options,
					    size_t *ret_count);

/* Like spoke_push() and spoke_push_all(), with arguments made in place, e.g. SPOKE_ARGS("hi", 42),
 * and the defaults of the method. Return an error of spoke_pack_args(), too. */
SPOKE_API SPOKE_MUST_USE int spoke_push_with(struct spoke_method *method, struct spoke_peer peer,
					     struct spoke_args args, spoke_call_done_fn done,
					     void *arg);
SPOKE_API SPOKE_MUST_USE int spoke_push_all_with(struct spoke_method *method,
						 struct spoke_args args, size_t *ret_count);

/* Cancels a push, like spoke_call_cancel(). */
SPOKE_API bool spoke_push_cancel(struct spoke_provider *provider, struct spoke_call push);

/* Lists the peers that can receive pushes now, at most `max`, in no particular order. Returns their
 * total number; 0 on another thread than the engine's. */
SPOKE_API size_t spoke_provider_peers(const struct spoke_provider *provider,
				      struct spoke_peer *peers, size_t max);

/* The present state of a connection. */
struct spoke_peer_info {
	char name[64];      /* address; cut if longer */
	bool readonly;      /* takes no more pushes */
	unsigned missed;    /* unanswered heartbeats in a row, 0 to 3 */
	uint32_t in_flight; /* requests from the peer that are in service */
	uint64_t heard_ns;  /* time since the last received byte */
	bool tls;           /* the connection uses TLS */
};

/* Copies the state of a connection. Returns whether the connection exists; false on another thread
 * than the engine's. */
SPOKE_API bool spoke_provider_peer(const struct spoke_provider *provider, struct spoke_peer peer,
				   struct spoke_peer_info *ret_info);

/* Writes the address of a peer, e.g. "127.0.0.1:40000". Returns the length of the text; 0 if the
 * provider has no such connection, and on another thread than the engine's. */
SPOKE_API size_t spoke_peer_print(const struct spoke_provider *provider, struct spoke_peer peer,
				  char *text, size_t size);

SPOKE_END_DECLS

#endif
