/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of the last list of providers, used while the registry does not answer: a line with the
 * service's name, then one URL per line. Written by pool threads, at most every 500 ms, and
 * replaced atomically. A failed write is only logged. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_CACHE_H
#define SPOKEI_CLUSTER_DISCOVERY_CACHE_H

#include "cluster/registry/urls.h"

#define SPOKEI_CACHE_PAUSE_NS UINT64_C(500000000)
#define SPOKEI_CACHE_MAX (4u << 20) /* bytes of the file */

struct spoke_engine;
struct spokei_cache;

/*
 * Opens a cache; the environment has files. `path` and `service` are copied. Reads the file into a
 * list, but skips a file that is missing, too large or of another service, and damaged lines; logs
 * each but a missing file. Blocks for the disk. Returns 0 or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_cache_open(struct spoke_engine *engine, const char *path,
				     const char *service, struct spokei_url_list *list,
				     struct spokei_cache **ret_cache);

/* Writes unwritten changes, and frees the cache after that, before its engine is freed. NULL
 * is fine. */
void spokei_cache_free(struct spokei_cache *cache);

/* Saves the current providers, which are borrowed for the call. */
void spokei_cache_keep(struct spokei_cache *cache, const struct spoke_url *urls, size_t count);

#endif
