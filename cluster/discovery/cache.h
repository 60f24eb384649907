/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of the providers last heard of, with which a consumer begins when its registry does not
 * answer: a line that names the service, then a URL a line. It is written on the pool's threads, at
 * most every 500 ms, and replaced as a whole: readers see the old or the new. Not being able to
 * write it hurts nobody now, so that is an event only. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_CACHE_H
#define SPOKEI_CLUSTER_DISCOVERY_CACHE_H

#include "cluster/discovery/lineup.h"

#define SPOKEI_CACHE_PAUSE_NS UINT64_C(500000000)
#define SPOKEI_CACHE_MAX (4u << 20) /* bytes of the file */

struct spoke_engine;
struct spokei_cache;

/* `path` and `service` are copied. Returns 0, SPOKE_EUNSUPPORTED (the environment has no files),
 * SPOKE_EINVAL (an empty path) or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_cache_new(struct spoke_engine *engine, const char *path,
				    const char *service, struct spokei_cache **ret_cache);

/* Writes what is not written yet, and is gone when that is done: before its engine is. NULL is
 * fine. */
void spokei_cache_free(struct spokei_cache *cache);

/*
 * Reads the file into a lineup. What is missing, too large, of another service, or damaged, is left
 * out, with an event unless there is no file. Blocks for as long as the disk does. Returns 0 or
 * SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_cache_read(const struct spokei_cache *cache,
				     struct spokei_lineup *lineup);

/* These are the providers now. Borrowed for the call. */
void spokei_cache_keep(struct spokei_cache *cache, const struct spoke_url *urls, size_t count);

#endif
