/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls need of whoever makes them, a consumer or a provider that pushes: the calls that are
 * under way, and the methods they are of. Which connection a call takes is not decided here. Part
 * of its owner, on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_CALLER_H
#define SPOKEI_CLUSTER_CALL_CALLER_H

#include "cluster/balancer/state.h"
#include "cluster/call/attempt.h"
#include "cluster/call/budget.h"
#include "cluster/call/report.h"
#include "cluster/call/retry_queue.h"
#include "cluster/call/settings.h"
#include "cluster/filter/limit.h"
#include "core/engine/task.h"
#include "core/memory/slab.h"
#include "transport/conn/link.h"

#include <spoke/call.h>

struct spokei_caller {
	struct spoke_engine *engine;
	struct spokei_link *link; /* the owner's */
	bool closed;              /* no more calls */
	bool pushes;              /* a provider's: each call says whom it is for */
	struct spokei_slab calls; /* of struct spokei_call, by handle */
	struct spoke_list methods;
	/* Of a consumer's: those with more than one attempt. */
	struct spokei_retry_state_blocks blocks;
	size_t kept; /* bytes of courses, at most as many as may wait to be written */
	struct spokei_retry_queue retry;
	struct spokei_budget budget;
	struct spokei_report report;
	uint64_t next_id;         /* of tickets */
	struct spokei_task sweep; /* ends those that wait, as it closes; on the engine's soon */
	/* It is closed, and its last call has ended. NULL: not wanted. */
	void (*idle)(struct spokei_caller *caller);
};

struct spokei_call {
	struct spokei_attempt attempt;
	struct spokei_caller *caller;
	struct spoke_method *method;
	uint64_t handle;
	spoke_call_done_fn done; /* may be NULL */
	void *arg;
	struct spokei_retry_state *retry; /* NULL: one attempt, and that is all */
	const struct spoke_policy *policy;
	uint8_t filters;           /* that it has passed, and that are asked after it */
	bool limited;              /* it counts towards its method's limit */
	bool cancelled;            /* ends so, and soon */
	struct spokei_task cancel; /* on the engine's soon */
};

struct spoke_method {
	struct spokei_caller *caller;
	struct spoke_list node;        /* of the caller */
	const char *name;              /* the request's method, as a string */
	struct spokei_message request; /* what every request says; points into `texts` */
	struct spokei_prefix {
		const struct spokei_wire *wire; /* the prefix is of this one; NULL: none yet */
		uint8_t codec;                  /* ... and of the codec with this id */
		struct spokei_buffer bytes;
	} prefix;
	struct spokei_call_settings settings; /* of a provider's only the timeout */
	struct spoke_method_options said;     /* of a consumer's; without its texts */
	struct spokei_limit limit;            /* actives, and calls per second */
	struct spokei_balancer_state own_balancer_state;
	struct spokei_balancer_state
		*balancer_state; /* its own, or the consumer's; NULL: a provider's */
	uint64_t sticky;         /* id of the endpoint called last */
	/* Of any version or group ("*"): `request` says what the endpoint of this id has, 0: none
	 * yet; the texts are in `which`. */
	bool any_version;
	bool any_group;
	uint64_t which_id;
	struct spokei_buffer which;
	struct spoke_value fallback; /* { 0 }: none; points into `texts` */
	size_t type_count;           /* of a generic call, if they are given: as many arguments */
	size_t size;                 /* of this, with its texts */
	unsigned char texts[];
};

/* What a method is where its options do not say it. */
struct spokei_method_presets {
	const char *service; /* "": none */
	const char *version;
	const char *group;
	const char *advice; /* said when there is no service; NULL: it needs none */
	struct spokei_call_settings settings;
};

/* Takes at most as many calls at a time as the link may have, and `tickets` beside them; it must
 * not be moved afterwards. */
void spokei_caller_init(struct spokei_caller *caller, struct spokei_link *link, uint32_t tickets);

/* The same numbers have changed. Calls under way stay; there may be more than the link may have,
 * and new ones are taken when there are not. */
void spokei_caller_resize(struct spokei_caller *caller, uint32_t pending_max, uint32_t tickets);

/* The limits of a method have changed. Calls under way count, whenever they began; tickets do not.
 */
void spokei_caller_limit(struct spoke_method *method, uint32_t active_max, uint32_t per_second);

/* No call is under way any more: gives all memory back, that of the methods too. */
void spokei_caller_fini(struct spokei_caller *caller);

/* As spoke_consumer_method(). */
SPOKE_MUST_USE int spokei_method_new(struct spokei_caller *caller, const char *name,
				     const struct spoke_method_options *options,
				     const struct spokei_method_presets *presets,
				     struct spoke_method **ret_method);

#endif
