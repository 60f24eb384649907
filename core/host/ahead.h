/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of libev that has its memory ahead, for libev ends the program when it gets none. */
#ifndef SPOKEI_CORE_HOST_AHEAD_H
#define SPOKEI_CORE_HOST_AHEAD_H

struct ev_loop;

/* Returned, free with ev_loop_destroy(); NULL: the system gives none. Any thread. */
struct ev_loop *spokei_ahead_new(void);

#endif
