/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the registry in a file, which processes of one machine share and people may edit:
 * "file:///run/spoke/providers". See roster.h for its format. A watch of its directory reports
 * changes; the file is also read every 10 s, or every second while there is no watch or no file.
 * A missing file lists no provider; an unreadable one changes nothing.
 *
 * To publish or withdraw, a process locks the file and replaces it as a whole. A lock that
 * another process holds is requested again every 20 ms, for 2 s. A published line is lost when no
 * line of the same provider is left.
 *
 * Each registry that publishes holds a lock of its own beside the file. The lock's name (the
 * "mark") is in its lines. The kernel releases the lock when the process ends, also when it is
 * killed. Readers leave out lines whose lock is free; a process that may write the file removes
 * them, under the file's lock. A mark is locked before its first line is written, so a line whose
 * lock is free is never that of a new process. Lines without a mark come from people or from an
 * older spoke: they stay until the same provider is published again or a person removes them. A
 * child that was forked without an exec keeps its parent's lock, and so its lines.
 *
 * file.c handles requests, change.c writes the file, look.c reads it, mark.c knows the processes
 * that live. On the engine's thread, which waits for the disk.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_FILE_PARTS_H
#define SPOKEI_CLUSTER_REGISTRY_FILE_PARTS_H

#include "cluster/registry/errands.h"
#include "cluster/registry/file/roster.h"

/* How long to wait for the next piece of a file being written. */
#define SPOKEI_FILE_SETTLE_NS UINT64_C(20000000)
#define SPOKEI_FILE_SHOWN 128u  /* bytes of a path in a message */
#define SPOKEI_FILE_ANSWERS 64u /* marks whose state is remembered within one reading */

/* Whether the process of a mark is dead. */
struct spokei_file_answer {
	char mark[SPOKEI_ROSTER_MARK]; /* "": none */
	bool dead;
};

struct spokei_file {
	struct spoke_engine *engine;
	struct spokei_errands errands;
	struct spokei_task work; /* on the soon queue: work to do */
	struct spokei_task reap;
	/* Always armed, so that arming cannot fail: for the next of these times. */
	struct spoke_alarm clock;
	uint64_t look_ns;   /* next read in any case, while `looking` */
	uint64_t settle_ns; /* next read after a change; UINT64_MAX: none */
	uint64_t lock_ns;   /* next attempt to lock; UINT64_MAX: none */
	unsigned tries;     /* consecutive attempts to lock */
	struct spoke_watch watch;
	bool watching;
	bool looking;              /* a request depends on the file's contents */
	bool found;                /* the file existed when it was last read */
	bool asked;                /* a new request needs the text */
	bool known;                /* all contents have been reported */
	bool left_out;             /* lines of dead processes were left out of the lists */
	bool clear;                /* ... and shall be removed from the file */
	int complained;            /* this error was logged */
	struct spokei_buffer text; /* text of the file when it was last read */
	char *path;
	char *marked;                  /* path of a mark's lock: `path`, a dot, room for a mark */
	char mark[SPOKEI_ROSTER_MARK]; /* of this registry */
	int mark_fd;                   /* its lock; -1: not held */
	unsigned forks;                /* generation of the process that took it */
	struct spokei_file_answer answers[SPOKEI_FILE_ANSWERS];
	char shown[SPOKEI_FILE_SHOWN];
};

/* Opens the watch again. */
void spokei_file_watch(struct spokei_file *file);
void spokei_file_unwatch(struct spokei_file *file);

/* Appends the file's text, or nothing if there is no file. Returns 0 or an error, which was
 * logged. */
SPOKE_MUST_USE int spokei_file_read(struct spokei_file *file, struct spokei_buffer *out);

/* Reads the file and reports its contents. */
void spokei_file_look(struct spokei_file *file);

/* Reports the contents of a text, and takes over its memory. */
void spokei_file_take(struct spokei_file *file, struct spokei_buffer *text);

/* Returns whether a request waits for a change of the file. */
bool spokei_file_wants_change(struct spokei_file *file);

/* Returns whether a line of this registry is in the file, or shall be. */
bool spokei_file_wants_mark(struct spokei_file *file);

/* Changes the file for all requests that wait for it, and removes lines of dead processes. */
void spokei_file_change(struct spokei_file *file);

/* Takes the lock of this registry's mark, or takes it again if its file was removed. Needs the lock
 * of the file. Returns 0 or a negative errno. */
SPOKE_MUST_USE int spokei_file_mark(struct spokei_file *file);

/* Gives the mark up: lines that bear it become those of a dead process. */
void spokei_file_unmark(struct spokei_file *file);

/* Forgets which marks are those of dead processes: a new reading begins. */
void spokei_file_forget(struct spokei_file *file);

/* Returns whether the process that wrote this line has ended. `file` is a struct spokei_file. */
bool spokei_file_is_dead(void *file, const struct spokei_roster_line *line);

/* Logs an error of the file, negative errno `status`, if it is a new one. Returns the error. */
int spokei_file_complain(struct spokei_file *file, const char *what, int status);

#endif
