/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortcuts for the most frequent messages in Hessian 2, as write.h and memo.h have them for
 * msgpack: requests and replies with a few scalars are translated in one step, without the codec.
 * The results equal those of the codec. All functions return false for any other message, with
 * nothing changed except `scratch`; the codec has to translate it. Stateless except for the memo;
 * any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_DIRECT_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_DIRECT_H

#include "transport/wire/memo.h"

/* Appends the frame of a request with a prefix, at most one argument, and no attachments of the
 * caller; or of a reply without attachments. */
bool spokei_dubbo_direct_write_request(const struct spokei_wire_limits *limits,
				       const struct spokei_message *message,
				       struct spokei_buffer *out);
bool spokei_dubbo_direct_write_reply(const struct spokei_wire_limits *limits,
				     const struct spokei_message *message,
				     struct spokei_buffer *out);

/* Reads a request whose names and attachments equal those of the memo. */
bool spokei_dubbo_direct_read_request(const struct spokei_memo *memo, struct spoke_span body,
				      struct spokei_buffer *scratch,
				      struct spokei_message *message);

/* Reads a reply without attachments, or with those that Java sends. */
bool spokei_dubbo_direct_read_reply(const struct spokei_wire_limits *limits, struct spoke_span body,
				    struct spokei_buffer *scratch, struct spokei_message *message);

/*
 * Surround the reading of a translated request with a memo, which may be NULL: the first function
 * makes the memo one of `body`'s names in msgpack and returns whether it knows them. The second one
 * makes it one of the untranslated bytes again; `values`: the translated body, of which the memo
 * now has the names.
 */
bool spokei_dubbo_direct_begin(struct spokei_memo *memo, struct spoke_span body);
void spokei_dubbo_direct_end(struct spokei_memo *memo, bool known, struct spoke_span body,
			     const struct spokei_message *message);

#endif
