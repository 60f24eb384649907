/* SPDX-License-Identifier: Apache-2.0 */
/* Shows leases to the page. */
#include "cluster/lease/view.h"

#include "cluster/lease/parts.h"

#define SEARCHED 4096u /* cells, at most */

static const char *name_of(const struct spokei_lease *lease)
{
	switch ((enum spokei_lease_state)lease->life.state) {
	case SPOKEI_LEASE_WAITING:
		return "waiting";
	case SPOKEI_LEASE_ASKING:
	case SPOKEI_LEASE_RETURNING:
		return "asking";
	case SPOKEI_LEASE_HELD:
		return "held";
	case SPOKEI_LEASE_RELEASING:
		return "releasing";
	case SPOKEI_LEASE_NONE:
	case SPOKEI_LEASE_OVER:
	case SPOKEI_LEASE_STATES:
		break;
	}
	return NULL;
}

const struct spokei_lease_settings *spokei_leases_settings(const struct spoke_leases *leases)
{
	return leases->settings;
}

size_t spokei_leases_rows(const struct spoke_leases *leases, struct spokei_lease_row *rows,
			  size_t max)
{
	uint64_t now_ns = spokei_leases_now(leases);
	size_t count = 0;

	for (uint32_t i = 0; i < leases->cells.used && i < SEARCHED && count < max; i++) {
		const struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		const char *state = name_of(lease);

		if (state == NULL)
			continue;
		rows[count++] = (struct spokei_lease_row){
			.id = lease->handle,
			.name = spokei_lease_name_of(lease),
			.state = state,
			.left_ns = spokei_lease_left_at(&lease->life, now_ns),
			.fence = lease->life.state == SPOKEI_LEASE_HELD ? lease->life.fence : 0,
		};
	}
	return count;
}
