/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of the last list of providers, used while the registry does not answer: a line with the
 * service's name, then one URL per line. Written by pool threads, at most every 500 ms, and
 * replaced atomically. A failed write is only logged. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_CACHE_H
#define SPOKEI_CLUSTER_DISCOVERY_CACHE_H

#include "core/memory/buffer.h"

#define SPOKEI_CACHE_PAUSE_NS UINT64_C(500000000)
#define SPOKEI_CACHE_MAX (32u << 20) /* bytes of the file */

struct spoke_engine;
struct spokei_cache;

/*
 * Opens a cache; the environment has files. `path` and `service` are copied. Appends the
 * lines of the file to `texts`, each with a NUL, and counts them, but skips a file that is missing,
 * too large or of another service; logs each but a missing file. Blocks for the disk. Returns 0 or
 * SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_cache_open(struct spoke_engine *engine, const char *path,
				     const char *service, struct spokei_buffer *texts,
				     size_t *ret_count, struct spokei_cache **ret_cache);

/* Writes unwritten changes, and frees the cache after that, before its engine is freed. NULL
 * is fine. */
void spokei_cache_free(struct spokei_cache *cache);

/* Saves the texts of the current providers, each with its NUL, which are borrowed for the call.
 * Texts with control bytes are left out: they are no URLs. */
void spokei_cache_keep(struct spokei_cache *cache, const char *texts, size_t count);

#endif
