/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask: against pages of other sites that a visitor's browser has open. Such a page can send
 * requests to loopback, and by a name that it lets lead there ("DNS rebinding") read the answers;
 * what it cannot do is to choose the Host header, or to know the token. Deciders; any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_GUARD_H
#define SPOKEI_TRANSPORT_HTTP_GUARD_H

#include <spoke/value.h>

#include <stdbool.h>

/*
 * May it be asked under this name? Under "localhost", 127.x.x.x, [::1] and the wildcards, under the
 * address that the connection came to, whose text `local` is, and under `names`, with commas
 * between them; with any port. By a unix socket, which no browser reaches, under any.
 */
bool spokei_guard_host(struct spoke_span host, const char *local, const char *names);

/* Does the page that asks, if it is one, come from here? */
bool spokei_guard_origin(struct spoke_span origin, struct spoke_span host);

/* Is it "Bearer" and the token? How long that takes tells nothing of how much of it is right. */
bool spokei_guard_token(struct spoke_span authorization, const char *token);

#endif
