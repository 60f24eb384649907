/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real event loop: libev, a loop of its own or the user's. libev ends the program when it has
 * no memory for its tables. The tables of an own loop have room for 4,096 descriptors from the
 * start; beyond that, and in a user's loop, libev grows them.
 */
#ifndef SPOKEI_CORE_HOST_LOOP_H
#define SPOKEI_CORE_HOST_LOOP_H

#include <spoke/env.h>

extern const struct spoke_loop spokei_host_loop;

#endif
