/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of struct spoke_net for unix sockets alone: the user of the peer, and the mode of
 * the file. Stateless; any thread.
 */
#ifndef SPOKEI_CORE_HOST_LOCAL_H
#define SPOKEI_CORE_HOST_LOCAL_H

#include <spoke/env.h>

/* Is credentials() of the table. */
int spokei_local_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			     int32_t *ret_pid);

/* Is listen_mode() of the table. A socket that a service manager has passed keeps its own mode. */
int spokei_local_listen(void *ctx, const struct spoke_address *where, int backlog, uint32_t mode,
			int *ret_fd);

#endif
