/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that a service manager has opened, and passed to this process by environment variables.
 * Each is taken once. Any thread. */
#ifndef SPOKEI_CORE_HOST_MANAGER_H
#define SPOKEI_CORE_HOST_MANAGER_H

#include <spoke/env.h>

/* Finds a socket by its name, without regard to case, or by the number of its descriptor. Returns
 * as passed() of struct spoke_net; the address is the socket's. */
SPOKE_MUST_USE int spokei_passed_find(const char *name, struct spoke_address *ret_address);

/* Takes the first socket with this address, which no other call gets then. Returns its descriptor,
 * non-blocking and not inherited by other programs, or -ENOENT. */
SPOKE_MUST_USE int spokei_passed_take(const struct spoke_address *address);

#endif
