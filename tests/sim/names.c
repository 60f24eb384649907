/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the numbers in recorded events. */
#include "tests/sim/sim.h"

#include <errno.h>

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

static const char *const manners[SIM_MANNERS] = {
	[SIM_AT_ONCE] = "at once", [SIM_LATER] = "later", [SIM_NEVER] = "never",
	[SIM_ERROR] = "error",     [SIM_LARGE] = "large",
};

static const char *const policies[SIM_POLICIES] = {
	[SIM_FAILOVER] = "failover",   [SIM_FAILFAST] = "failfast", [SIM_FAILSAFE] = "failsafe",
	[SIM_FAILBACK] = "failback",   [SIM_FORKING] = "forking",   [SIM_BROADCAST] = "broadcast",
	[SIM_AVAILABLE] = "available",
};

static const char *const routes[] = {
	[SPOKEI_VNET_NORMAL] = "normal",           [SPOKEI_VNET_AT_ONCE] = "at once",
	[SPOKEI_VNET_REFUSE] = "refuse",           [SPOKEI_VNET_SILENT] = "silent",
	[SPOKEI_VNET_UNREACHABLE] = "unreachable", [SPOKEI_VNET_SELF] = "back to itself",
};

/* Index: bits of the ends that write. */
static const char *const directions[] = { "nowhere", "to the provider", "to the consumer",
					  "both ways" };

static const char *const old_replies[] = { "under its own id", "under any id", "under the next id",
					   "under its own id" };

static const char *name_in(const char *const *names, size_t count, uint64_t number)
{
	return number < count && names[number] ? names[number] : "unknown";
}

static const char *name_of_errno(uint64_t number)
{
	switch (number) {
	case ECONNABORTED:
		return "ECONNABORTED";
	case EMFILE:
		return "EMFILE";
	case ENOBUFS:
		return "ENOBUFS";
	case EINTR:
		return "EINTR";
	case EAGAIN:
		return "EAGAIN";
	default:
		return "unknown";
	}
}

static const char *name_of_change(uint64_t number)
{
	const char *name = spoke_link_change_name((enum spoke_link_change)number);

	return name ? name : "unknown";
}

static const char *name_of_settlement(uint64_t number)
{
	const char *name = spoke_ticket_settlement_name((enum spoke_ticket_settlement)number);

	return name ? name : "unknown";
}

const char *sim_name(char kind, uint64_t number)
{
	switch (kind) {
	case 'd':
		return name_in(directions, COUNT(directions), number);
	case 'e':
		return spoke_errname((int)(uint32_t)number);
	case 'i':
		return name_in(old_replies, COUNT(old_replies), number);
	case 'l':
		return name_of_change(number);
	case 'm':
		return name_in(manners, COUNT(manners), number);
	case 'r':
		return name_in(routes, COUNT(routes), number);
	case 's':
		return name_of_errno(number);
	case 't':
		return name_of_settlement(number);
	case 'y':
		return name_in(policies, COUNT(policies), number);
	default:
		return NULL;
	}
}
