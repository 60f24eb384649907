/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture: leases for calls, from a Redis in memory, in the world of another fixture. */
#ifndef TESTS_CLUSTER_CALL_LEASING_H
#define TESTS_CLUSTER_CALL_LEASING_H

#include <spoke/lease.h>

struct spoke_engine;
struct spokei_world;

/* Starts the server in a world, and the leases of an engine. */
void leasing_begin(struct spokei_world *in, struct spoke_engine *of);

/* Returns a lease that is held, and valid for this long or up to 1 ms longer. It is not renewed.
 * Time passes until it is granted. */
struct spoke_lease leasing_grant(const char *name, uint64_t valid_ns);

/* Sets the last fence number that was given under this name. */
void leasing_count(const char *name, const char *last);

void leasing_release(struct spoke_lease lease);

/* Frees the leases; call leasing_join() before the next grant. */
void leasing_leave(void);
void leasing_join(void);

/* Stops the server, after the engine is freed. */
void leasing_end(void);

#endif
