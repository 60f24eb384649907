/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libev loop with preallocated memory, because libev ends the program when an allocation fails.
 */
#ifndef SPOKEI_CORE_HOST_AHEAD_H
#define SPOKEI_CORE_HOST_AHEAD_H

struct ev_loop;

/* Creates a loop; free it with ev_loop_destroy(). NULL: the system has no resources. Any thread. */
struct ev_loop *spokei_ahead_new(void);

#endif
