/* SPDX-License-Identifier: Apache-2.0 */
/* Begins and ends jobs. Only the task frees them, so none is gone when its callback returns. */
#include "cluster/lease/job.h"

#include "cluster/lease/parts.h"
#include "cluster/lease/refusal.h"
#include "core/base/log.h"

#define SHOWN 160u /* bytes of the store's text in an event, with the NUL */

static struct spokei_lease_job *job_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_lease_job, node);
}

void spokei_lease_job_go(struct spokei_lease_job *job)
{
	job->waits = false;
	job->go(job);
}

int spokei_lease_job_begin(struct spoke_leases *leases, struct spokei_lease_job *job)
{
	int error = spokei_engine_check(leases->engine);

	if (error)
		return error;
	if (leases->draining)
		return SPOKE_ECLOSED;
	if (leases->job_count == SPOKEI_LEASE_JOBS_MAX)
		return SPOKE_ELIMIT;
	leases->job_count++;
	job->leases = leases;
	job->waits = true;
	spokei_list_append(&leases->jobs, &job->node);
	if (spokei_redis_is_ready(leases->redis))
		spokei_lease_job_go(job);
	return SPOKE_OK;
}

static void tell_soon(struct spoke_leases *leases)
{
	spokei_engine_soon(leases->engine, &leases->jobs_tell);
}

bool spokei_lease_job_answered(struct spokei_lease_job *job)
{
	job->under--;
	if (job->ended && job->under == 0)
		tell_soon(job->leases);
	return !job->ended;
}

void spokei_lease_job_end(struct spokei_lease_job *job, int error)
{
	if (job->ended)
		return;
	job->ended = true;
	job->error = error;
	if (job->under == 0)
		tell_soon(job->leases);
}

void spokei_lease_job_refuse(struct spokei_lease_job *job, const char *what, struct spoke_span text)
{
	struct spoke_span words = spokei_refusal_text(text);
	char shown[SHOWN];

	(void)spokei_log_escape(shown, sizeof(shown), words.data, words.len);
	spokei_event_of(job->leases->engine, SPOKE_EVENT_OF_LEASE, SPOKE_ESTORE,
			"%s: the store has refused: %s", what, shown);
	spokei_lease_job_end(job, SPOKE_ESTORE);
}

/* --- of all jobs */

void spokei_lease_jobs_go(struct spoke_leases *leases)
{
	for (struct spoke_list *node = leases->jobs.next; node != &leases->jobs;
	     node = node->next) {
		if (job_at(node)->waits && !job_at(node)->ended)
			spokei_lease_job_go(job_at(node));
	}
}

void spokei_lease_jobs_fail(struct spoke_leases *leases)
{
	for (struct spoke_list *node = leases->jobs.next; node != &leases->jobs;
	     node = node->next) {
		if (job_at(node)->waits)
			spokei_lease_job_end(job_at(node), SPOKE_EUNAVAILABLE);
	}
}

void spokei_lease_jobs_close(struct spoke_leases *leases, bool forgotten)
{
	for (struct spoke_list *node = leases->jobs.next; node != &leases->jobs;
	     node = node->next) {
		if (forgotten)
			job_at(node)->under = 0;
		spokei_lease_job_end(job_at(node), SPOKE_ECLOSED);
	}
	if (!spokei_list_empty(&leases->jobs))
		tell_soon(leases);
}

/* Users may add and end jobs meanwhile. */
void spokei_lease_jobs_tell(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, jobs_tell);
	struct spoke_list ended;

	spokei_list_init(&ended);
	for (struct spoke_list *node = leases->jobs.next; node != &leases->jobs;) {
		struct spokei_lease_job *job = job_at(node);

		node = node->next;
		if (!job->ended || job->under > 0)
			continue;
		spokei_list_remove(&job->node);
		spokei_list_append(&ended, &job->node);
	}
	while (!spokei_list_empty(&ended)) {
		struct spokei_lease_job *job = job_at(spokei_list_first(&ended));

		spokei_list_remove(&job->node);
		leases->job_count--;
		job->end(job, job->error);
	}
}
