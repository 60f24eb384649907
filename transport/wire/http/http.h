/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP wire: calls of HTTP clients, with bodies in JSON. transport/HTTP.md describes paths,
 * headers and statuses. It serves only: a side that uses it sends no requests. Requests of a
 * connection are served one after the other, because responses have no ids.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_HTTP_HTTP_H
#define SPOKEI_TRANSPORT_WIRE_HTTP_HTTP_H

#include "transport/wire/message.h"

extern const struct spokei_wire spokei_wire_http;

/* Refuses each request with status 403, where HTTP is off. */
extern const struct spokei_wire spokei_wire_http_off;

/* Reads responses, for tools. It has no function but next(), and cut.to_head tells it
 * which responses have no body. The id of a message is its status. They answer the requests in
 * their order, but for status 100 and the like, which are events. */
extern const struct spokei_wire spokei_wire_http_replies;

/* --- ids
 *
 * HTTP has no ids. The id of a request holds what its response depends on: these bits, the number
 * of the allowed origin, and the status if the request cannot become a call. */

#define SPOKEI_HTTP_ID_HEAD 1u     /* the response has no body */
#define SPOKEI_HTTP_ID_LAST 2u     /* the connection ends with the response */
#define SPOKEI_HTTP_ID_OLD 4u      /* the client of HTTP/1.0 wants to keep the connection */
#define SPOKEI_HTTP_ID_CONTINUE 8u /* the client waits to send the body */
#define SPOKEI_HTTP_ID_OPTIONS 16u /* asks for the allowed methods */
#define SPOKEI_HTTP_ID_ORIGIN 8u   /* shift; 8 bits */
#define SPOKEI_HTTP_ID_STATUS 16u  /* shift; 10 bits */
#define SPOKEI_HTTP_ORIGINS_MAX 255u

/* --- the service that describes a provider
 *
 * The service that describes a provider: GET / and GET /openapi.json call its methods. The fields
 * of an error, which are written and described. */

#define SPOKEI_HTTP_ABOUT "spoke.Provider"
#define SPOKEI_HTTP_SERVICES "services"
#define SPOKEI_HTTP_OPENAPI "openapi"

/* The fields of an error's body: X(name, type in a schema of JSON, always sent, value). A value is
 * an expression over `message`; replies.c has the functions that it calls. An empty one is not
 * sent. */
#define SPOKEI_HTTP_ERROR_FIELDS(X)                                                                \
	X("error", string, true, spokei_span_of(spoke_errname(message->error)))                    \
	X("code", integer, true, message->error_code)                                              \
	X("text", string, true, error_text(message))                                               \
	X("written", boolean, true, may_have_run(message))                                         \
	X("class", string, false, message->error_class)                                            \
	X("fields", object, false, message->value)

#endif
