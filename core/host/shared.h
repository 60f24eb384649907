/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is shared with a process at the other end of a unix socket. */
#ifndef SPOKEI_CORE_HOST_SHARED_H
#define SPOKEI_CORE_HOST_SHARED_H

#include <spoke/env.h>

/* As share(), shared() and unshare() of struct spoke_net. */
int spokei_shared_give(void *ctx, int fd, const struct iovec *bytes, size_t size,
		       struct spoke_shared *ret);
ssize_t spokei_shared_take(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
			   struct spoke_shared *ret);
void spokei_shared_drop(void *ctx, struct spoke_shared *shared);

#endif
