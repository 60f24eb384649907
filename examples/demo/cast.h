/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the demo ("actors"), which the driver starts, freezes, kills and ends, and their
 * reported events and counts.
 */
#ifndef DEMO_CAST_H
#define DEMO_CAST_H

#include "examples/demo/message.h"
#include "examples/demo/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CAST_MAX (PLAN_PROVIDERS_MAX + 10)
#define CAST_ARGS 8
#define CAST_NAME 24
#define CAST_TEXT 512

struct actor {
	char name[CAST_NAME];
	char program[CAST_TEXT];
	char args[CAST_ARGS][CAST_TEXT]; /* after the name */
	unsigned arg_count;
	bool provides;
	/* Of a server that is no program of the demo: argv[0], which the arguments follow. Its
	 * output is a log. "": a program of the demo. */
	char alias[CAST_NAME];
	pid_t pid;  /* 0: not running */
	int status; /* of waitpid(), after the exit */
	int from;   /* its standard output; -1: closed */
	char line[MESSAGE_MAX];
	size_t line_len;
	bool long_line; /* too long; ignored */
	char address[CAST_NAME + 40];
	char page[CAST_NAME + 40]; /* address of its admin page; "": none */
	bool stopped;              /* according to waitpid() */
	bool started;              /* it has run */
	bool leaving;              /* the driver has ended or killed it */
	uint64_t frozen_ns;        /* time of the last freeze; 0: never ... */
	uint64_t waked_ns;         /* ... and of its end; 0: still frozen */
	uint64_t revive_ns; /* when the driver revives it after a visitor's action; 0: no action */
	uint64_t died;      /* open calls and tickets of killed processes */
	uint64_t died_leases;        /* leases that killed processes held */
	bool holds;                  /* a lease, as far as is known */
	unsigned fence;              /* fence number of its last lease; 0: none */
	bool waked;                  /* the driver has waked it, and it has reported nothing yet */
	enum message_tag first;      /* tag of its first report after that */
	const struct actor *watched; /* only its connections count below; NULL: all do */
	unsigned seen[TAGS];         /* number of events since actor_watch() */
	unsigned missed;             /* ... and highest number of missed heartbeats */
	uint64_t counts[COUNTS];     /* of the running process ... */
	uint64_t past[COUNTS];       /* ... and of its predecessors */
	uint64_t late_us;            /* worst lateness, except after a freeze */
};

struct cast {
	struct actor actors[CAST_MAX];
	unsigned count;
	bool quiet;           /* hides connection events */
	bool pulses;          /* shows the reports of each second */
	unsigned idle_closes; /* reported connections closed by the idle check */
	unsigned taken_over;  /* leases granted while the last holder was frozen or dead */
	bool live;            /* visitors may inject faults, too */
	char token[33];       /* token that actions of the pages need */
	uint64_t thaw_ns;     /* time after which the driver wakes a process that a visitor froze */
	uint64_t patience_ns; /* timeout of each wait */
	char trouble[CAST_TEXT]; /* the first failure; "": none */
};

extern struct cast cast;

/* `driver`: argv[0] of the driver. Installs signal handlers. */
void cast_begin(const char *driver, uint64_t patience_ns);

/* Returns the directory of the programs. */
const char *cast_folder(void);

/* Returns the signal that interrupts the demo; 0: none. */
int cast_interrupted(void);

/* Clears the interrupt. */
void cast_clear_interrupt(void);

/* Adds an actor that will run `program`: an absolute path, or a name in the directory of the
 * driver. */
struct actor *cast_add(const char *program, const char *name);
__attribute__((format(printf, 2, 3))) void actor_add_arg(struct actor *actor, const char *format,
							 ...);

/* Starts the process. Returns false on failure. */
bool actor_start(struct actor *actor);

/* Resets the event counts, and counts only connections to that peer. NULL: all connections. */
void actor_watch(struct actor *actor, const struct actor *peer);

/* Returns a count over all processes of the actor. */
uint64_t actor_count(const struct actor *actor, enum message_count count);

/* Records the first failure. Returns false. */
__attribute__((format(printf, 1, 2))) bool cast_trouble(const char *format, ...);

/* Kills all processes. */
void cast_end_all(void);

#endif
