/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the registry in a file, which processes of one machine share and people may edit:
 * "file:///run/spoke/providers". See roster.h for its format. A watch of its directory reports
 * changes; the file is also read every 10 s, or every second while there is no watch or no file.
 * A missing file lists no provider; an unreadable one changes nothing.
 *
 * To publish or withdraw, a process locks the file and replaces it as a whole. A lock that
 * another process holds is requested again every 20 ms, for 2 s. A published line is lost when no
 * line of the same provider is left. Entries of a dead process stay until the same provider is
 * published again or a person removes them.
 *
 * file.c handles requests, look.c reads the file. On the engine's thread, which waits for the
 * disk.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_FILE_PARTS_H
#define SPOKEI_CLUSTER_REGISTRY_FILE_PARTS_H

#include "cluster/registry/errands.h"

/* How long to wait for the next piece of a file being written. */
#define SPOKEI_FILE_SETTLE_NS UINT64_C(20000000)
#define SPOKEI_FILE_SHOWN 128u /* bytes of a path in a message */

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
	int complained;            /* this error was logged */
	struct spokei_buffer text; /* text of the file when it was last read */
	char *path;
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

/* Logs an error of the file, negative errno `status`, if it is a new one. Returns the error. */
int spokei_file_complain(struct spokei_file *file, const char *what, int status);

#endif
