/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutual TLS of the demo. The driver has `spoke certs` make certificates in its folder; the other
 * programs find the folder in the environment.
 */
#ifndef DEMO_SECURE_H
#define DEMO_SECURE_H

#include <spoke/tls.h>

/* Makes the certificates in `folder`/tls by the program spoke/spoke below `programs`, for all
 * processes that are started from now on. Returns false after printing why. */
bool secure_make(const char *programs, const char *folder);

/* Returns the options of TLS of a provider, or else of a consumer; NULL: the demo plays without.
 * Static memory. */
const struct spoke_tls_options *secure_options(bool provides);

#endif
