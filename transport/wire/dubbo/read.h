/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a body, checked, in their places. Both functions fill the message's fields for
 * their kind; when they fail, what they filled means nothing. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_READ_H

#include "transport/wire/message.h"

/* Returns 0, a skim's error, SPOKE_EBADREQUEST, SPOKE_ETOOLARGE, or SPOKE_EUNSUPPORTED for a
 * generic call whose arguments are in another form than plain values. The memo, if there is one, is
 * used and updated; what is wrong leaves it as it was. */
SPOKE_MUST_USE int spokei_dubbo_read_request(const struct spokei_wire_limits *limits,
					     struct spokei_memo *memo, struct spoke_span values,
					     struct spokei_message *message);

/* The message has the status. Returns 0, a skim's error, SPOKE_EBADREPLY or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_dubbo_read_reply(const struct spokei_wire_limits *limits,
					   struct spoke_span values,
					   struct spokei_message *message);

#endif
