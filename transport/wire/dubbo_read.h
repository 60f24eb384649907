/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a body, in their places. Both functions fill the message's fields for their kind;
 * when they fail, what they filled means nothing. Stateless; any thread.
 */
#ifndef SPOKEI_DUBBO_READ_H
#define SPOKEI_DUBBO_READ_H

#include "transport/wire/message.h"

/* `values` are checked. Returns 0, SPOKE_EBADREQUEST, SPOKE_ETOOLARGE, or SPOKE_EUNSUPPORTED for
 * a generic call whose arguments are in another form than plain values. */
SPOKE_MUST_USE int spokei_dubbo_read_request(const struct spokei_wire_limits *limits,
					     struct spoke_span values,
					     struct spokei_message *message);

/* `values` are checked; the message has the status. Returns 0, SPOKE_EBADREPLY or
 * SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_dubbo_read_reply(const struct spokei_wire_limits *limits,
					   struct spoke_span values,
					   struct spokei_message *message);

#endif
