/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the endpoint and the connection that take an attempt. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_CALL_PICK_H
#define SPOKEI_CLUSTER_CALL_PICK_H

#include <spoke/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spoke_method;
struct spokei_call_args;
struct spokei_caller;
struct spokei_conn;
struct spokei_endpoint;

/* Ids of endpoints at which a call was tried already. */
struct spokei_tried {
	const uint64_t *ids;
	size_t count;
};

/* Picks an endpoint for a call, and the connection to it. `tried` may be NULL. Returns as
 * spokei_directory_pick(). */
SPOKE_MUST_USE int spokei_call_pick(struct spoke_method *method,
				    const struct spokei_call_args *args,
				    const struct spokei_tried *tried,
				    struct spokei_endpoint **ret_endpoint,
				    struct spokei_conn **ret_conn);

/* The same, for a consumer that is known to have several endpoints. */
SPOKE_MUST_USE int spokei_call_pick_among(struct spoke_method *method,
					  const struct spokei_call_args *args,
					  const struct spokei_tried *tried,
					  struct spokei_endpoint **ret_endpoint,
					  struct spokei_conn **ret_conn);

/* An endpoint had no room for an attempt: may another endpoint have room? */
bool spokei_call_has_room_elsewhere(const struct spokei_caller *caller,
				    struct spokei_endpoint *endpoint);

/* The same, after the beginning of an attempt there has returned `error`. */
static inline bool spokei_call_fits_elsewhere(const struct spokei_caller *caller,
					      struct spokei_endpoint *endpoint, int error)
{
	return error == SPOKE_ELIMIT && spokei_call_has_room_elsewhere(caller, endpoint);
}

#endif
