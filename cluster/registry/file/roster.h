/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a registry file (a "roster"): one URL per line, as for a consumer. "#" begins a
 * comment; blanks around a line and empty lines are ignored. There is one line per address and
 * service. The parameter "lock" of a line is the mark of the process that wrote it: the lock of the
 * file's path, a dot and the mark is held while the process lives. Pure.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_FILE_ROSTER_H
#define SPOKEI_CLUSTER_REGISTRY_FILE_ROSTER_H

#include "core/memory/buffer.h"

#include <spoke/url.h>

#define SPOKEI_ROSTER_MAX 1048576u                  /* bytes of the text */
#define SPOKEI_ROSTER_MARK (SPOKE_MARK_DIGITS + 1u) /* bytes of a mark with the NUL */

struct spokei_roster_line {
	size_t start;     /* where the line begins */
	size_t next;      /* where the next line begins */
	const char *text; /* contents, without a NUL */
	size_t len;       /* 0: empty */
	unsigned number;  /* from 1 on */
};

/* Goes to the next line; to the first from an all-zero one. Returns false at the end. */
bool spokei_roster_next(const char *text, size_t len, struct spokei_roster_line *line);

/* Returns the service of a provider's URL; "": none. */
const char *spokei_roster_service(const struct spoke_url *url);

/* Returns whether the URL is a provider of the service. */
bool spokei_roster_provides(const struct spoke_url *url, const char *service);

/* Returns whether two URLs have the same address, service, group and version. */
bool spokei_roster_same(const struct spoke_url *one, const struct spoke_url *other);

/* Copies the mark of a line's text, of `len` bytes. Returns false if it has none. */
bool spokei_roster_mark(const char *text, size_t len, char ret_mark[SPOKEI_ROSTER_MARK]);

/* Appends the line's text without its mark. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_roster_unmark(const char *text, size_t len, struct spokei_buffer *out);

/* An entry that edit() writes: the parsed URL of a provider and its text, and the mark of this
 * process or NULL. An entry without a text removes the provider. */
struct spokei_roster_entry {
	const struct spoke_url *url;
	const char *text;
	const char *mark;
};

/* Appends the text to `out` with the entry in place of the lines of the same provider, or at the
 * end. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE (limit of `out`). */
SPOKE_MUST_USE int spokei_roster_edit(const char *text, size_t len,
				      const struct spokei_roster_entry *entry,
				      struct spokei_buffer *out);

/* Appends the text to `out` without the lines of which `is_dead` returns true, and counts these.
 * Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_roster_sift(const char *text, size_t len,
				      bool (*is_dead)(void *arg,
						      const struct spokei_roster_line *line),
				      void *arg, struct spokei_buffer *out, unsigned *ret_dead);

#endif
