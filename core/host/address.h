/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of the system's socket addresses, both ways, without asking anybody:
 *
 *   127.0.0.1:20880   IPv4     [::1]:20880   IPv6, [fe80::1%eth0]:1 with a scope
 *   unix:/run/x       a path   unix:@name    the abstract namespace of Linux
 *
 * Stateless; any thread.
 */
#ifndef SPOKEI_CORE_HOST_ADDRESS_H
#define SPOKEI_CORE_HOST_ADDRESS_H

#include <spoke/env.h>

/* 0, -EINVAL: not an address, -ENAMETOOLONG: the path does not fit a socket address. A port has no
 * sign and no leading zeros; port 0 lets the system choose when one listens. */
int spokei_address_parse(const char *text, struct spoke_address *ret_address);

/* Cut when it does not fit into `size`. A unix socket without a name prints as "unix:", a family
 * that is not one of ours as "?". */
void spokei_address_print(const struct spoke_address *address, char *text, size_t size);

#endif
