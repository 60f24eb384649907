/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for tests: one virtual clock, seeded random numbers, one network and files in memory, and
 * any number of processes, each with an environment of its own. Time advances only when no loop has
 * anything left to do. A loop here is no kinder than the real one: a round reports at most 64 ready
 * descriptors, often fewer, in any order. The same seed gives the same history.
 */
#ifndef SPOKEI_CORE_VIRTUAL_WORLD_H
#define SPOKEI_CORE_VIRTUAL_WORLD_H

#include "core/virtual/net.h"

struct spokei_world {
	uint64_t now_ns;
	uint64_t slept_ns; /* lead of the boot-time clock, which goes on during sleep */
	uint64_t dice;     /* state */
	struct spokei_vnet *net;
	struct spokei_vfiles *files;
	struct spoke_list processes;
	bool halts; /* set by a process: spokei_world_go() ends after its turn */
};

#define SPOKEI_WORLD_SIGNALS 8 /* most signals open in a process */

/* A process. Its environment is `env`, for one engine at a time. */
struct spokei_world_process {
	struct spokei_vnet_user user; /* first: the functions of the network expect it there */
	struct spokei_world *world;
	struct spoke_env env;
	struct spoke_list node; /* in the list of the world */
	void *loop;             /* open now, or NULL */
	uint64_t blocks;        /* blocks of memory in use; a leak shows here */
	uint64_t bytes;         /* ... and their bytes */
	uint64_t held_until_ns; /* it does nothing before this time, and its clock shows it already
				 */
	uint64_t boot_ahead_ns; /* lead of its boot-time clock */
	uint64_t looked_ns;     /* how long its loop polled in finished waits, as spin() reports */
	uint64_t begun_ns;      /* when its last turn began */
	uint64_t late_ns;       /* how late that was */
	uint64_t host_id;       /* as env.host_id() reports it; 0: it is not known */
	bool pool_is_busy;      /* works wait in the queue of the pool until this is false again */
	bool background_waits;  /* the same for works in the background */
	bool works;             /* a thread of the pool is running */
	uint64_t work_ns;       /* how long its work takes */
	/* Called after each turn of its loop; may be NULL. */
	void (*turned)(struct spokei_world_process *process);
	uint64_t fail_at; /* the allocation that fails, counted from 1; 0: none */
	uint64_t demands;
	struct {
		int number; /* 0: not open */
		int fd;
	} signals[SPOKEI_WORLD_SIGNALS];
};

/* The number of the host on which all processes run, unless a test gives them others. */
#define SPOKEI_WORLD_HOST UINT64_C(0x5907e0000001)

/* Returns false without memory. */
bool spokei_world_init(struct spokei_world *world, uint64_t seed);
void spokei_world_fini(struct spokei_world *world);

void spokei_world_process_init(struct spokei_world_process *process, struct spokei_world *world);

/* The process must have closed its loop. */
void spokei_world_process_fini(struct spokei_world_process *process);

/* Advances time to the next event anywhere, at most to `until_ns`, and lets one loop with work turn
 * once. Returns false if nothing happens before that; the time is until_ns then. */
bool spokei_world_step(struct spokei_world *world, uint64_t until_ns);

/* Steps until that time, or until a process halts the world. Processes are touched only in their
 * own turns. */
void spokei_world_go(struct spokei_world *world, uint64_t until_ns);

/* Steps until that time. */
void spokei_world_run(struct spokei_world *world, uint64_t until_ns);

/* Holds up one process, inside a turn or between two: its clock moves on, and the others go on
 * without it. */
void spokei_world_hold(struct spokei_world_process *process, uint64_t ns);

/* Holds up a process: time passes, and no other process begins a turn meanwhile. */
void spokei_world_stall(struct spokei_world *world, uint64_t ns);

/* Lets the machine sleep: now() and all events stop, while boot_now() goes on. */
void spokei_world_sleep(struct spokei_world *world, uint64_t ns);

/* Sends the process a signal. Returns whether the process watches it. */
bool spokei_world_signal(struct spokei_world_process *process, int number);

#endif
