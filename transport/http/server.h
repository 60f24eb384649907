/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server side of HTTP/1.1: the connections of one server, each with one request and one response.
 * Every response ends its connection; there is no keep-alive. The user accepts sockets by other
 * means, and fills in struct spokei_http_up. A server's connections may use TLS. On the engine's
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_SERVER_H
#define SPOKEI_TRANSPORT_HTTP_SERVER_H

#include "core/base/pace.h"
#include "timer/base.h"

#include <spoke/env.h>

#define SPOKEI_HTTP_ADDRESS 160u                    /* bytes of an address as text */
#define SPOKEI_HTTP_OUT_MAX ((size_t)16777216)      /* bytes */
#define SPOKEI_HTTP_REQUEST_NS UINT64_C(5000000000) /* see struct spokei_http_limits */
#define SPOKEI_HTTP_SLOW_NS UINT64_C(30000000000)
#define SPOKEI_HTTP_LINGER_NS UINT64_C(2000000000)

struct spoke_engine;
struct spokei_http_conn;
struct spokei_http_request;
struct spokei_http_response;
struct spokei_stream;
struct spokei_stream_kind;

/*
 * Handles the events of a server's connections. Each function may close any connection, and may
 * free the server's owner when the turn ends. Only closed() is called from inside functions of this
 * header.
 */
struct spokei_http_up {
	size_t user_size; /* bytes of spokei_http_user() */
	/* Before events about connections, e.g. "page: ". NULL: nothing. */
	const char *title;
	/* A complete request has arrived; it is borrowed for the call. The user responds here, or
	 * later. */
	void (*request)(struct spokei_http_conn *conn, const struct spokei_http_request *request);
	/* The body of a request would be longer than limits.body_max. The request has no body, and
	 * is borrowed for the call. NULL: status 413. */
	void (*too_long)(struct spokei_http_conn *conn, const struct spokei_http_request *request);
	/* The response was written, or cannot be written because the peer is gone. Not called after
	 * a timeout. NULL: not needed. */
	void (*sent)(struct spokei_http_conn *conn);
	/* All that was appended to a stream has been written. NULL: not needed. */
	void (*writable)(struct spokei_http_conn *conn);
	/* The connection was closed, by the peer, a timeout or this side. Its memory is valid until
	 * the turn ends. Called exactly once. */
	void (*closed)(struct spokei_http_conn *conn);
};

/* 0: the default of the same name above. The owner may change limits of a server later, for
 * connections that it accepts from then on. */
struct spokei_http_limits {
	size_t out_max;      /* bytes of a connection that wait to be written */
	size_t body_max;     /* bytes of a request's body; at most 131,072 */
	uint64_t open_ns;    /* for a stream that is not a plain socket to open; 0: request_ns */
	uint64_t request_ns; /* for a request to arrive completely */
	/* For a response to be given and written completely; for a stream whose output waits, the
	 * time without progress. */
	uint64_t slow_ns;
	uint64_t linger_ns; /* for the peer to close first, after the response */
};

/* The state that all connections of a server share; embedded in its owner. */
struct spokei_http_server {
	struct spoke_engine *engine;
	const struct spokei_http_up *up;
	struct spokei_http_limits limits;
	/* Of connections that are accepted from now on. NULL: plain sockets. */
	const struct spokei_stream_kind *stream;
	/* Connections with an incomplete request, streams, and connections after a response was
	 * written, oldest first; and the others. */
	struct spoke_list reading;
	struct spoke_list streams;
	struct spoke_list lingering;
	struct spoke_list conns;
	uint32_t reading_count;
	uint32_t stream_count;
	unsigned timer_class;
	struct spokei_bucket reports; /* events of connections that this side closes */
};

/* Initialises a server without connections. Returns 0, or SPOKE_ELIMIT: the engine's wheel has no
 * class left. `limits`: NULL for all defaults. */
SPOKE_MUST_USE int spokei_http_server_init(struct spokei_http_server *server,
					   struct spoke_engine *engine,
					   const struct spokei_http_up *up,
					   const struct spokei_http_limits *limits);

/* Closes all connections at once. The server's memory has to stay valid until the turn ends. */
void spokei_http_server_close(struct spokei_http_server *server);

/* Ends all streams. Other connections end by themselves, so a server that accepts none is drained
 * once the last one is closed. */
void spokei_http_server_drain(struct spokei_http_server *server);

/* Closes the connection that has been without a whole request for longest. Returns false if there
 * is none. */
bool spokei_http_drop_unread(struct spokei_http_server *server);

/* Closes the connection that lingers for longest after its response. If there is none, closes an
 * unread one as above. */
bool spokei_http_make_room(struct spokei_http_server *server);

/* Takes over an accepted descriptor. Returns 0, SPOKE_ENOMEM or SPOKE_ELIMIT; after an error the
 * descriptor is closed, and up->closed() is not called. */
SPOKE_MUST_USE int spokei_http_accept(struct spokei_http_server *server, int fd,
				      const struct spoke_address *peer,
				      struct spokei_http_conn **ret_conn);

/* Returns the stream after `before`, or the first one for NULL; NULL: there is none. */
struct spokei_http_conn *spokei_http_next_stream(const struct spokei_http_server *server,
						 const struct spokei_http_conn *before);

/* --- a connection */

/* Returns the user's own memory of a connection; zeroed at first. */
void *spokei_http_user(struct spokei_http_conn *conn);

struct spokei_http_server *spokei_http_server_of(const struct spokei_http_conn *conn);

/* Print the addresses of the peer, and of this side as the peer reached it; false: unknown. */
void spokei_http_peer(const struct spokei_http_conn *conn, char text[SPOKEI_HTTP_ADDRESS]);
bool spokei_http_local(const struct spokei_http_conn *conn, char text[SPOKEI_HTTP_ADDRESS]);

/* Returns the peer's address, as it was accepted. */
const struct spoke_address *spokei_http_peer_address(const struct spokei_http_conn *conn);

/* Has the peer proven a name, by a certificate? */
bool spokei_http_is_known(const struct spokei_http_conn *conn);

/* Is it a stream that has not been ended? */
bool spokei_http_streams(const struct spokei_http_conn *conn);

/* Is it such a stream, without output that waits? */
bool spokei_http_idle(const struct spokei_http_conn *conn);

/*
 * Responds to the request with response->len bytes of `body`, which is copied. Returns 0,
 * SPOKE_ENOMEM, SPOKE_ETOOLARGE or, after the connection was closed, SPOKE_ECLOSED. After an error
 * there is no response yet: the user gives a smaller one, or closes the connection.
 */
SPOKE_MUST_USE int spokei_http_respond(struct spokei_http_conn *conn,
				       const struct spokei_http_response *response,
				       const void *body);

/* The same with a sentence as the body; closes the connection if there is no memory for it.
 * `allow`: the allowed methods, for status 405; or NULL. */
void spokei_http_respond_text(struct spokei_http_conn *conn, int status, const char *allow,
			      const char *sentence);

/* Begins a response of unknown length, with the first response->len bytes of its body. A HEAD
 * request gets the head only, and no stream begins. Returns as above. */
SPOKE_MUST_USE int spokei_http_stream(struct spokei_http_conn *conn,
				      const struct spokei_http_response *response,
				      const void *body);

/* Appends to a stream: writes as much as the system takes now, and keeps the rest. Returns 0 or an
 * error, after which the stream has a gap and has to be closed. */
SPOKE_MUST_USE int spokei_http_send(struct spokei_http_conn *conn, const void *bytes, size_t len);

/* Ends a stream once its output is written. Ignored in other states. */
void spokei_http_end(struct spokei_http_conn *conn);

/* Ends the connection of a byte stream, if it is such a stream: its peer is not accepted any more.
 * For spokei_tls_watch(). */
void spokei_http_finish_stream(struct spokei_stream *stream);

/* Closes a connection at once, in any state. */
void spokei_http_close(struct spokei_http_conn *conn);

/*
 * Takes the descriptor, unwatched, from a connection whose request waits for its response. The
 * connection ends, and up->closed() is not called. Returns -1, and does nothing, if the peer has
 * sent more than the request, has ended its side or reads nothing, or if it is no plain socket.
 */
SPOKE_MUST_USE int spokei_http_detach(struct spokei_http_conn *conn);

struct spokei_http_server;

#endif
