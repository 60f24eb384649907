/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission control of a method (`executes = auto`): decides whether a request can be answered
 * before its deadline. Pure: the caller passes the times. Embedded in its owner; on the engine's
 * thread.
 *
 * The estimate is Little's law: requests that are unanswered, divided by answers per second. It is
 * made of two windows, the last one that is complete and the one that goes on, and counts only
 * where it can be trusted: requests were under way for at least half of these windows, and there
 * are at most four times as many as on average. So an idle provider refuses none, and a burst is
 * let in, to be measured.
 *
 * The estimate may use `margin` of the time left. The margin grows by a little while the admitted
 * requests are answered in time, and falls to a half when they are not. It needs no lowest latency,
 * so nothing remembers a fast minute. Calls that take more than half of their timeout without any
 * queue are why it grows beyond the whole: these must not be refused. If a lower margin does not
 * make requests less late, the delay is not that of a queue, and the margin is given up for a time.
 *
 * A handler that answers before it returns has its queue in the sockets: requests wait for the turn
 * that reads them, and in it for those before.
 */
#ifndef SPOKEI_CLUSTER_FILTER_ADMISSION_H
#define SPOKEI_CLUSTER_FILTER_ADMISSION_H

#include "timer/base.h"

#include <stdbool.h>
#include <stdint.h>

/* For requests without a deadline: the time in which they should be answered. */
#define SPOKEI_ADMISSION_TARGET_NS UINT64_C(1000000000)

/* The measurements of a window. */
struct spokei_admission_window {
	uint64_t length_ns; /* of a complete one */
	uint64_t busy_ns;   /* with requests under way */
	uint64_t load;      /* ns, summed over the requests under way */
	uint64_t answers;   /* of handlers */
};

/* A round of the loop. */
struct spokei_admission_round {
	uint64_t turn;
	uint64_t begin_ns;
	uint64_t unread_ns; /* how long its requests may have been in the socket */
	uint64_t admitted;  /* requests */
};

/* Zero-initialised: nothing is known. */
struct spokei_admission {
	struct spokei_admission_window last; /* complete; empty: there is none yet */
	struct spokei_admission_window now;
	uint64_t begun_ns; /* of the window that goes on */
	uint64_t seen_ns;  /* until when `now` is counted */
	/* Requests that were admitted since the margin changed, and have ended. */
	uint64_t changed_ns;
	uint64_t judged;
	uint64_t late;
	uint32_t margin;   /* in parts of the time left; 0: nothing is known */
	uint32_t held_for; /* windows in which the margin is not lowered */
	/* When the margin was lowered: requests under way, and how many of 256 were late. 0: it has
	 * not been since requests were in time. */
	uint64_t low_load;
	uint64_t low_late;
	struct spokei_admission_round round; /* which is under way */
};

/* A request, and the time. */
struct spokei_admission_asked {
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint64_t now_ns;      /* in this round; before begin_ns it counts as that */
	uint64_t begin_ns;    /* of this round of the loop */
	uint64_t settled_ns;  /* the end of the round before, if anything was settled */
	uint64_t turn;        /* number of the turn */
};

/* Returns how long the request is expected to wait beyond the time that it has; 0: it is admitted.
 * `active`: the number of requests under way. */
uint64_t spokei_admission_ask(struct spokei_admission *admission,
			      const struct spokei_admission_asked *asked, uint32_t active);

/* A request that has ended. */
struct spokei_admission_end {
	uint64_t arrived_ns;
	uint64_t deadline_ns; /* as above */
	uint64_t now_ns;      /* begin of the round */
	bool has_run;         /* the answer is that of a handler */
	bool is_gone;         /* its caller does not wait any more */
};

/* `active`: the number of requests under way, with this one. */
void spokei_admission_end(struct spokei_admission *admission,
			  const struct spokei_admission_end *end, uint32_t active);

#endif
