/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that processes of one machine share, and that people may write too, as a registry:
 * "file:///run/spoke/providers". See roster.h for what it looks like. Changes are seen at once by a
 * watch of its folder, and within 10 s anyway, where the system does not tell of them; while there
 * is no watch, or no file, within a second. A file that is not there lists nobody; one that cannot
 * be read changes nothing.
 *
 * Who publishes or withdraws locks the file and replaces it as a whole. A lock that somebody else
 * keeps is asked for again every 20 ms, for 2 s. A line that is published is lost when no line of
 * the same provider is there any more. What a process that died had published stays, until one
 * publishes the same provider anew or people take it out.
 *
 * Half of the registry, file.c, does what it is asked for; the other half, file_look.c, looks at
 * the file. On the engine's thread, which waits for the disk.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_FILE_PARTS_H
#define SPOKEI_CLUSTER_REGISTRY_FILE_PARTS_H

#include "cluster/registry/errands.h"

/* How long who writes the file piece by piece has for the next one. */
#define SPOKEI_FILE_SETTLE_NS UINT64_C(20000000)
#define SPOKEI_FILE_SHOWN 128u /* bytes of a path in a sentence */

struct spokei_file {
	struct spoke_engine *engine;
	struct spokei_errands errands;
	struct spokei_task work; /* on soon: something is to be done */
	struct spokei_task reap;
	/* Set for its whole life, so that it can always be set: for the next of these times. */
	struct spoke_alarm clock;
	uint64_t look_ns;   /* when the file is looked at anyway, while `looking` */
	uint64_t settle_ns; /* when it is, as it has changed; UINT64_MAX: it has not */
	uint64_t lock_ns;   /* when the lock is asked for again; UINT64_MAX: not */
	unsigned tries;     /* for the lock, in a row */
	struct spoke_watch watch;
	bool watching;
	bool looking;              /* it matters to somebody what becomes of the file */
	bool found;                /* there was a file when it was read last */
	bool asked;                /* there is a new errand that the text says something about */
	bool known;                /* all has been told that the text says */
	int complained;            /* of this error of the file, and not since */
	struct spokei_buffer text; /* of the file, as of the last look */
	char *path;
	char shown[SPOKEI_FILE_SHOWN];
};

/* Opens the watch anew. */
void spokei_file_watch(struct spokei_file *file);
void spokei_file_unwatch(struct spokei_file *file);

/* Appends the file's text, none if there is no file. Returns 0 or an error, of which it has
 * complained. */
SPOKE_MUST_USE int spokei_file_read(struct spokei_file *file, struct spokei_buffer *out);

/* Reads the file and takes what it says. */
void spokei_file_look(struct spokei_file *file);

/* Takes what a text of the file says, and its memory. */
void spokei_file_take(struct spokei_file *file, struct spokei_buffer *text);

/* Something went wrong with the file, negative errno `status`; says so if that is new. Returns the
 * error. */
int spokei_file_complain(struct spokei_file *file, const char *what, int status);

#endif
