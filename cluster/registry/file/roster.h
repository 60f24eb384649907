/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a file that lists providers: a URL in each line, as it would be given to a consumer.
 * What begins with "#" is a comment; spaces and tabs around a line, and empty lines, mean nothing.
 * Of one place and service there is one line. A decider: text in, text out.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_FILE_ROSTER_H
#define SPOKEI_CLUSTER_REGISTRY_FILE_ROSTER_H

#include "core/memory/buffer.h"

#include <spoke/url.h>

#define SPOKEI_ROSTER_MAX 1048576u /* bytes of the text */

struct spokei_roster_line {
	size_t start;     /* where it begins */
	size_t next;      /* where the next one does */
	const char *text; /* what counts of it, without a NUL */
	size_t len;       /* 0: nothing does */
	unsigned number;  /* from 1 on */
};

/* Goes to the next line, from one that is all zero to the first. False: there is none. */
bool spokei_roster_next(const char *text, size_t len, struct spokei_roster_line *line);

/* Which service a provider's URL is of; "": it does not say. */
const char *spokei_roster_service(const struct spoke_url *url);

/* Is it a provider of the service? */
bool spokei_roster_provides(const struct spoke_url *url, const char *service);

/* Are they the same provider: same place, same service, group and version? */
bool spokei_roster_same(const struct spoke_url *one, const struct spoke_url *other);

/* Appends the text to `out` with `entry`, which is read as `url`, in place of the lines of the same
 * provider, or behind all when there is none; NULL: with none. Returns 0, SPOKE_ENOMEM or
 * SPOKE_ETOOLARGE (what `out` may hold). */
SPOKE_MUST_USE int spokei_roster_edit(const char *text, size_t len, const struct spoke_url *url,
				      const char *entry, struct spokei_buffer *out);

#endif
