/* SPDX-License-Identifier: Apache-2.0 */
/* A provider of the soak, in a process of its own. */
#ifndef TESTS_SOAK_PROVIDER_H
#define TESTS_SOAK_PROVIDER_H

/* Serves at the address of its desk and at a unix socket until SIGTERM. Returns the status to exit
 * with; PROVIDER_NO_PLACE: somebody else listens there. */
int provider_run(unsigned index);

#define PROVIDER_NO_PLACE 3

/* The path of its unix socket. */
void provider_path(unsigned index, char *path);

#endif
