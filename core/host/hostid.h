/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of this host and of this process's view of its files. Any thread. */
#ifndef SPOKEI_CORE_HOST_HOSTID_H
#define SPOKEI_CORE_HOST_HOSTID_H

#include <spoke/env.h>

/* Implements env->host_id. */
int spokei_hostid(void *ctx, uint64_t *ret_id);

#endif
