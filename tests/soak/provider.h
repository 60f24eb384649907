/* SPDX-License-Identifier: Apache-2.0 */
/* A provider process of the soak. */
#ifndef TESTS_SOAK_PROVIDER_H
#define TESTS_SOAK_PROVIDER_H

/* Serves at the address of its desk and at a unix socket until SIGTERM. Returns the exit status;
 * PROVIDER_NO_PLACE if the address is in use. */
int provider_run(unsigned index);

#define PROVIDER_NO_PLACE 3

/* Writes the path of its unix socket. */
void provider_path(unsigned index, char *path);

#endif
