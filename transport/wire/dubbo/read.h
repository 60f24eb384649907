/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bodies of Dubbo messages. Stateless but for the memo; any thread. */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H

#include "transport/wire/memo.h"
#include "transport/wire/message.h"

/*
 * Reads a body into a message whose head was read. The message may point into `scratch`, if its
 * serialization is another than msgpack. Uses and updates the memo of requests, if there is one; an
 * error leaves it unchanged. After an error the fields of the body are not valid.
 *
 * Returns 0, an error of the validator or of the codec, SPOKE_EBADREQUEST, SPOKE_EBADREPLY,
 * SPOKE_ETOOLARGE, or SPOKE_EUNSUPPORTED (there is no codec, or generic arguments have an
 * unsupported form).
 */
SPOKE_MUST_USE int spokei_dubbo_read_body(const struct spokei_wire_limits *limits,
					  struct spokei_memo *memo, struct spoke_span body,
					  struct spokei_buffer *scratch,
					  struct spokei_message *message);

#endif
