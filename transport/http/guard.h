/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the origin of a request, against pages of other sites in a visitor's browser. Such a page
 * can send requests to loopback, and read the responses under a name that it resolves to loopback
 * (DNS rebinding). It cannot choose the Host header, and does not have the token. Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_GUARD_H
#define SPOKEI_TRANSPORT_HTTP_GUARD_H

#include <spoke/value.h>

#include <stdbool.h>

#define SPOKEI_GUARD_WHY 256u /* bytes of a sentence, with the NUL */

/*
 * Is this Host header allowed? Allowed are "localhost", 127.x.x.x, [::1], the wildcard addresses,
 * the address that the connection came to (`local`, as text; mapped or not), and the
 * comma-separated `names`, each with any port. On a unix socket, which browsers cannot reach, every
 * host is allowed.
 */
bool spokei_guard_host(struct spoke_span host, const char *local, const char *names);

/* The same where the own address is not known: allowed are addresses in digits, which no name
 * server can give another meaning, "localhost" and the names. */
bool spokei_guard_digits(struct spoke_span host, const char *names);

/* Finds an origin in a list separated by commas. Returns its number, from 1 on; 0: it is not there.
 */
unsigned spokei_guard_listed(struct spoke_span origin, const char *origins);

/* Returns the origin with this number; { 0 }: there is none. */
struct spoke_span spokei_guard_origin_of(const char *origins, unsigned number);

/*
 * Check the lists of options. Return NULL, or a sentence in `why` about the first item that no
 * request can have. An origin is "https://a.example" or "http://a.example:8080", in lower case and
 * without the port that the scheme has anyway; "null" is sent by pages of every site. A name has no
 * port.
 */
const char *spokei_guard_check_origins(const char *origins, char why[SPOKEI_GUARD_WHY]);
const char *spokei_guard_check_names(const char *names, char why[SPOKEI_GUARD_WHY]);

/* Is the Origin header this scheme, e.g. "https://", and this host? */
bool spokei_guard_origin_at(struct spoke_span origin, const char *scheme, struct spoke_span host);

/* Is the Origin header absent, or that of a page of this server? */
bool spokei_guard_origin(struct spoke_span origin, struct spoke_span host);

/* May a request without Origin be from a page of this server, or from no page at all? `site` is its
 * Sec-Fetch-Site. A page of another site can load e.g. an image without telling its origin. */
bool spokei_guard_site(struct spoke_span site);

/* Is the Authorization header "Bearer" and the token? Takes the same time wherever they differ. */
bool spokei_guard_token(struct spoke_span authorization, const char *token);

#endif
