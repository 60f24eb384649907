/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What attachments a user may give: a map of texts, each once, without those that are spoke's own.
 * Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_ATTACHMENTS_H
#define SPOKEI_TRANSPORT_WIRE_ATTACHMENTS_H

#include <spoke/value.h>

/* Returns 0, what is wrong with the bytes, SPOKE_ETYPE (no map, or a key that is no text),
 * SPOKE_EEXIST (a key twice), SPOKE_EINVAL ("timeout" and "_TO", which say what time remains) or
 * SPOKE_ELIMIT (too many). None, { 0 }, are fine; and in a reply spoke has no words of its own. */
SPOKE_MUST_USE int spokei_attachments_check(struct spoke_value attachments, bool of_reply);

#endif
