/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memo as Dubbo's requests use it: the names before the arguments and the attachments after
 * them. In most requests of a connection both equal those of the previous one. Stateless except for
 * the memo; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_MEMO_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_MEMO_H

#include "transport/wire/dubbo/body.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/memo.h"

/* The names that attachments override: path, version and group; data NULL: not set. */
struct spokei_dubbo_said {
	struct spoke_span name[3];
};

/* Service and version as they stand before the arguments, without the attachments. */
struct spokei_dubbo_stood {
	struct spoke_span service;
	struct spoke_span version;
};

/* Fills in the names at the start of the body at `at`; the memo knows their bytes. */
static inline void spokei_dubbo_recall(const struct spokei_memo *memo, const unsigned char *at,
				       struct spokei_message *message)
{
	message->service = spokei_memo_span(at, memo->service);
	message->version = spokei_memo_span(at, memo->version);
	message->method = spokei_memo_span(at, memo->method);
	message->types = spokei_memo_span(at, memo->types);
	message->bare = memo->bare;
}

/* Does the same, and fills in the attachments at `tail`, which the memo also knows. `len`: the
 * length of the names. */
static inline void spokei_dubbo_recall_all(const struct spokei_memo *memo, size_t len,
					   const unsigned char *at, const unsigned char *tail,
					   struct spokei_message *message)
{
	struct spoke_span *name[3] = { &message->service, &message->version, &message->group };

	spokei_dubbo_recall(memo, at, message);
	for (unsigned i = 0; i < 3; i++)
		if (memo->said[i].at > 0 && (i > 0 || memo->said[i].len > 0))
			*name[i] = spokei_memo_span(tail - len, memo->said[i]);
	if (spokei_span_is(message->version, SPOKEI_DUBBO_NO_VERSION))
		message->version.len = 0;
	message->attachments = (struct spoke_value){ tail, memo->tail };
	message->timeout_ms = memo->timeout_ms;
	message->repeat = true;
}

/*
 * Reads a request that differs from the previous one only in its arguments, if these are scalars;
 * nothing else is read then. False: the request must be read completely.
 */
bool spokei_dubbo_read_alike(const struct spokei_memo *memo, struct spoke_span values,
			     struct spokei_message *message);

/* Returns whether the attachments of the previous request override the same names. */
bool spokei_dubbo_said_again(const struct spokei_memo *memo, const struct spokei_dubbo_said *said);

/* Keeps the names, which begin at `at`; the arguments begin at `args`. */
void spokei_dubbo_remember(struct spokei_memo *memo, const unsigned char *at,
			   const unsigned char *args, const struct spokei_message *message,
			   const struct spokei_dubbo_stood *stood);

/* Keeps the attachments of the body, or the names that they override, after the names. */
void spokei_dubbo_remember_said(struct spokei_memo *memo, const struct spokei_dubbo_body *body,
				const struct spokei_dubbo_said *said, int64_t timeout_ms);

#endif
