/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: work at the store that is not about a lease of this process, e.g. a listing. It waits
 * until the store takes commands, and its user is called once when it ends, by a task. Embedded in
 * its kind's struct. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_JOB_H
#define SPOKEI_CLUSTER_LEASE_JOB_H

#include "core/engine/task.h"

#include <spoke/value.h>

#define SPOKEI_LEASE_JOBS_MAX 1000u

struct spoke_leases;

struct spokei_lease_job {
	struct spoke_list node; /* in leases->jobs */
	struct spoke_leases *leases;
	/* The store takes commands: sends some, or ends the job. */
	void (*go)(struct spokei_lease_job *job);
	/* Frees the job, then calls its user. */
	void (*end)(struct spokei_lease_job *job, int error);
	uint32_t under; /* commands under way */
	bool waits;     /* for the store */
	bool ended;     /* end() is called once no command is under way */
	int error;      /* ... with this */
};

/* Adds a job, whose functions are set, and begins it. Returns 0, ECLOSED, ELIMIT or EFORKED. */
SPOKE_MUST_USE int spokei_lease_job_begin(struct spoke_leases *leases,
					  struct spokei_lease_job *job);

/* Has a job go on that waits for the store, which takes commands. */
void spokei_lease_job_go(struct spokei_lease_job *job);

/* A command of the job is not under way any more. Returns whether the job goes on. */
SPOKE_MUST_USE bool spokei_lease_job_answered(struct spokei_lease_job *job);

/* Ends the job, unless it has ended before. */
void spokei_lease_job_end(struct spokei_lease_job *job, int error);

/* Ends the job with ESTORE, and an event with the store's text: "`what`: ...". */
void spokei_lease_job_refuse(struct spokei_lease_job *job, const char *what,
			     struct spoke_span text);

/* --- of all jobs */

/* The store takes commands. */
void spokei_lease_jobs_go(struct spoke_leases *leases);

/* The store could not be reached: jobs that wait for it end. */
void spokei_lease_jobs_fail(struct spoke_leases *leases);

/* Ends all jobs with ECLOSED. `forgotten`: their commands will not be answered any more. */
void spokei_lease_jobs_close(struct spoke_leases *leases, bool forgotten);

/* The task that calls the users of ended jobs. */
void spokei_lease_jobs_tell(struct spokei_task *task);

#endif
