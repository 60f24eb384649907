/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of the machine: TCP over IPv4 and IPv6, and unix stream sockets. Every descriptor
 * does not block, is not inherited by programs that are started, and never raises SIGPIPE; TCP
 * sends small writes at once. The context that the functions are given is not used: all state is
 * the system's, but for the paths of listening unix sockets (sockfile.h). Any thread.
 *
 * A listener at [::] takes IPv6 only. So IPv4 and IPv6 are listened on side by side, in any order,
 * whatever the machine's bindv6only says, and no peer has two addresses.
 */
#ifndef SPOKEI_CORE_HOST_NET_H
#define SPOKEI_CORE_HOST_NET_H

#include <spoke/env.h>

extern const struct spoke_net spokei_host_net;

#endif
