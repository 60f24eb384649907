/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a call: a request at one provider, and how that ended. Embedded in a call; more of
 * them where a policy has several under way at a time. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_ATTEMPT_H
#define SPOKEI_CLUSTER_CALL_ATTEMPT_H

#include "cluster/endpoints/endpoint.h"
#include "transport/conn/pending.h"

#include <spoke/policy.h>

struct spokei_call;

struct spokei_attempt {
	struct spokei_pending pending;
	struct spokei_call *call;
	struct spokei_endpoint *endpoint; /* while it is under way; NULL: of a push */
};

/* What the end of an attempt means for another one. */
static inline enum spoke_policy_fate spokei_attempt_fate(int error, bool written)
{
	switch (error) {
	case SPOKE_OK:
		return SPOKE_FATE_OK;
	case SPOKE_EREMOTE:
	case SPOKE_EBADREQUEST:
		return SPOKE_FATE_ANSWERED;
	case SPOKE_EREFUSED:
	case SPOKE_EEXPIRED:
	case SPOKE_ENOSERVICE:
		return SPOKE_FATE_SAFE;
	default:
		break;
	}
	/* What could not be written would not be elsewhere either, unless it was for want of room,
	 * or for what the wire there has no place for. */
	if (spoke_error_is_local(error) && error != SPOKE_ELIMIT && error != SPOKE_ENOMEM &&
	    error != SPOKE_EUNAVAILABLE && error != SPOKE_ENOPROVIDER &&
	    error != SPOKE_EUNSUPPORTED)
		return SPOKE_FATE_ANSWERED;
	return written ? SPOKE_FATE_UNSURE : SPOKE_FATE_SAFE;
}

#endif
