/* SPDX-License-Identifier: Apache-2.0 */
/* Leases as the page shows them. Results are valid until the engine runs on; on its thread. */
#ifndef SPOKEI_CLUSTER_LEASE_VIEW_H
#define SPOKEI_CLUSTER_LEASE_VIEW_H

#include <spoke/lease.h>

struct spokei_lease_settings;
struct spokei_member;

/* The kind of the engine's members that are leases: this very string. */
extern const char spokei_leases_kind[];

/* Returns the leases of a member of this kind. */
struct spoke_leases *spokei_leases_of(struct spokei_member *member);

/* Returns the settings. */
const struct spokei_lease_settings *spokei_leases_settings(const struct spoke_leases *leases);

/* One lease. */
struct spokei_lease_row {
	uint64_t id;            /* of the lease, unique among present ones */
	struct spoke_span name; /* bytes of UTF-8 */
	const char *state;      /* "asking", "waiting", "held" or "releasing" */
	uint64_t left_ns;       /* of one that is held; else 0 */
	uint64_t fence;         /* ... */
};

/* Writes at most `max` leases, in no particular order, and returns their number. Looks at a few
 * thousand cells at most. */
size_t spokei_leases_rows(const struct spoke_leases *leases, struct spokei_lease_row *rows,
			  size_t max);

#endif
