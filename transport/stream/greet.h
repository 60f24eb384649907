/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream over a socket whose peer is not known to be the right one, or may close at once: it
 * sends a greeting, and is open when the first bytes of an answer have come. Until then nothing
 * else is written, so no request is lost when another address has to be used instead. Afterwards
 * the stream is a plain socket. Streams that connect only. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_STREAM_GREET_H
#define SPOKEI_TRANSPORT_STREAM_GREET_H

#include "transport/stream/stream.h"

#include <spoke/value.h>

#define SPOKEI_GREETING_MAX 32u /* bytes of a greeting */
#define SPOKEI_GREETING_SAME 2u /* first bytes of a greeting, with which the answer begins, too */

/* A kind of stream with its greeting. It outlives the opening of its streams. */
struct spokei_greeting {
	struct spokei_stream_kind kind;
	unsigned char bytes[SPOKEI_GREETING_MAX];
	size_t len;
};

/* Makes a greeting of 2 to 32 bytes. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_greeting_new(const struct spoke_env *env, struct spoke_span bytes,
				       struct spokei_greeting **ret_greeting);

/* NULL is fine. */
void spokei_greeting_free(const struct spoke_env *env, struct spokei_greeting *greeting);

#endif
