/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: a fence of a provider keeps the highest fence number that it has seen under each name of
 * a lease, and refuses requests that come with a lower one. So a holder that was frozen and goes on
 * late does no harm. Calls carry name and number if they are made with the option `lease`.
 *
 *     error = spoke_fence_new(NULL, NULL, &fence);
 *     filters[0] = spoke_fence_filter(fence);
 *     options.filters = filters;
 *     options.filter_count = 1;
 *
 * A request with a lower number is answered with an exception, so no policy retries it. So is a
 * request with invalid attachments "spoke.lease" and "spoke.fence". The class of the exception is
 * java.lang.IllegalMonitorStateException, which RLock throws in a program that does not hold it.
 * Equal numbers pass, because a holder makes many calls.
 *
 * It knows what its own providers have seen since it was made. Several providers, also of several
 * engines, may share one. Where the data outlives the process, the handler compares numbers itself:
 * spoke_request_fence(). A number is believed: any caller may send any one without having the
 * lease, also over HTTP, and so shut out the holders of a name. The option `proven` restricts that.
 *
 * MessagePack-RPC has no attachments: such requests pass, unless the number is required.
 */
#ifndef SPOKE_FENCE_H
#define SPOKE_FENCE_H

#include <spoke/filter.h>

SPOKE_BEGIN_DECLS

struct spoke_env;
struct spoke_fence;

/* Options of a fence. Zero-initialised, all fields have their defaults. */
struct spoke_fence_options {
	uint32_t names_max; /* names whose number is kept; default 10,000, at most 1,000,000 */
	/* A name that was not seen for this long may make room for another; default 1 h. While no
	 * name is that old, a request with a further name ends with EREFUSED. */
	uint64_t keep_ns;
	bool required; /* requests without a fence number are refused, too, except "$echo" */
	/* Requests with a fence number are refused (EFORBIDDEN) if their caller has proven nothing:
	 * neither by a certificate nor as the user at a unix socket nor by a token or a signature.
	 * The key fence.proven of the provider's file does the same to all fences of a provider. */
	bool proven;
};

/* Makes a fence. `env`: borrowed; NULL: the host's. Returns 0, ERANGE or ENOMEM. Any thread. */
SPOKE_API SPOKE_MUST_USE int spoke_fence_new(const struct spoke_env *env,
					     const struct spoke_fence_options *options,
					     struct spoke_fence **ret_fence);

/* Frees it, after its providers; NULL is allowed. Any thread. */
SPOKE_API void spoke_fence_free(struct spoke_fence *fence);

/* Returns the filter for providers, valid as long as the fence. Any thread. */
SPOKE_API const struct spoke_filter *spoke_fence_filter(const struct spoke_fence *fence);

/* Reads name and number of the lease under which a request was made; valid as long as the request's
 * attachments. Returns false if there is none. */
SPOKE_API bool spoke_request_fence(const struct spoke_request *request, struct spoke_span *ret_name,
				   uint64_t *ret_fence);

SPOKE_END_DECLS

#endif
