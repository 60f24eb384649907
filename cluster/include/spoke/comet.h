/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comet: a gateway that holds long connections of browsers, and pushes messages to users:
 *
 *     static void authorize(void *arg, struct spoke_comet_entry entry,
 *                           const struct spoke_comet_request *request)
 *     {
 *             struct spoke_span user;
 *
 *             if (session_of_cookie(arg, request->cookie, &user))
 *                     spoke_comet_admit(entry, user);
 *             else
 *                     spoke_comet_refuse(entry, "log in first");
 *     }
 *
 *     error = spoke_comet_new(engine, &(struct spoke_comet_options){
 *             .listen = "127.0.0.1:8080", .authorize = authorize, .arg = shop }, &comet);
 *     ...
 *     error = spoke_comet_push(comet, user, &(struct spoke_comet_message){
 *             .event = spoke_comet_text("offer"),
 *             .data = spoke_comet_text("{\"price\":5}") }, &result);
 *
 * A page connects in one of three ways. spoke.js, which the gateway serves, chooses one:
 *
 *     GET /spoke/events     Server-Sent Events (EventSource)
 *     GET /spoke/socket     WebSocket
 *     GET /spoke/poll       long poll: a response with messages, or {"again":MS} after 25 s;
 *                           without an id: {"again":0} at once
 *     POST /spoke/send      a text of a page that has no WebSocket; needs an Origin
 *     GET /spoke.js         the script
 *     GET /                 the option `page`
 *
 * A message has an id, "EPOCH.NUMBER". The epoch is random for each gateway; numbers rise, and are
 * shared by all users. Every user has a ring of recent messages, and all users share another one
 * for messages to all. A page that comes back sends its last id, in the header Last-Event-ID or as
 * `last` in the query (`after` for a long poll). It first gets the messages it has missed. If they
 * are not all there, it gets the event "lost" instead, and has to ask its backend for the state.
 *
 * Messages in WebSockets and long polls are JSON: {"id":"E.N","event":"offer","data":"..."}. The
 * data is always a string. A long poll answers {"messages":[...]} or {"again":MS}, the pause before
 * the next poll. Both have "last", the id for the next poll, and "retry", the pause after a poll
 * that fails, in ms. A gateway that cannot serve the client now, e.g. because too many come at one
 * time, answers with a longer "again" and the same "last" as in the query; "": none. Events of the
 * gateway itself, with data in JSON:
 *
 *     hello       the first event: {"retry":MS}. Its id is the place from which messages follow; it
 *                 has none if "lost" is next
 *     lost        messages were missed; its id is the place from which messages follow
 *     reconnect   {"retry":MS}: the gateway ends the connection, connect again after MS
 *     closed      {"code":CODE,"reason":"TEXT"}: the gateway ends the connection, stay away
 *
 * A WebSocket gets close codes in place of the last two: 1012 (the connection's life is over, or
 * the gateway drains) and 1013 (too many come at one time, or the authorizer did not answer) with
 * the reason "retry=MS"; and 4001 (refused by the authorizer), 4003 (origin not allowed), 4004
 * (spoke_comet_kick()), 4008 (too many connections of this user), 1002, 1003, 1007, 1009 as RFC
 * 6455 defines them, 1008 (more than frames_per_second, or a message takes longer
 * than slow_ns), 1011 (no memory).
 *
 * An EventSource stops for good at any status but 200. So the gateway answers 200 with a retry time
 * and an end when it cannot serve now, and 204 when the authorizer has refused.
 *
 * There is no TLS, no HTTP/2 and no compression: put a proxy in front. On the engine's thread.
 */
#ifndef SPOKE_COMET_H
#define SPOKE_COMET_H

#include <spoke/engine.h>
#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_comet;
struct spoke_config;
struct spoke_provider;

#define SPOKE_COMET_USER_MAX 128u /* bytes of a user's id */
#define SPOKE_COMET_EVENT_MAX 64u /* bytes of an event's name */
#define SPOKE_COMET_ID 40u        /* bytes of a message's id as text, with the NUL */
#define SPOKE_COMET_LISTEN_MAX 8u /* addresses of a gateway */
#define SPOKE_COMET_JOINED_MAX                                                                     \
	64u /* gateways that join one another, with those that have ended                          \
	     */

/* Makes a span of a text that ends with a NUL; NULL: an empty span. */
SPOKE_API struct spoke_span spoke_comet_text(const char *text);

/* The ways in which pages come. */
enum spoke_comet_kind {
	SPOKE_COMET_EVENTS, /* Server-Sent Events */
	SPOKE_COMET_SOCKET, /* WebSocket */
	SPOKE_COMET_POLL,   /* long poll */
	SPOKE_COMET_SEND,   /* a message by POST */
};

/* Names a client that waits for the authorizer, passed by value. A name of a client that is gone is
 * detected, as long as the gateway exists. */
struct spoke_comet_entry {
	struct spoke_comet *comet;
	uint64_t handle;
};

/* The request of such a client, borrowed for the call. An absent field has NULL for data. All of it
 * comes from the client; the origin was checked already. */
struct spoke_comet_request {
	enum spoke_comet_kind kind;
	struct spoke_span path;
	struct spoke_span query; /* behind the "?"; not decoded */
	struct spoke_span cookie;
	struct spoke_span authorization; /* pages cannot set it for EventSource and WebSocket */
	struct spoke_span origin;
	struct spoke_span host;
	const char *peer; /* address, e.g. "127.0.0.1:40000"; of the client, behind a proxy */
};

/*
 * Identifies the user of a request, from a cookie or from a ticket in the query; keep long-lived
 * tokens out of the query, which appears in logs. Answers with spoke_comet_admit(),
 * spoke_comet_refuse() or spoke_comet_later(): at once, or later. A client that has no answer after
 * authorize_ns is told to come again.
 */
typedef void (*spoke_comet_authorize_fn)(void *arg, struct spoke_comet_entry entry,
					 const struct spoke_comet_request *request);

/* A page has sent a text, which is UTF-8. Both spans are borrowed for the call. */
typedef void (*spoke_comet_message_fn)(void *arg, struct spoke_span user, struct spoke_span text);

/* Changes of a user. */
enum spoke_comet_change {
	SPOKE_COMET_CAME,  /* has a connection, and had none before */
	SPOKE_COMET_LEFT,  /* has no connection any more; the gateway keeps the ring for keep_ns */
	SPOKE_COMET_ENDED, /* did not come back in that time, and is forgotten */
};

/* A user comes, leaves or is forgotten. Borrowed for the call. Never called from inside a function
 * of this header. A user that comes back in the turn in which it left causes no call. */
typedef void (*spoke_comet_change_fn)(void *arg, struct spoke_span user,
				      enum spoke_comet_change change);

/*
 * Options of a gateway. 0 or NULL in a field selects its default; all texts are copied. Lists are
 * separated by commas, with or without blanks around them. Every limit has an answer, which is
 * given in brackets.
 */
struct spoke_comet_options {
	/* Comma-separated addresses in digits, e.g. "127.0.0.1:8080,unix:/run/comet.sock"; at most
	 * SPOKE_COMET_LISTEN_MAX. Port 0: the system chooses. NULL: "127.0.0.1:0" */
	const char *listen;
	/* Other engines and processes of the same user may listen at the same ports, if they set
	 * this too; the system distributes the connections. */
	bool shared;
	/* Comma-separated origins whose pages may connect, e.g. "https://shop.example", at most 280
	 * bytes each; browsers send their cookies of the gateway along. The origin
	 * of the gateway itself, by the Host header, is always allowed. (WebSocket: 4003; others:
	 * status 403.) NULL: no others */
	const char *origins;
	/* Allow WebSockets and POSTs without an Origin, which no browser sends. */
	bool any_client;
	/* Comma-separated host names without ports, in addition to localhost and the address of the
	 * socket, e.g. "shop.example". Requests under other names are refused (421). */
	const char *hosts;

	spoke_comet_authorize_fn authorize; /* NULL: see query_user */
	spoke_comet_message_fn message; /* NULL: pages cannot send (WebSocket: 1003; POST: 404) */
	spoke_comet_change_fn change;   /* NULL: not needed */
	void *arg;                      /* of these functions; borrowed */
	/* Without an authorizer: believe "user=ID" in the query. For trying only, because every
	 * page can be every user. EINVAL without both. */
	bool query_user;

	uint64_t authorize_ns; /* for the authorizer to answer (told to come again). 0: 5 s */
	uint64_t head_ns;      /* for a request to arrive completely (408). 0: 5 s */
	uint64_t keepalive_ns; /* a byte is written after such a silence. 0: 25 s */
	uint64_t poll_ns;      /* how long a long poll is held. 0: 25 s */
	/* Life of a connection, +/- 10 % at random (told to reconnect). 0: 30 min; at most 20 days
	 */
	uint64_t life_ns;
	uint64_t keep_ns; /* how long a user without connections is kept. 0: 60 s */
	/* Time without progress of output that waits (closed), and for a message of a page to
	 * arrive completely (1008). 0: 30 s */
	uint64_t slow_ns;
	/* Pause before a page connects again: random between these, and chosen when a connection is
	 * opened, because a gateway that crashes cannot tell it any more. 0: 1 s and 15 s */
	uint64_t retry_min_ns;
	uint64_t retry_max_ns;
	uint64_t drain_ns; /* over which a drain spreads the reconnects. 0: 10 s */

	/* Connections opened and texts posted per second (told to come again). Beyond, half as many
	 * more for addresses that have come at most a twentieth as often in this second, so that a
	 * storm from one address does not keep out the others. 0: 2,000 */
	uint32_t accept_rate;
	uint32_t connections_max; /* in all (closed at once). 0: 20,000 */
	/* From one address (closed at once; behind a proxy of `proxies`, told to come again). 0:
	 * 1,000 */
	uint32_t connections_per_peer_max;
	/* Bits of an IPv6 address that count as one address there, and at the rate. 0: 64; at most
	 * 128 */
	uint32_t connections_per_peer_prefix6;
	uint32_t connections_per_user_max; /* the oldest is closed (4008). 0: 6; at most 250 */
	uint32_t users_max;                /* known users (told to come again). 0: 100,000 */
	/* Frames from one connection (1008), and POSTs of one user (429). 0: 10; at most 250 */
	uint32_t frames_per_second;
	/* Bytes of a text from a page (WebSocket: 1009, POST: 413). 0: 16 KiB; at most 128 KiB.
	 * Requests that are incomplete, at most a tenth of connections_max, hold as much each. */
	uint32_t frame_max;
	uint32_t message_max; /* bytes of a message's data (ETOOLARGE). 0: 16 KiB */

	/* Ring of a user: messages, their bytes and their age. Older messages are dropped, and a
	 * page that has not had them gets "lost". 0: 32, 16 KiB, 60 s */
	uint32_t ring_messages; /* at most 65,535 */
	uint32_t ring_bytes;
	uint64_t ring_ns;
	/* The same of the ring for messages to all. 0: 256, 256 KiB; ring_ns is for both */
	uint32_t all_messages; /* at most 65,535 */
	uint32_t all_bytes;
	/* Bytes of all messages and of all partial output and input (ELIMIT for a push; the
	 * connection is closed). 0: 64 MiB; at most 2^50 */
	uint64_t bytes_max;
	uint32_t send_buffer; /* bytes that the system may queue per connection. 0: 16 KiB */
	/* Comma-separated addresses without ports and ranges of proxies, e.g. "127.0.0.1,::1", or
	 * "unix" for unix sockets. A connection that they pass on counts, once it is admitted,
	 * under the last address of X-Forwarded-For, which the proxy has to add. NULL: none */
	const char *proxies;
	/* A document in HTML, at most 1 MiB, which GET / returns; for trying and small programs.
	 * Others have their pages served by the proxy in front. NULL: none (404) */
	const char *page;
	/* Settings from the section [comet] of a file, for fields that are 0 or NULL:
	 * <spoke/config.h>. Live keys change the gateway when the file is loaded again. NULL: no
	 * file */
	struct spoke_config *config;
};

/*
 * Makes a gateway, which listens at once. A drain of its engine lets no page connect any more,
 * tells the others to reconnect, spread over drain_ns, and ends when they have left. Returns 0;
 * EINVAL (an option; see spoke_engine_why()), ESYSTEM (an address is taken, or not local), ELIMIT,
 * ENOMEM, ECLOSED or EFORKED. Undo with spoke_comet_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_comet_new(struct spoke_engine *engine,
					     const struct spoke_comet_options *options,
					     struct spoke_comet **ret_comet);

/* Closes a gateway and its connections; NULL is allowed. No callback is called afterwards. May be
 * called in a callback. */
SPOKE_API void spoke_comet_free(struct spoke_comet *comet);

/* Writes the address number `index`, from 0 on, e.g. "127.0.0.1:8080". Returns the length of the
 * text; 0 if there is no such address. */
SPOKE_API size_t spoke_comet_address(const struct spoke_comet *comet, size_t index, char *text,
				     size_t size);

/*
 * Joins a gateway to the first one, of another engine of this process, and to all others that have
 * joined the first: a push to one of them reaches the users of all, and a kick closes connections
 * in all. The results count users and connections of the own gateway only, and so do the other
 * functions. Each has ids of its own, so a page that comes back to another gateway gets "lost". All
 * have the option `shared`, so that they can listen at the same ports. There is no way back but
 * spoke_comet_free().
 *
 * A push is on its way until the other engine has taken it at its next turn. If more than 4 MiB
 * would be on their way to one gateway, because its engine hangs, the push is refused with ELIMIT
 * and reaches no user at all. A gateway without memory for a push tells its users "lost".
 *
 * `first` lives until the function returns; it belongs to another thread. Returns 0; EINVAL (the
 * same engine, another network, or not `shared`), ESTATE (`first` has joined another one, or
 * `comet` has, or was joined), ELIMIT (SPOKE_COMET_JOINED_MAX), ECLOSED or EFORKED.
 */
SPOKE_API SPOKE_MUST_USE int spoke_comet_join(struct spoke_comet *comet, struct spoke_comet *first);

/* --- the answers of the authorizer. Each returns whether the client was still waiting; if it was
 * not, nothing has changed. */

/* Admits the client as this user: 1 to SPOKE_COMET_USER_MAX bytes of UTF-8 without control
 * characters. A client with any other id is refused, and an event says so. */
SPOKE_API bool spoke_comet_admit(struct spoke_comet_entry entry, struct spoke_span user);

/* Refuses the client, which will not come again (WebSocket: 4001 with the reason, EventSource: 204,
 * others: 403). `reason`: at most 100 bytes; NULL: none. */
SPOKE_API bool spoke_comet_refuse(struct spoke_comet_entry entry, const char *reason);

/* Tells the client to come again later, e.g. because the authorizer's backend does not answer. */
SPOKE_API bool spoke_comet_later(struct spoke_comet_entry entry);

/* --- pushing */

/* A message; borrowed for the call. */
struct spoke_comet_message {
	/* Name, at most SPOKE_COMET_EVENT_MAX visible ASCII characters without quotation marks and
	 * backslashes; empty: "message". Those of the gateway itself ("hello" and so on) and of
	 * spoke.js ("down" and "unsent") are reserved. */
	struct spoke_span event;
	struct spoke_span data; /* UTF-8, at most message_max bytes */
	/* How long the message is worth sending; later it is skipped, and not missed. 0: as long as
	 * the ring keeps it, which is the most. */
	uint64_t ttl_ns;
	/* Keep it also for a user that is not known here, and may come within keep_ns. Otherwise
	 * such a user does not get it. */
	bool keep;
};

/* The fate of a message. */
struct spoke_comet_result {
	char id[SPOKE_COMET_ID]; /* "EPOCH.NUMBER" */
	uint32_t users;          /* users that have it in their ring; of a push to all: online */
	uint32_t connections;    /* connections to which it will be written */
};

/*
 * Pushes a message to one user, to `count` users (which share it), or to all users. It is written
 * at the end of the turn, to one user before those to all. Messages to all are written in slices of
 * 0.5 ms, so that they delay nothing else. Returns 0 and *ret, which may be NULL; EINVAL (event,
 * data or a user's id), ETOOLARGE (message_max; spoke_engine_why() has a sentence), ELIMIT
 * (bytes_max; users_max with `keep`; or see spoke_comet_join()), ENOMEM or ECLOSED. Of several
 * users, those without an error get the message, and the first error is returned.
 */
SPOKE_API SPOKE_MUST_USE int spoke_comet_push(struct spoke_comet *comet, struct spoke_span user,
					      const struct spoke_comet_message *message,
					      struct spoke_comet_result *ret);
SPOKE_API SPOKE_MUST_USE int spoke_comet_push_many(struct spoke_comet *comet,
						   const struct spoke_span *users, size_t count,
						   const struct spoke_comet_message *message,
						   struct spoke_comet_result *ret);
SPOKE_API SPOKE_MUST_USE int spoke_comet_push_all(struct spoke_comet *comet,
						  const struct spoke_comet_message *message,
						  struct spoke_comet_result *ret);

/* Ends all connections of a user at once, without the messages of this turn. The pages get 4004 and
 * the reason, as a close code or in the event "closed", and spoke.js does not connect again; a page
 * that is between two long polls, or has not read earlier output, gets no word. `reason`: at most
 * 100 bytes; NULL: none. Returns how many. The user may come back if the authorizer lets it. */
SPOKE_API uint32_t spoke_comet_kick(struct spoke_comet *comet, struct spoke_span user,
				    const char *reason);

/* Returns the number of connections of a user; 0: none, or another thread than the engine's. */
SPOKE_API uint32_t spoke_comet_connections(const struct spoke_comet *comet, struct spoke_span user);

/* Lists users that have a connection, at most `max`, in no particular order. The spans are valid
 * until the turn ends. Returns their total number; 0 also on another thread. */
SPOKE_API size_t spoke_comet_users(const struct spoke_comet *comet, struct spoke_span *users,
				   size_t max);

/* --- figures */

/* The table of figures: X(constant, name, sentence) for each. Those up to BYTES are present
 * numbers; the others only grow. The order never changes; new figures are added at the end. */
#define SPOKE_COMET_FIGURES(X)                                                                     \
	X(USERS, users, "users known")                                                             \
	X(ONLINE, online, "users with a connection")                                               \
	X(EVENTS, events, "connections with Server-Sent Events")                                   \
	X(SOCKETS, sockets, "connections with WebSocket")                                          \
	X(POLLS, polls, "long polls that are held")                                                \
	X(ASKING, asking, "clients that wait for the authorizer")                                  \
	X(BEHIND, behind, "connections whose output waits for the client")                         \
	X(MESSAGES, messages, "messages in memory")                                                \
	X(BYTES, bytes, "bytes of messages, and of partial output and input")                      \
	X(OPENED, opened, "connections opened, long polls included")                               \
	X(RESUMED, resumed, "... with a last id, and nothing was lost")                            \
	X(REFUSED, refused, "clients refused by the authorizer")                                   \
	X(REFUSED_ORIGIN, refused_origin, "clients refused because of their origin")               \
	X(UNANSWERED, unanswered, "clients that the authorizer did not answer in time")            \
	X(STORMED, stormed, "clients told to come again: too many at one time, or users_max")      \
	X(PUSHED, pushed, "messages pushed")                                                       \
	X(DROPPED, dropped, "pushes to a user that is not known")                                  \
	X(WRITTEN, written, "messages written to connections")                                     \
	X(LOST, lost, "times a client was told that messages were lost")                           \
	X(RECEIVED, received, "texts received from pages")                                         \
	X(CLOSED_LIFE, closed_life, "connections told to reconnect because their life was over")   \
	X(CLOSED_DRAIN, closed_drain, "connections told to reconnect because of a drain")          \
	X(CLOSED_SLOW, closed_slow,                                                                \
	  "connections closed because their client did not read, or finish a message")             \
	X(CLOSED_EXTRA, closed_extra, "connections closed because their user had too many")        \
	X(CLOSED_KICKED, closed_kicked, "connections closed by a kick")                            \
	X(CLOSED_PROTOCOL, closed_protocol,                                                        \
	  "connections closed because their client broke the protocol")                            \
	X(CLOSED_RATE, closed_rate, "connections closed because of frames_per_second")             \
	X(CLOSED_MEMORY, closed_memory, "connections closed because of memory or bytes_max")

/* The figures as constants: SPOKE_COMET_FIGURE_USERS and so on. */
enum spoke_comet_figure {
#define SPOKE_COMET_ENUM(constant, name, sentence) SPOKE_COMET_FIGURE_##constant,
	SPOKE_COMET_FIGURES(SPOKE_COMET_ENUM)
#undef SPOKE_COMET_ENUM
	SPOKE_COMET_FIGURE_COUNT,
};

/* Returns the name in lower case, e.g. "users", and the sentence of a figure; NULL if there is no
 * such figure. Any thread. */
SPOKE_API const char *spoke_comet_figure_name(enum spoke_comet_figure figure);
SPOKE_API const char *spoke_comet_figure_sentence(enum spoke_comet_figure figure);

/* Returns the present value; 0 if there is no such figure. */
SPOKE_API uint64_t spoke_comet_figure(const struct spoke_comet *comet,
				      enum spoke_comet_figure figure);

/* --- pushing by RPC */

/*
 * Adds the service "spoke.Comet" to a provider of the same engine, so that every client can push:
 *
 *     push(user, event, data[, options])          {"id", "users", "connections"}
 *     push_many([user...], event, data[, options])
 *     push_all(event, data[, options])
 *     `who(user)`, GET                            {"connections"}
 *     `who()`, GET                                {"online", "users": [user...], at most 1,000}
 *     kick(user[, reason])                        {"connections"}
 *     stats(), GET                                a map of all figures by their names
 *
 * Those with GET change nothing, so HTTP clients may call them by GET, too. `event` may be nil.
 * `data` is a text; any other value is sent as JSON. The options are a map: "ttl" in ms, "keep" as
 * a bool. Several processes are reached with cluster=broadcast, gateways of one process that have
 * joined by any of them. Errors have the number of the error above as their code.
 *
 * Requests after spoke_comet_free() are answered with ECLOSED. Returns as spoke_provider_add().
 *
 * The command `spoke comet` serves the service "spoke.Tickets", too, unless query.user is set:
 *
 *     issue(user)                                 {"ticket": TEXT, "ms": for how long it is valid}
 *
 * The page has "ticket=TEXT" in its query, once. Errors are EINVAL (the user's id is empty or too
 * long) and ELIMIT (65,536 tickets are valid).
 */
SPOKE_API SPOKE_MUST_USE int spoke_comet_serve(struct spoke_comet *comet,
					       struct spoke_provider *provider);

SPOKE_END_DECLS

#endif
