/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares whole messages in Hessian 2 with the same in msgpack, whose values the codec translates
 * afterwards. Each function returns NULL, or a sentence about the difference.
 */
#ifndef TESTS_TRANSPORT_TRANSLATED_H
#define TESTS_TRANSPORT_TRANSLATED_H

#include "transport/wire/message.h"

/* `message` was read without error from this frame in Hessian 2. Must equal the message that is
 * read from a msgpack frame with the translated values. */
const char *translated_read(const struct spokei_wire_limits *limits, struct spoke_span frame,
			    const struct spokei_message *message);

/* `frame` was written from this message in Hessian 2. Its body must be the translation of the body
 * that is written in msgpack. */
const char *translated_write(const struct spokei_wire_limits *limits,
			     const struct spokei_message *message, struct spoke_span frame);

#endif
