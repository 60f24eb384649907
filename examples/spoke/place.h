/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the command line, with names asked for; blocks while it asks. */
#ifndef COMMAND_PLACE_H
#define COMMAND_PLACE_H

#include <spoke/env.h>

#define PLACE_MAX 8 /* addresses of a name */

/*
 * "127.0.0.1:20880", "[::1]:20880", "unix:/run/x", "example:20880"; ":20880" and "20880" are of the
 * loopback interface; what stands before "://", and a path behind, is passed over. Returns how many
 * addresses there are, at most PLACE_MAX; 0: it is no address, or there is no such name.
 */
int place_parse(const struct spoke_env *env, const char *text, struct spoke_address *ret);

/* What a negative errno of a network means. */
const char *place_error(int error);

#endif
