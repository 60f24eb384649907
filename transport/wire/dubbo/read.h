/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the values of a body into the fields of a message. After an error the fields are not valid.
 * Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H

#include "transport/codec/codec.h"
#include "transport/wire/message.h"

/* Returns 0, an error of the validator, SPOKE_EBADREQUEST, SPOKE_ETOOLARGE, or SPOKE_EUNSUPPORTED
 * for generic arguments in an unsupported form. Uses and updates the memo, if there is one; an
 * error leaves it unchanged. */
SPOKE_MUST_USE int spokei_dubbo_read_request(const struct spokei_wire_limits *limits,
					     struct spokei_memo *memo, struct spoke_span values,
					     struct spokei_message *message);

/* Does the same if it is decided already whether the names equal those of the memo. `places`: those
 * of the values, which a codec of this library has made; NULL: they must be looked for. */
SPOKE_MUST_USE int spokei_dubbo_read_named(const struct spokei_wire_limits *limits,
					   struct spokei_memo *memo, bool known,
					   const struct spokei_codec_places *places,
					   struct spoke_span values,
					   struct spokei_message *message);

/* The message already has its status. Returns 0, an error of the validator, SPOKE_EBADREPLY or
 * SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_dubbo_read_reply(const struct spokei_wire_limits *limits, bool checked,
					   struct spoke_span values,
					   struct spokei_message *message);

#endif
