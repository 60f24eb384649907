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

/* Reads responses, for tools. It has no functions but cut() and read(), and cut->to_head tells it
 * which responses have no body. The id of a message is its status. They answer the requests in
 * their order, but for status 100 and the like, which are events. */
extern const struct spokei_wire spokei_wire_http_replies;

#endif
