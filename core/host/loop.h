/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real loop: libev, one of its own or one of the user's. libev ends the program when it has no
 * memory for its tables. Those of a loop of its own have room for 4,096 descriptors from the start;
 * beyond, and in a user's loop, they grow as libev lets them.
 */
#ifndef SPOKEI_CORE_HOST_LOOP_H
#define SPOKEI_CORE_HOST_LOOP_H

#include <spoke/env.h>

extern const struct spoke_loop spokei_host_loop;

#endif
