/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a call: everything in which one call of a method differs from another. */
#ifndef SPOKEI_CLUSTER_CALL_ARGS_H
#define SPOKEI_CLUSTER_CALL_ARGS_H

#include <spoke/value.h>

struct spoke_lease;
struct spoke_policy;

/* Checked. The bytes belong to the user, or to the retry state that has copied them. */
struct spokei_call_args {
	struct spoke_span values;
	size_t count;                      /* of values */
	struct spoke_value attachments;    /* a map; { 0 }: none */
	struct spoke_span key;             /* the user's hash key; { 0 }: none */
	uint64_t timeout_ns;               /* per attempt */
	const struct spoke_policy *policy; /* NULL: the call is a push, or is not sent at all */
	const struct spoke_lease *lease;   /* of the user's options; NULL: none, or it was noted */
	bool one_way;
	bool optional; /* the attachments are those of filters: a wire without any drops them */
};

#endif
