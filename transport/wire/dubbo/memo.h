/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memo as Dubbo's requests use it: the names that begin the body, and the attachments that end
 * it. Most requests of a connection have both as the one before. Stateless but for the memo; any
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_MEMO_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_MEMO_H

#include "transport/wire/dubbo/body.h"
#include "transport/wire/memo.h"

/* The names that attachments tell anew: path, version and group; data NULL: not told. */
struct spokei_dubbo_said {
	struct spoke_span name[3];
};

/* Service and version as they stand before the arguments, whatever the attachments say. */
struct spokei_dubbo_stood {
	struct spoke_span service;
	struct spoke_span version;
};

/* Fills in the names that begin the body at `at`, of which the memo knows the bytes. */
void spokei_dubbo_recall(const struct spokei_memo *memo, const unsigned char *at,
			 struct spokei_message *message);

/*
 * Reads a request whose beginning the memo knows, if it is as the one before but for its arguments,
 * and these are scalars: nothing else in it has to be looked at. False says nothing.
 */
bool spokei_dubbo_read_alike(const struct spokei_memo *memo, struct spoke_span values,
			     struct spokei_message *message);

/* Did the attachments of the one before tell the same? */
bool spokei_dubbo_said_again(const struct spokei_memo *memo, const struct spokei_dubbo_said *said);

/* Keeps the names, which begin at `at`, before the arguments at `args`. */
void spokei_dubbo_remember(struct spokei_memo *memo, const unsigned char *at,
			   const unsigned char *args, const struct spokei_message *message,
			   const struct spokei_dubbo_stood *stood);

/* Keeps the attachments of the body, or what they told, behind the names. */
void spokei_dubbo_remember_said(struct spokei_memo *memo, const struct spokei_dubbo_body *body,
				const struct spokei_dubbo_said *said, int64_t timeout_ms);

#endif
