/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the network in memory: names in their printed form. */
#ifndef SPOKEI_CORE_VIRTUAL_NET_NAME_H
#define SPOKEI_CORE_VIRTUAL_NET_NAME_H

#include <spoke/env.h>

#include <stdbool.h>

#define SPOKEI_VNAME_SIZE 128

/* Converts "mem:NAME", or a form that the real network parses, to its canonical form. Returns 0 or
 * a negative errno. */
int spokei_vname_parse(const char *text, struct spoke_address *ret_address);

/* Returns the address of a canonical name. */
void spokei_vname_to_address(const char *name, struct spoke_address *ret_address);

/* `ret_name` has SPOKEI_VNAME_SIZE bytes. */
void spokei_vname_of(const struct spoke_address *address, char *ret_name);

/* Returns whether it is an IP address with a port, which may be 0. */
bool spokei_vname_has_port(const char *name);

/* Returns whether it is an IP address without a port. */
bool spokei_vname_wants_port(const char *name);
void spokei_vname_set_port(char *name, uint16_t port);

/* Returns the name of a socket that connects to `remote`; its port is to be set if it wants one. */
const char *spokei_vname_of_client(const char *remote);

/* Returns whether a listener at `listening` accepts connections to `name`. */
bool spokei_vname_covers(const char *listening, const char *name);

#endif
