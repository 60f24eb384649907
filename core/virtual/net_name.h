/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the network in memory: names in the form in which they are printed.
 */
#ifndef SPOKEI_CORE_VIRTUAL_NET_NAME_H
#define SPOKEI_CORE_VIRTUAL_NET_NAME_H

#include <spoke/env.h>

#include <stdbool.h>

#define SPOKEI_VNAME_SIZE 128

/* "mem:NAME", or what the real network takes, in its canonical form. 0 or a negative errno. */
int spokei_vname_parse(const char *text, struct spoke_address *ret_address);

/* The address of a name that is canonical already. */
void spokei_vname_to_address(const char *name, struct spoke_address *ret_address);

/* `ret_name` has SPOKEI_VNAME_SIZE bytes. */
void spokei_vname_of(const struct spoke_address *address, char *ret_name);

/* Is it an IP address, with a port that may be 0? */
bool spokei_vname_has_port(const char *name);

/* Is it an IP address without a port? */
bool spokei_vname_wants_port(const char *name);
void spokei_vname_set_port(char *name, uint16_t port);

/* What a socket that connects to `remote` is called, its port to be set if it wants one. */
const char *spokei_vname_of_client(const char *remote);

/* Does a listener at `listening` take what goes to `name`? */
bool spokei_vname_covers(const char *listening, const char *name);

#endif
