/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line for every request of a provider, in the engine's log or in a file. A filter like others;
 * the first one, so that it sees what the others refuse.
 *
 * Lines for a file gather in memory, and go there together: once a second, or when there are many,
 * by a thread of the pool. There is room for 64 KiB while the file is being written to; beyond
 * that lines are left out, and so are those that could not be written: the file says how many, as
 * soon as it can. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_ACCESS_LOG_H
#define SPOKEI_CLUSTER_PROVIDER_ACCESS_LOG_H

#include <spoke/filter.h>

struct spoke_engine;
struct spokei_access_log;

/* `where`: "true": the engine's log; else a path, copied. Returns 0, SPOKE_EINVAL (an empty one),
 * SPOKE_EUNSUPPORTED (no files here; there is an event) or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_access_log_new(struct spoke_engine *engine, const char *where,
					 struct spokei_access_log **ret_log);

const struct spoke_filter *spokei_access_log_filter(const struct spokei_access_log *log);

/* Nobody asks it any more. What it has is written, a little later, and then it is gone; NULL is
 * fine. The engine has to be there, not its turns. */
void spokei_access_log_end(struct spokei_access_log *log);

#endif
