/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real environment: the machine's clocks, random numbers, memory, sockets, files and event
 * loop. To change a part of it, e.g. to add a log, copy the table and replace single functions.
 */
#ifndef SPOKE_HOST_H
#define SPOKE_HOST_H

#include <spoke/env.h>

SPOKE_BEGIN_DECLS

/* Returns the environment of the host, always the same one; never NULL. Its `log` is NULL,
 * so that engines log warnings to stderr, or what SPOKE_LOG in the environment of the process says,
 * e.g. "info" or "off". Any thread. */
SPOKE_API const struct spoke_env *spoke_host_env(void);

SPOKE_END_DECLS

#endif
