/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets that the process was started with (socket activation): descriptors from 3 on,
 * as the variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES say, see sd_listen_fds(3). Each can be
 * taken once. A child that was forked has none, because LISTEN_PID names its parent. Any thread.
 */
#ifndef SPOKEI_CORE_HOST_PASSED_H
#define SPOKEI_CORE_HOST_PASSED_H

#include <spoke/env.h>

#define SPOKEI_PASSED_MAX 256u /* descriptors; further ones are ignored */

/* Finds a socket by its name, without regard to case, or by the number of its descriptor. Returns
 * as passed() of struct spoke_net; the address is the socket's. */
SPOKE_MUST_USE int spokei_passed_find(const char *name, struct spoke_address *ret_address);

/* Takes the first socket with this address, which no other call gets then. Returns its descriptor,
 * non-blocking and not inherited by other programs, or -ENOENT. */
SPOKE_MUST_USE int spokei_passed_take(const struct spoke_address *address);

#endif
