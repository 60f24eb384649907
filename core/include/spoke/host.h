/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real environment: the machine's clocks, random numbers, memory, sockets, files and loop.
 * To change a part of it, as to have a log, copy the table and set what shall be different.
 */
#ifndef SPOKE_HOST_H
#define SPOKE_HOST_H

#include <spoke/env.h>

SPOKE_BEGIN_DECLS

/* Never NULL, always the same; any thread. It does not log: spoke_env.log is NULL. */
SPOKE_API const struct spoke_env *spoke_host_env(void);

SPOKE_END_DECLS

#endif
