/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key that a URL may say: one table has its type, range, default and sentence. What a URL
 * says becomes numbers here, in the unit of the key; for keys with names (cluster, loadbalance) the
 * number in the catalog. Deciders, but for the sentence in the engine's newest event.
 */
#ifndef SPOKEI_KEYS_H
#define SPOKEI_KEYS_H

#include "core/engine.h"

#include <spoke/url.h>

#define SPOKEI_TIMEOUT_NS UINT64_C(1000000000)
#define SPOKEI_TIMEOUT_MAX_NS UINT64_C(2147483647000000) /* 2^31 - 1 ms, as Java's int */
#define SPOKEI_RETRIES_MAX 100u
#define SPOKEI_PERIOD_MIN_NS UINT64_C(10000000)

enum spokei_key {
	/* Of a consumer's calls; with a method's name before it, of that method's. */
	SPOKEI_KEY_TIMEOUT,
	SPOKEI_KEY_CLUSTER,
	SPOKEI_KEY_LOADBALANCE,
	SPOKEI_KEY_RETRIES,
	SPOKEI_KEY_RETRY_PERIOD,
	SPOKEI_KEY_RETRY_BACKOFF,
	SPOKEI_KEY_RETRY_DEADLINE,
	SPOKEI_KEY_FORKS,
	SPOKEI_KEY_FAIL_PERCENT,
	SPOKEI_KEY_WAIT_READY,
	SPOKEI_KEY_STICKY,
	SPOKEI_KEY_IDEMPOTENT,
	SPOKEI_KEY_ACTIVES,
	SPOKEI_KEY_TPS,
	SPOKEI_KEYS_OF_METHODS,
	/* Of the whole consumer. */
	SPOKEI_KEY_HEARTBEAT = SPOKEI_KEYS_OF_METHODS,
	SPOKEI_KEY_IDLE_CLOSE,
	SPOKEI_KEY_PENDING_MAX,
	SPOKEI_KEY_FRAME_MAX,
	SPOKEI_KEY_FAILBACK_TASKS,
	SPOKEI_KEY_FAILBACK_BYTES,
	SPOKEI_KEY_FAILBACK_OVERFLOW,
	SPOKEI_KEY_ENDPOINT_ACTIVES,
	SPOKEI_KEY_CONNECTIONS,
	SPOKEI_KEY_LAZY,
	SPOKEI_KEY_EJECT_FAILURES,
	SPOKEI_KEY_EJECT_TIME,
	SPOKEI_KEY_REGISTRY_RETRY_PERIOD,
	SPOKEI_KEY_REGISTRY_RETRY_TIMES,
	SPOKEI_KEY_REGISTRY_PROTECT,
	SPOKEI_KEYS,
};

/* What keys were given, by number. */
struct spokei_key_values {
	uint64_t of[SPOKEI_KEYS]; /* presets where nothing was said */
	bool said[SPOKEI_KEYS];
};

/*
 * What a URL says for all methods. It is refused if a key is not known, or a value not right, of a
 * method too. Returns 0 or an error, of which the engine's newest event has a sentence.
 */
SPOKE_MUST_USE int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
				    struct spokei_key_values *ret);

/* ... for one method, over what stands for all. The URL was read before. */
void spokei_keys_read_method(const struct spoke_url *url, const char *method,
			     struct spokei_key_values *values);

/* What a provider's URL says that consumers go by, where they say nothing themselves. What is not
 * right there is passed over. */
void spokei_keys_read_provided(const struct spoke_url *url, struct spokei_key_values *values);

/* An option that users set in code: refused if it is out of the key's range. */
SPOKE_MUST_USE int spokei_keys_overrule(struct spoke_engine *engine,
					struct spokei_key_values *values, enum spokei_key key,
					uint64_t option);

/* The name of a key. */
const char *spokei_keys_name(enum spokei_key key);

/* Is it one that is a text and read elsewhere, or that says nothing to spoke? */
bool spokei_keys_is_other(const char *key);

#endif
