/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake of WebSocket (RFC 6455, section 4), from the server's side: checks the fields of a
 * request, and writes the head that answers it. Origin and Host are checked by `guard`. Extensions
 * are never accepted: the window of permessage-deflate would cost 64 KB for each connection.
 * Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_UPGRADE_H
#define SPOKEI_TRANSPORT_HTTP_UPGRADE_H

#include <spoke/value.h>

#include <stdbool.h>

#define SPOKEI_UPGRADE_ACCEPT 29u    /* bytes of Sec-WebSocket-Accept, with the NUL */
#define SPOKEI_UPGRADE_PROTOCOL 64u  /* bytes of a subprotocol's name, at most */
#define SPOKEI_UPGRADE_HEAD_MAX 256u /* bytes of the head that accepts, at most */

/* The fields of a request; an absent field has NULL for data. A field that occurred more than once
 * has its values joined by ", ", except for `key` and `version`, which may occur only once. */
struct spokei_upgrade {
	struct spoke_span upgrade;    /* Upgrade */
	struct spoke_span connection; /* Connection */
	struct spoke_span key;        /* Sec-WebSocket-Key */
	struct spoke_span version;    /* Sec-WebSocket-Version */
	struct spoke_span protocols;  /* Sec-WebSocket-Protocol */
};

/*
 * Checks the fields of a GET request. Returns 101, or the status to reject it with: 400 (a field is
 * wrong or missing), or 426 (this is no upgrade to WebSocket, or another version than 13; the
 * answer must have the fields "Upgrade: websocket" and "Sec-WebSocket-Version: 13").
 */
int spokei_upgrade_check(const struct spokei_upgrade *request);

/* Returns whether the client has offered this subprotocol. Names are compared with their case. */
bool spokei_upgrade_offers(const struct spokei_upgrade *request, const char *protocol);

/* Writes the value of Sec-WebSocket-Accept for a key, with a NUL. Returns false if the key is not
 * the base64 of 16 bytes; `accept` is unchanged then. */
bool spokei_upgrade_accept(struct spoke_span key, char accept[SPOKEI_UPGRADE_ACCEPT]);

/*
 * Writes the head of the response that accepts a checked request; returns its bytes, without a NUL.
 * `protocol`, an HTTP token below SPOKEI_UPGRADE_PROTOCOL bytes, must be one that the client has
 * offered, or NULL. Chromium ends a connection whose subprotocol was asked for and not chosen.
 */
size_t spokei_upgrade_head(const struct spokei_upgrade *request, const char *protocol,
			   char head[SPOKEI_UPGRADE_HEAD_MAX]);

#endif
