/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses of the command line and resolves host names; blocks meanwhile. */
#ifndef COMMAND_PLACE_H
#define COMMAND_PLACE_H

#include <spoke/env.h>

#define PLACE_MAX 8 /* addresses per host name */

/*
 * Parses "127.0.0.1:20880", "[::1]:20880", "unix:/run/x" or "example:20880"; ":20880" and "20880"
 * are on the loopback interface. A scheme ("...://") and a path are ignored. Returns the number of
 * addresses, at most PLACE_MAX; 0: not an address, or an unknown host.
 */
int place_parse(const struct spoke_env *env, const char *text, struct spoke_address *ret);

/* Returns the text of a negative errno. */
const char *place_error(int error);

#endif
