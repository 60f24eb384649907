/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form of socket addresses, both ways, without a system call:
 *
 *   127.0.0.1:20880   IPv4     [::1]:20880   IPv6, [fe80::1%eth0]:1 with a scope
 *   unix:/run/x       a path   unix:@name    the abstract namespace of Linux
 *   shm:/run/x        the same, to people: memory is shared over the unix socket
 *
 * Stateless; any thread.
 */
#ifndef SPOKEI_CORE_BASE_ADDRESS_H
#define SPOKEI_CORE_BASE_ADDRESS_H

#include <spoke/env.h>
#include <spoke/value.h>

/* Parses an address. Returns 0; -EINVAL: the text is not an address; -ENAMETOOLONG: the path does
 * not fit a socket address. Port 0 lets the system choose a port when listening. */
int spokei_address_parse(const char *text, struct spoke_address *ret_address);

/* Prints an address, cut if it does not fit into `size`. A unix socket without a name prints as
 * "unix:", an unknown family as "?". */
void spokei_address_print(const struct spoke_address *address, char *text, size_t size);

/* Changes the text of a unix socket over which memory is shared: "unix:PATH" becomes "shm:PATH".
 * Other texts stay. */
void spokei_address_share(char *text);

/* Returns the machine's part of a printed address, "[HOST]:PORT" or "HOST:PORT" in digits, without
 * the prefix of IPv4 mapped into IPv6. Its length is 0 if the address has no machine. */
struct spoke_span spokei_address_host(const char *text);

/* Returns the 4 or 16 bytes of an IP address, or 0 bytes of a unix socket. NULL: it is an address
 * of another network than the system's. */
const unsigned char *spokei_address_bytes(const struct spoke_address *address, size_t *ret_len);

#endif
