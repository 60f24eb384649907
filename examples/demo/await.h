/* SPDX-License-Identifier: Apache-2.0 */
/* How the driver waits for what its actors tell. */
#ifndef DEMO_AWAIT_H
#define DEMO_AWAIT_H

#include "examples/demo/cast.h"

/*
 * Hears until that is so, and returns true; or until it takes too long, somebody has ended who was
 * not told to, or the demo is interrupted: then false, and cast.trouble says why.
 */
bool await_seen(const struct actor *actor, enum message_tag tag, unsigned times);
bool await_missed(const struct actor *actor, unsigned heartbeats); /* in a row */
bool await_count(const struct actor *actor, enum message_count count, uint64_t at_least);
bool await_none(const struct actor *actor, enum message_count count);
bool await_stopped(const struct actor *actor);
bool await_gone(const struct actor *actor);
bool await_mended(const struct actor *actor); /* it runs */
bool await_time(uint64_t until_ns);

#endif
