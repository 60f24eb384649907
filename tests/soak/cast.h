/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a soak: started, stopped, killed and mourned by their ids. The conductor's. */
#ifndef TESTS_SOAK_CAST_H
#define TESTS_SOAK_CAST_H

#include "board.h"
#include "plan.h"
#include "tests/sim/dice.h"

#include <sys/types.h>

enum actor_state {
	ACTOR_NONE, /* never was */
	ACTOR_DOWN, /* not there; starts again at `until_ns` */
	ACTOR_UP,
	ACTOR_FROZEN, /* until `until_ns` */
	ACTOR_ENDING, /* asked to end; has to by `until_ns` */
};

enum actor_harm {
	HARM_KILL,
	HARM_FREEZE,
	HARM_END, /* asked to end, as by whoever puts in a new version */
	HARMS,
};

struct actor {
	char name[32];
	bool provides;
	unsigned index; /* among those of its kind */
	unsigned lives;
	pid_t pid; /* 0: none */
	enum actor_state state;
	uint64_t until_ns;
	bool killed;      /* by us */
	struct desk past; /* what its earlier lives have counted */
	uint64_t dropped; /* calls and tickets that a killed life had open */
};

struct cast {
	struct actor actors[PROCESSES];
	uint64_t harms[2][HARMS]; /* of consumers, of providers */
	unsigned failures;        /* things that must not happen, told on stderr */
	uint64_t begun_ns;
};

extern struct cast cast;

uint64_t cast_now(void);

/* Maps the board, makes the folder, and starts all. False: told why. */
bool cast_begin(const struct plan *plan);

/* A signal asked for the end. */
bool cast_interrupted(void);

/* Sees who has ended, thaws and starts again whose time has come. */
void cast_tend(void);

/* Does it to an actor that is up; `for_ns`: how long it is frozen or away. */
void cast_harm(struct actor *actor, enum actor_harm harm, uint64_t for_ns);

/* Is everybody up, with all connections, and every endpoint ready? */
bool cast_whole(void);

/* Does nobody have a call that is open? Asked after board->hush. */
bool cast_rests(void);

/* Have all given back memory, after board->trim? */
bool cast_trimmed(void);

/* How many are not up. */
unsigned cast_harmed(void);

/* One counter of all lives of all, and of one kind only. */
uint64_t cast_count(enum desk_count count);
uint64_t cast_count_of(bool provides, enum desk_count count);

/* Asks all of one kind to end, and waits for them. */
void cast_end(bool provides);

/* Kills who is left, and removes the folder. */
void cast_close(void);

/* Something that must not happen has. */
__attribute__((format(printf, 1, 2))) void cast_fail(const char *format, ...);

#endif
