/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every other header: the silence of a peer is not noted, and never checked. */
#include "tests/bench/cost/without/stands_for.h"
#include "transport/conn/conn.h"

STANDS_FOR(spokei_idle_moved);
STANDS_FOR(spokei_idle_handed);
STANDS_FOR(spokei_idle_heard);
STANDS_FOR(spokei_idle_due);

#define spokei_idle_moved(idle, now_ns) ((void)(idle), (void)(now_ns))
#define spokei_idle_handed(idle, now_ns) ((void)(idle), (void)(now_ns))
#define spokei_idle_heard(idle, now_ns) ((void)(idle), (void)(now_ns), false)
#define spokei_idle_due(idle, interval_ns) ((void)(idle), (void)(interval_ns), UINT64_MAX)
