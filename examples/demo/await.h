/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for events and counts of the processes. */
#ifndef DEMO_AWAIT_H
#define DEMO_AWAIT_H

#include "examples/demo/cast.h"

/*
 * Each function handles input until the condition holds, and returns true. It returns false on a
 * timeout, when a process exits unexpectedly, or on an interrupt; cast.trouble describes the
 * failure.
 */
bool await_seen(const struct actor *actor, enum message_tag tag, unsigned times);
bool await_missed(const struct actor *actor, unsigned heartbeats); /* consecutive */
bool await_count(const struct actor *actor, enum message_count count, uint64_t at_least);
bool await_none(const struct actor *actor, enum message_count count);
bool await_stopped(const struct actor *actor);
bool await_gone(const struct actor *actor);
bool await_mended(const struct actor *actor); /* the process runs */
bool await_time(uint64_t until_ns);

#endif
