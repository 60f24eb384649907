/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the demo: started, frozen, waked, killed and ended by the driver, and what they
 * tell it. What an actor tells goes into the story at once.
 */
#ifndef DEMO_CAST_H
#define DEMO_CAST_H

#include "examples/demo/message.h"
#include "examples/demo/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CAST_MAX (PLAN_PROVIDERS_MAX + 2)
#define CAST_ARGS 8
#define CAST_NAME 24
#define CAST_TEXT 512

struct actor {
	char name[CAST_NAME];
	char program[CAST_TEXT];
	char args[CAST_ARGS][CAST_TEXT]; /* after the name */
	unsigned arg_count;
	bool provides;
	pid_t pid;  /* 0: it is not there */
	int status; /* as waitpid() gave it, of one that has ended */
	int from;   /* what it writes; -1: nothing more */
	char line[MESSAGE_MAX];
	size_t line_len;
	bool long_line; /* too long, and passed over */
	char address[CAST_NAME + 40];
	char page[CAST_NAME + 40]; /* where it shows itself; "": nowhere */
	bool stopped;              /* as waitpid() says */
	bool started;              /* it was there once */
	bool leaving;              /* it was told to end, or killed */
	uint64_t frozen_ns;        /* when it was frozen last; 0: never ... */
	uint64_t waked_ns;         /* ... and waked; 0: it is frozen */
	uint64_t revive_ns; /* when the driver mends what a visitor did; 0: nothing was done */
	uint64_t died;      /* calls and tickets that were open in processes that were killed */
	const struct actor *watched; /* events of other links do not count below; NULL: all do */
	unsigned seen[TAGS];         /* how often each was told, since actor_watch() */
	unsigned missed;             /* ... and of SUSPECT, the number it came to */
	uint64_t counts[COUNTS];     /* of the process there is ... */
	uint64_t past[COUNTS];       /* ... and of those that it has replaced */
	uint64_t late_us;            /* the worst, but for having been frozen */
};

struct cast {
	struct actor actors[CAST_MAX];
	unsigned count;
	bool quiet;              /* what is told of links is not shown */
	bool pulses;             /* what is told each second is shown */
	unsigned idle_closes;    /* connections that idle checks closed, as told ... */
	unsigned false_kills;    /* ... to a peer that was neither frozen nor killed */
	bool live;               /* visitors may do harm, too */
	char token[33];          /* that visitors have to know to do any */
	uint64_t thaw_ns;        /* whom they freeze is waked after */
	uint64_t patience_ns;    /* that is waited for anything */
	char trouble[CAST_TEXT]; /* why it cannot go on; "": it can */
};

extern struct cast cast;

/* `driver`: as it was started. Listens for signals from now on. */
void cast_begin(const char *driver, uint64_t patience_ns);

/* The signal that wants the demo to end; 0: none. */
int cast_interrupted(void);

/* It is heard, and what comes next is another one. */
void cast_heed(void);

/* Adds an actor that runs `program`, which lies beside the driver, and is not started yet. */
struct actor *cast_add(const char *program, const char *name);
__attribute__((format(printf, 2, 3))) void actor_add_arg(struct actor *actor, const char *format,
							 ...);

/* Starts its process. Returns whether it could. */
bool actor_start(struct actor *actor);

/* From now on its events of links to that peer are counted anew. NULL: of all links. */
void actor_watch(struct actor *actor, const struct actor *peer);

/* All that it has counted. */
uint64_t actor_count(const struct actor *actor, enum message_count count);

/* Notes why the demo cannot go on, if nothing was noted before. Returns false. */
__attribute__((format(printf, 1, 2))) bool cast_trouble(const char *format, ...);

/* Kills whoever is there. */
void cast_end_all(void);

#endif
