/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the longest step by which the tables of a connection grow. */
#include "memory.h"

#include "core/memory/map.h"
#include "transport/conn/pending.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <time.h>

#define STEP_MAX_MS 2.0

/* CPU time of this thread, so that other processes do not count. */
static uint64_t thread_ns(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void note_step(uint64_t begun_ns, uint64_t *worst_ns)
{
	uint64_t spent_ns = thread_ns() - begun_ns;

	*worst_ns = spent_ns > *worst_ns ? spent_ns : *worst_ns;
}

/* Adds calls to a ring of ids. */
static double grow_ring(unsigned count)
{
	struct spokei_pending *calls = calloc(count, sizeof(*calls));
	const struct spoke_env *env = spoke_host_env();
	struct spokei_pendings ring;
	uint64_t worst_ns = 0;

	if (calls == NULL)
		die("no memory");
	spokei_pendings_init(&ring, 0, UINT64_MAX, 1);
	for (unsigned i = 0; i < count; i++) {
		uint64_t begun_ns = thread_ns();

		must("call", spokei_pendings_add(&ring, env, &calls[i]));
		note_step(begun_ns, &worst_ns);
	}
	for (unsigned i = 0; i < count; i++)
		spokei_pendings_remove(&ring, &calls[i]);
	spokei_pendings_fini(&ring, env);
	free(calls);
	return (double)worst_ns / MS;
}

/* Adds requests to a table by id. */
static double grow_table(unsigned count)
{
	uint64_t *ids = calloc(count, sizeof(*ids));
	struct spokei_map table;
	uint64_t worst_ns = 0;

	if (ids == NULL)
		die("no memory");
	spokei_map_init(&table, spoke_host_env());
	for (unsigned i = 0; i < count; i++) {
		uint64_t begun_ns = thread_ns();

		ids[i] = i;
		must("request", spokei_map_add(&table, &ids[i], sizeof(ids[i]), &ids[i]));
		note_step(begun_ns, &worst_ns);
	}
	spokei_map_fini(&table);
	free(ids);
	return (double)worst_ns / MS;
}

void measure_steps(unsigned count)
{
	report("ring_of_calls_longest_step", grow_ring(count), "ms", STEP_MAX_MS);
	report("table_of_requests_longest_step", grow_table(count), "ms", STEP_MAX_MS);
}
