/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the attachments that a user passes: a map with text keys, no key twice, none of spoke's
 * own keys. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_ATTACHMENTS_H
#define SPOKEI_TRANSPORT_WIRE_ATTACHMENTS_H

#include <spoke/value.h>

#define SPOKEI_ATTACHMENTS_MAX 256u /* of a call, or of a reply */

/* Returns 0, an error of the validator, SPOKE_ETYPE (not a map, or a key that is not a text),
 * SPOKE_EEXIST (duplicate key), SPOKE_EINVAL ("timeout" and "_TO", which carry the deadline) or
 * SPOKE_ELIMIT (too many). { 0 }, no attachments, is valid. Replies have no keys of spoke's own. */
SPOKE_MUST_USE int spokei_attachments_check(struct spoke_value attachments, bool of_reply);

#endif
