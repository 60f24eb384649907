/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for single leases: ask, left, fence, name, release. */
#include "cluster/lease/parts.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/use.h"
#include "core/text/utf8.h"

#define ONCE_NS UINT64_C(10000000000) /* longest time for an ask that does not wait */
#define NS_PER_MS UINT64_C(1000000)

bool spokei_lease_is_name(const char *name, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t step = spokei_utf8_len((const unsigned char *)name + at, len - at);

		if (step == 0)
			return false;
		at += step;
	}
	return len > 0 && len <= SPOKE_LEASE_NAME_MAX;
}

/* A command that is unanswered for longer than the lease with the shortest time to live allows is
 * repeated on a new connection. When there is no other lease, the times of earlier ones are
 * forgotten. */
static void be_patient(struct spoke_leases *leases, uint64_t ttl_ns)
{
	uint64_t patience_ns = spokei_lease_patience(ttl_ns);

	if (leases->cells.count > 1 && patience_ns >= leases->patience_ns)
		return;
	leases->patience_ns = patience_ns;
	spokei_redis_patience(leases->redis, patience_ns);
}

/* Begins the ask of a cell. Returns 0, ELIMIT or ENOMEM. */
static int begin(struct spokei_lease *lease, const struct spokei_lease_terms *terms)
{
	struct spoke_leases *leases = lease->leases;
	bool once = terms->wait_ns == 0;
	uint64_t now_ns = spokei_leases_now(leases);
	int error;

	spokei_lease_begin(&lease->life, (uint32_t)(terms->ttl_ns / NS_PER_MS), once,
			   spokei_later(now_ns, once ? ONCE_NS : terms->wait_ns));
	if (!spokei_lease_arm(lease, UINT64_MAX))
		return SPOKE_ELIMIT;
	if (once) {
		spokei_lease_todo(lease);
		return SPOKE_OK;
	}
	error = spokei_lease_line_join(lease);
	if (error == SPOKE_OK && spokei_lease_is_first(lease))
		spokei_lease_line_todo(lease->line);
	return error;
}

static int check(const struct spoke_leases *leases, const char *name, spoke_lease_told_fn told)
{
	int error;

	if (leases == NULL || name == NULL || told == NULL ||
	    !spokei_lease_is_name(name, strlen(name)))
		return SPOKE_EINVAL;
	error = spokei_engine_check(leases->engine);
	return error == SPOKE_OK && leases->draining ? SPOKE_ECLOSED : error;
}

static int read_terms(struct spoke_leases *leases, const struct spoke_lease_options *options,
		      struct spokei_lease_terms *ret)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	int error = spokei_lease_terms(leases->settings, options, ret, why);

	if (error)
		spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, error, "%s", why);
	return error;
}

int spoke_lease_ask(struct spoke_leases *leases, const char *name,
		    const struct spoke_lease_options *options, spoke_lease_told_fn told,
		    struct spoke_lease *ret_lease)
{
	static const struct spoke_lease_options defaults;
	const struct spoke_lease_options *with = options ? options : &defaults;
	struct spokei_lease *lease;
	struct spokei_lease_terms terms;
	int error = check(leases, name, told);

	if (error == SPOKE_OK)
		error = read_terms(leases, with, &terms);
	if (error == SPOKE_OK)
		error = spokei_lease_cell_take(leases, (struct spoke_span){ name, strlen(name) },
					       &lease);
	if (error)
		return error;
	error = begin(lease, &terms);
	if (error) {
		spokei_lease_cell_give(lease);
		return error;
	}
	lease->life.fixed = with->fixed;
	lease->told = told;
	lease->lost = with->lost;
	lease->arg = with->arg;
	leases->asks++;
	spokei_count(leases->engine, SPOKE_STAT_LEASES_ASKED);
	be_patient(leases, terms.ttl_ns);
	spokei_leases_send(leases);
	if (ret_lease)
		*ret_lease = spokei_lease_public(lease);
	return SPOKE_OK;
}

static struct spokei_lease *find(struct spoke_lease lease)
{
	return lease.leases ? spokei_slab_get(&lease.leases->cells, lease.handle) : NULL;
}

void spokei_lease_mirror(struct spoke_lease lease)
{
	struct spokei_lease *found = find(lease);

	SPOKE_ASSERT(found != NULL);
	found->mirrored = true;
}

uint64_t spoke_lease_left(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	if (found == NULL || spokei_engine_forked(lease.leases->engine))
		return 0;
	return spokei_lease_left_at(&found->life, spokei_leases_now(lease.leases));
}

uint64_t spoke_lease_fence(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	return found && found->life.state == SPOKEI_LEASE_HELD ? found->life.fence : 0;
}

struct spoke_span spoke_lease_name(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	return found ? spokei_lease_name_of(found) : (struct spoke_span){ "", 0 };
}

int spoke_lease_release(struct spoke_lease lease, spoke_lease_released_fn done, void *arg)
{
	struct spokei_lease *found;
	bool held;
	int error = lease.leases ? spokei_engine_check(lease.leases->engine) : SPOKE_ENOENT;

	if (error)
		return error;
	found = find(lease);
	held = found && found->life.state == SPOKEI_LEASE_HELD;
	if (found == NULL || (!held && !spokei_lease_is_ask(&found->life)))
		return SPOKE_ENOENT;
	spokei_lease_happen_now(found, SPOKEI_LEASE_RELEASE, NULL);
	found->done = done;
	found->done_arg = arg;
	if (held) {
		spokei_count(lease.leases->engine, SPOKE_STAT_LEASES_RELEASED);
		spokei_lease_event(found, SPOKE_OK, "was released");
		spokei_leases_send(lease.leases);
	}
	return SPOKE_OK;
}

/* --- uses */

int spokei_lease_use_check(struct spoke_lease lease, const struct spoke_engine *engine)
{
	if (lease.leases->engine != engine)
		return SPOKE_EINVAL;
	return spoke_lease_left(lease) > 0 ? SPOKE_OK : SPOKE_ELEASE;
}

int spokei_lease_use_begin(struct spoke_lease lease, const struct spoke_engine *engine,
			   struct spokei_lease_use *use)
{
	int error = spokei_lease_use_check(lease, engine);

	if (error)
		return error;
	use->lease = lease;
	spokei_lease_use_join(&find(lease)->uses, use);
	return SPOKE_OK;
}
