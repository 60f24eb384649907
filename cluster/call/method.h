/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A method to call: everything that its calls have in common, put together once. It belongs to a
 * caller. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_METHOD_H
#define SPOKEI_CLUSTER_CALL_METHOD_H

#include "cluster/balancer/state.h"
#include "cluster/config/owners.h"
#include "cluster/filter/limit.h"
#include "cluster/policy/budget.h"
#include "transport/wire/message.h"

#include <spoke/call.h>
#include <spoke/policy.h>

#include <stdbool.h>
#include <stdint.h>

struct spokei_caller;
struct spokei_conn;
struct spokei_figures;
struct spokei_key_values;

#define SPOKEI_NAME_MAX 65536u /* bytes of a service or method name */

/* Reads the settings from the values of the keys. */
void spokei_call_settings_fill(const struct spokei_key_values *values,
			       struct spokei_call_settings *ret);

static inline uint32_t spokei_settings_retries(const struct spokei_call_settings *settings,
					       const struct spoke_policy *policy)
{
	return settings->retries == SPOKEI_RETRIES_OF_POLICY ? policy->retries : settings->retries;
}

/* May also the only attempt of a call have to wait, or to end early? */
static inline bool spokei_settings_bound_one(const struct spokei_call_settings *settings)
{
	return settings->wait_ready ||
	       (settings->attempt_ns && settings->attempt_ns != SPOKEI_ATTEMPT_WHOLE);
}

struct spoke_method {
	struct spokei_caller *caller;
	struct spokei_figures *figures; /* the engine's */
	size_t type_count;              /* of a generic call: number of arguments; 0: any */
	uint64_t sticky;                /* id of the endpoint that was called last */
	/* A method of any version or group ("*") takes the texts of the endpoint that it calls:
	 * they are in `which`, of the endpoint with the id `which_id` (0: none yet). */
	bool any_version;
	bool any_group;
	bool tickets_told; /* an event has named it: see spoke_consumer_options.takes_tickets */
	uint64_t which_id;
	struct spokei_limit limit;            /* on concurrency, and on calls per second */
	struct spokei_call_settings settings; /* a provider's method has only the timeout */
	struct spokei_prefix {
		const struct spokei_wire *wire; /* that `bytes` is encoded for; NULL: none yet */
		uint64_t profile; /* id of the peer's profile, or 0: requests have further
				     attachments */
		struct spokei_buffer bytes;
		uint64_t made_for; /* id of the peer's profile in any case */
	} prefix;
	/* The common part of all requests of the method; it points into `texts`. The rest is
	 * filled in from the arguments of a call just before its request is sent. */
	struct spokei_message request;

	/* Of few calls. */
	struct spoke_list node; /* of the caller */
	const char *name;
	/* The attachments of a request to a peer that gets more than those of the call. They are
	 * valid for the prefix if `lasts`: those of the call are not among them. */
	struct spokei_extras {
		bool lasts;
		struct spokei_buffer bytes;
	} extras;
	struct spoke_span service; /* its name; the request contains the peer's path instead */
	struct spoke_method_options said; /* the user's options, without their texts */
	struct spokei_hedge hedge;        /* of response times, if `hedge.after` asks for it */
	struct spokei_balancer_state own_balancer_state;
	struct spokei_balancer_state
		*balancer_state; /* the method's own, or the consumer's; NULL: a provider's */
	struct spokei_buffer which;
	struct spoke_value fallback; /* { 0 }: none; points into `texts` */
	size_t size;                 /* of this struct, with its texts */
	unsigned char texts[];
};

/* Defaults for what the options of a method leave out. */
struct spokei_method_presets {
	const char *service; /* "": none */
	const char *version;
	const char *group;
	const char *advice; /* for a method without a service; NULL: it needs none */
	struct spokei_call_settings settings;
};

/* As spoke_consumer_method(). */
SPOKE_MUST_USE int spokei_method_new(struct spokei_caller *caller, const char *name,
				     const struct spoke_method_options *options,
				     const struct spokei_method_presets *presets,
				     struct spoke_method **ret_method);

/* An endpoint of the caller remembers requests: marks the calls of its methods. */
void spokei_methods_mark(struct spokei_caller *caller);

/* Frees all methods of a caller. */
void spokei_methods_free(struct spokei_caller *caller);

/* Prepares `request`, whose attachments are those of the call, for the wire and the profile of a
 * connection, and encodes the prefix; without memory there is none. Returns 0, SPOKE_ENOMEM or
 * SPOKE_ETOOLARGE (the attachments). */
SPOKE_MUST_USE int spokei_method_turn_to(struct spoke_method *method, struct spokei_conn *conn);

/* Has the next request prepared anew, because the settings or the names have changed. */
static inline void spokei_method_forget_peer(struct spoke_method *method)
{
	method->prefix.wire = NULL;
}

/* Applies settings of the method that have changed. */
void spokei_method_apply(struct spoke_method *method);

/* Returns how long a call may take until its callback. Any thread. */
uint64_t spokei_method_longest(const struct spoke_method *method,
			       const struct spoke_call_options *options);

#endif
