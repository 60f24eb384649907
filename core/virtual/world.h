/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for tests: one virtual clock, seeded dice, one network and files in memory, and any
 * number of processes, each with an environment of its own. Time moves only when every loop has
 * nothing left to do. A loop here is not kinder than the real one: a round reports at most 64 of
 * the descriptors that are ready, often fewer, in any order. The same seed gives the same history.
 */
#ifndef SPOKEI_CORE_VIRTUAL_WORLD_H
#define SPOKEI_CORE_VIRTUAL_WORLD_H

#include "core/virtual/net.h"

struct spokei_world {
	uint64_t now_ns;
	uint64_t slept_ns; /* by so much the clock is ahead that goes on while the machine sleeps */
	uint64_t dice;     /* state */
	struct spokei_vnet *net;
	struct spokei_vfiles *files;
	struct spoke_list processes;
};

#define SPOKEI_WORLD_SIGNALS 8 /* at most so many are open in a process */

/* A process: its environment is `env`, good for one engine at a time. */
struct spokei_world_process {
	struct spokei_vnet_user user; /* first: the network's functions look for it there */
	struct spokei_world *world;
	struct spoke_env env;
	struct spoke_list node; /* of the world */
	void *loop;             /* open now, or NULL */
	uint64_t blocks;        /* of memory it has; a leak shows here */
	uint64_t bytes;         /* ... and how large they are */
	uint64_t held_until_ns; /* it does nothing before, and its clock is there already */
	uint64_t boot_ahead_ns; /* of its clock that counts sleep */
	uint64_t looked_ns; /* so long its loop looked, in waits that are over, as spin() says */
	uint64_t late_ns;   /* how long after it wanted to be woken its last turn began */
	/* Told after each turn of its loop; may be NULL. */
	void (*turned)(struct spokei_world_process *process);
	uint64_t fail_at; /* the demand for memory that fails, counted from 1; 0: none */
	uint64_t demands;
	struct {
		int number; /* 0: not open */
		int fd;
	} signals[SPOKEI_WORLD_SIGNALS];
};

/* What a process has for env.signals. */
extern const struct spoke_signals spokei_world_signals;

/* What all of them have for env, but for the loop and the process itself. */
extern const struct spoke_env spokei_world_env;

/* The next throw of the world's dice. */
uint64_t spokei_world_dice(struct spokei_world *world);

/* Returns whether there was memory for it. */
bool spokei_world_init(struct spokei_world *world, uint64_t seed);
void spokei_world_fini(struct spokei_world *world);

void spokei_world_process_init(struct spokei_world_process *process, struct spokei_world *world);

/* The process must have closed its loop. */
void spokei_world_process_fini(struct spokei_world_process *process);

/*
 * Moves time to the next thing that happens anywhere, at most to `until_ns`, and lets one loop that
 * has something to do turn once. Returns false when nothing happens before that; the time is
 * until_ns then.
 */
bool spokei_world_step(struct spokei_world *world, uint64_t until_ns);

/* Steps until that time. Meanwhile nobody does anything to a process but in its own turns. */
void spokei_world_go(struct spokei_world *world, uint64_t until_ns);

/* Steps until that time. */
void spokei_world_run(struct spokei_world *world, uint64_t until_ns);

/* One process is held up, inside a turn or between two: its clock moves on, and the others go on
 * without it. */
void spokei_world_hold(struct spokei_world_process *process, uint64_t ns);

/* A process is held up: time passes, and nobody else turns meanwhile who has not begun. */
void spokei_world_stall(struct spokei_world *world, uint64_t ns);

/* The machine sleeps: now() and all that happens stand still, while boot_now() goes on. */
void spokei_world_sleep(struct spokei_world *world, uint64_t ns);

/* The process gets a signal. Returns whether anybody there watches it. */
bool spokei_world_signal(struct spokei_world_process *process, int number);

#endif
