/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks a lease of any holder. The command is sent once: a second one could break the lease of the
 * next holder. */
#include "cluster/lease/job.h"
#include "cluster/lease/names.h"
#include "cluster/lease/parts.h"

#define JOB "break of a lease"

struct breaking {
	struct spokei_lease_job job;
	struct spokei_redis_ask ask;
	spoke_lease_released_fn done;
	void *arg;
	size_t name_len;
	char name[];
};

static struct breaking *breaking_of(struct spokei_lease_job *job)
{
	return spoke_container_of(job, struct breaking, job);
}

static void breaking_end(struct spokei_lease_job *job, int error)
{
	struct breaking *breaking = breaking_of(job);
	spoke_lease_released_fn done = breaking->done;
	void *arg = breaking->arg;

	spokei_free(job->leases->engine->env, breaking, 1, sizeof(*breaking) + breaking->name_len);
	if (done)
		done(arg, error);
}

static void breaking_go(struct spokei_lease_job *job)
{
	struct breaking *breaking = breaking_of(job);
	struct spokei_redis *redis = job->leases->redis;
	const struct spoke_span name = { breaking->name, breaking->name_len };
	char key[SPOKE_LEASE_NAME_MAX + SPOKEI_LEASE_NAME_MORE];
	int error;

	spokei_redis_begin(redis, SPOKEI_SCRIPT_BREAK, 2, 2);
	spokei_redis_text(redis, name);
	spokei_redis_text(redis, (struct spoke_span){
					 key, spokei_lease_name(key, SPOKEI_LEASE_CHANNEL, name) });
	error = spokei_redis_send(redis, &breaking->ask);
	if (error == SPOKE_OK)
		job->under++;
	else if (error == SPOKE_ESTATE)
		job->waits = true;
	else
		spokei_lease_job_end(job, error == SPOKE_ENOMEM ? error : SPOKE_EUNAVAILABLE);
}

static void break_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct breaking *breaking = spoke_container_of(ask, struct breaking, ask);
	struct spokei_lease_job *job = &breaking->job;
	struct spokei_resp_value value;

	if (!spokei_lease_job_answered(job))
		return;
	if (error)
		spokei_lease_job_end(job, SPOKE_EUNAVAILABLE);
	else if (!spokei_resp_next(&reply, &value) || value.kind == SPOKEI_RESP_ERROR)
		spokei_lease_job_refuse(job, JOB, value.text);
	else
		spokei_lease_job_end(job, value.integer > 0 ? SPOKE_OK : SPOKE_ENOENT);
}

int spoke_leases_break(struct spoke_leases *leases, const char *name, spoke_lease_released_fn done,
		       void *arg)
{
	size_t len = name ? strlen(name) : 0;
	struct breaking *breaking;
	int error;

	if (leases == NULL || !spokei_lease_is_name(name, len))
		return SPOKE_EINVAL;
	breaking = spokei_alloc(leases->engine->env, 1, sizeof(*breaking) + len);
	if (breaking == NULL)
		return SPOKE_ENOMEM;
	breaking->job = (struct spokei_lease_job){ .go = breaking_go, .end = breaking_end };
	breaking->ask.done = break_done;
	breaking->done = done;
	breaking->arg = arg;
	breaking->name_len = len;
	memcpy(breaking->name, name, len);
	error = spokei_lease_job_begin(leases, &breaking->job);
	if (error)
		spokei_free(leases->engine->env, breaking, 1, sizeof(*breaking) + len);
	return error;
}
