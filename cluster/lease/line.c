/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of the leases that wait for one name. Only the first one tries. When it has to wait, the
 * line subscribes to the channel on which releases of that name are published. A message wakes the
 * first lease, and no other. A holder that dies publishes nothing, so the time to live of its
 * lock wakes the first lease, too.
 */
#include "cluster/lease/names.h"
#include "cluster/lease/parts.h"
#include "core/memory/map.h"

#define RUSHES_MAX 16u
#define PAUSE_NS UINT64_C(20000000)
#define REST_NS (5 * PAUSE_NS)
#define LINES_KEPT 1024u /* room of the map that is kept when no lease waits */

void spokei_lease_todo(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (leases->ended)
		return;
	spokei_list_append(&leases->todo, &lease->node);
	spokei_engine_soon(leases->engine, &leases->send);
}

void spokei_lease_line_todo(struct spokei_lease_line *line)
{
	struct spoke_leases *leases = line->leases;

	if (line->node.next == NULL)
		spokei_list_append(&leases->lines_todo, &line->node);
	spokei_engine_soon(leases->engine, &leases->send);
}

static struct spokei_lease_line *make_line(struct spoke_leases *leases, struct spoke_span name)
{
	const struct spoke_env *env = leases->engine->env;
	size_t size = sizeof(struct spokei_lease_line) + 2 * name.len + SPOKEI_LEASE_NAME_MORE;
	struct spokei_lease_line *line = spokei_alloc(env, 1, size);
	size_t len;

	if (line == NULL)
		return NULL;
	len = spokei_lease_name(line->text, SPOKEI_LEASE_CHANNEL, name);
	memcpy(line->text + len, name.data, name.len);
	line->channel.name = (struct spoke_span){ line->text, len };
	line->name = (struct spoke_span){ line->text + len, name.len };
	line->leases = leases;
	line->size = size;
	spokei_list_init(&line->waiters);
	if (spokei_map_add(leases->lines, line->name.data, name.len, line)) {
		spokei_free(env, line, 1, size);
		return NULL;
	}
	return line;
}

static void free_line(struct spokei_lease_line *line)
{
	struct spoke_leases *leases = line->leases;

	if (line->node.next)
		spokei_list_remove(&line->node);
	if (line->listens)
		spokei_redis_unsubscribe(leases->redis, &line->channel);
	(void)spokei_map_remove(leases->lines, line->name.data, line->name.len);
	if (leases->lines->count == 0 && leases->lines->room > LINES_KEPT)
		spokei_map_fini(leases->lines);
	spokei_free(leases->engine->env, line, 1, line->size);
}

int spokei_lease_line_join(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_span name = spokei_lease_name_of(lease);
	struct spokei_lease_line *line = spokei_map_get(leases->lines, name.data, name.len);

	if (line == NULL)
		line = make_line(leases, name);
	if (line == NULL)
		return SPOKE_ENOMEM;
	lease->line = line;
	spokei_list_append(&line->waiters, &lease->node);
	return SPOKE_OK;
}

static struct spokei_lease *first_of(const struct spokei_lease_line *line)
{
	return spokei_lease_at(spokei_list_first(&line->waiters));
}

void spokei_lease_line_leave(struct spokei_lease *lease)
{
	struct spokei_lease_line *line = lease->line;
	bool first = first_of(line) == lease;

	spokei_list_remove(&lease->node);
	lease->line = NULL;
	if (spokei_list_empty(&line->waiters))
		free_line(line);
	else if (first)
		spokei_lease_line_wait(line, line->retry_ns);
}

/* A lock that is always about to expire, and a flood of messages, must not make a loop without a
 * pause. */
void spokei_lease_line_refused(struct spokei_lease_line *line, uint64_t now_ns, uint64_t retry_ns)
{
	line->rushes = now_ns - line->refused_ns < REST_NS ? line->rushes + 1 : 0;
	line->refused_ns = now_ns;
	if (line->rushes >= RUSHES_MAX) {
		line->hush_ns = now_ns + PAUSE_NS;
		retry_ns = retry_ns > line->hush_ns ? retry_ns : line->hush_ns;
	}
	spokei_lease_line_wait(line, retry_ns);
}

static bool is_hushed(const struct spokei_lease_line *line)
{
	return line->hush_ns > spokei_leases_now(line->leases);
}

void spokei_lease_line_wait(struct spokei_lease_line *line, uint64_t retry_ns)
{
	if (line->woken && is_hushed(line)) {
		line->woken = false;
		retry_ns = line->hush_ns;
	}
	line->retry_ns = retry_ns;
	if (line->woken || retry_ns == 0) {
		line->woken = false;
		spokei_lease_line_todo(line);
		return;
	}
	/* Also when a lease of this process has just got it, and no try was refused yet. */
	if (!line->listens) {
		line->listens = true;
		spokei_redis_subscribe(line->leases->redis, &line->channel);
	}
	(void)spokei_lease_arm(first_of(line), retry_ns);
}

void spokei_lease_line_wake(struct spokei_lease_line *line)
{
	if (first_of(line)->life.state == SPOKEI_LEASE_WAITING && is_hushed(line))
		spokei_lease_line_wait(line, line->hush_ns);
	else if (first_of(line)->life.state == SPOKEI_LEASE_WAITING)
		spokei_lease_line_todo(line);
	else
		line->woken = true;
}

bool spokei_lease_is_first(const struct spokei_lease *lease)
{
	const struct spokei_lease_line *line = spokei_lease_line_of(lease);

	return line == NULL || first_of(line) == lease;
}
