/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine in a loop that is not libev's. All its events, and the time, come to one epoll
 * descriptor, which any other loop can watch. Around each of its waits that loop calls two
 * functions:
 *
 *     int timeout = fd_loop_before(&loop);   0: do not wait now; -1: as long as you like
 *     ... waits for loop.epoll, among others ...
 *     fd_loop_after(&loop);
 *
 * Copy both files into your program. The environment is the host's, with another loop:
 *
 *     struct fd_loop loop;
 *     struct spoke_env env;
 *     struct spoke_engine_options options = { .env = &env, .native = &loop };
 *
 *     fd_loop_init(&loop, &env);
 *     spoke_engine_new(&options, &engine);
 *
 * Both structs outlive the engine. Everything is on one thread, except works, e.g. the resolution
 * of names: each has a thread of its own. A process that forks must not use the engine in the
 * child.
 */
#ifndef EXAMPLES_LOOPS_FD_LOOP_H
#define EXAMPLES_LOOPS_FD_LOOP_H

#include <spoke/spoke.h>

#include <pthread.h>
#include <sys/epoll.h>

#define FD_LOOP_EVENTS 64 /* events of one turn */
#define FD_LOOP_WORKS 8   /* works at one time */

struct fd_loop {
	int epoll;    /* to be watched for reading */
	bool stopped; /* by spoke_engine_stop(), or a drain is complete: leave the loop around it */

	/* private */
	const struct spoke_loop_up *up;
	void *arg;
	int timer;         /* a timerfd */
	int wake;          /* an eventfd, written by other threads */
	uint64_t armed_ns; /* time of the timer; UINT64_MAX: not set */
	bool at_once;
	struct epoll_event events[FD_LOOP_EVENTS]; /* of the present turn */
	int count;
	pthread_mutex_t lock; /* of the works */
	pthread_cond_t ended;
	unsigned running;
	struct spoke_work *done[FD_LOOP_WORKS]; /* have run */
	unsigned done_count;
};

/* Prepares a loop, and an environment for engines in it. */
void fd_loop_init(struct fd_loop *loop, struct spoke_env *env);

/* Lets the engine write, and set its time. Returns 0 if the loop around must not wait, else -1. */
int fd_loop_before(struct fd_loop *loop);

/* Lets the engine serve its events, if there are any. */
void fd_loop_after(struct fd_loop *loop);

#endif
