/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of the machine: TCP over IPv4 and IPv6, and unix stream sockets. Every descriptor is
 * non-blocking, is closed on exec, and never raises SIGPIPE; TCP sends small writes at once. The
 * context is not used: all state is the system's, except the paths of listening unix sockets
 * (sockfile.h). Any thread.
 *
 * A listener at [::] accepts IPv6 only. So IPv4 and IPv6 can be listened on side by side, in any
 * order, independent of the machine's bindv6only, and no peer has two addresses.
 */
#ifndef SPOKEI_CORE_HOST_NET_H
#define SPOKEI_CORE_HOST_NET_H

#include <spoke/env.h>

extern const struct spoke_net spokei_host_net;

#endif
