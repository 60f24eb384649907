/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real loop: libev, one of its own or one of the user's.
 */
#ifndef SPOKEI_HOST_LOOP_H
#define SPOKEI_HOST_LOOP_H

#include <spoke/env.h>

extern const struct spoke_loop spokei_host_loop;

#endif
