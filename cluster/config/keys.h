/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key that a URL or a file may say: one table has its type, range, default, sentence, where
 * it may stand, and whether a reload changes it in what lives. What is said becomes numbers here,
 * in the unit of the key; for keys with names (cluster, loadbalance) the number in the catalog.
 * Deciders, but for the sentence in the engine's newest event.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_KEYS_H
#define SPOKEI_CLUSTER_CONFIG_KEYS_H

#include "core/engine/engine.h"
#include "core/text/option.h"

#include <spoke/url.h>

#define SPOKEI_TIMEOUT_NS UINT64_C(1000000000)
#define SPOKEI_TIMEOUT_MAX_NS UINT64_C(2147483647000000) /* 2^31 - 1 ms, as Java's int */
#define SPOKEI_RETRIES_MAX 100u
#define SPOKEI_PERIOD_MIN_NS UINT64_C(10000000)
#define SPOKEI_WEIGHT_MAX 1000000u

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
	SPOKEI_KEYS_OF_URLS,
	/* Of a registry, of services. */
	SPOKEI_KEY_REGISTRY_URL = SPOKEI_KEYS_OF_URLS,
	SPOKEI_KEY_REGISTRY_CACHE,
	SPOKEI_KEY_VERSION,
	SPOKEI_KEY_GROUP,
	/* Of providers. */
	SPOKEI_KEY_LISTEN,
	SPOKEI_KEY_ADVERTISE,
	SPOKEI_KEY_APPLICATION,
	SPOKEI_KEY_WEIGHT,
	SPOKEI_KEY_WARMUP,
	SPOKEI_KEY_DEFAULT_SERVICE,
	SPOKEI_KEY_ACCESS_LOG,
	SPOKEI_KEY_EXECUTES,
	SPOKEI_KEY_EXECUTES_TPS,
	SPOKEI_KEY_CONNECTIONS_MAX,
	SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX,
	SPOKEI_KEY_REQUESTS_MAX,
	SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX,
	SPOKEI_KEY_PUSHES_MAX,
	SPOKEI_KEY_QUEUED_MAX,
	/* Of the engine. */
	SPOKEI_KEY_TICK,
	SPOKEI_KEY_TIMERS_MAX,
	SPOKEI_KEY_LATE,
	SPOKEI_KEY_SPIN,
	SPOKEI_KEY_ADMIN,
	SPOKEI_KEYS,
};

/* Sections of a file, in the order in which people read of them. */
enum spokei_section {
	SPOKEI_IN_CONSUMER,
	SPOKEI_IN_SERVICE,
	SPOKEI_IN_METHOD,
	SPOKEI_IN_PROVIDER,
	SPOKEI_IN_REGISTRY,
	SPOKEI_IN_ENGINE,
	SPOKEI_SECTIONS,
};

struct spokei_key_row {
	struct spokei_option option;
	unsigned sections;  /* 1 << each it may stand in */
	bool live;          /* a reload changes it in what lives */
	bool of_urls;       /* URLs may say it, though it is not read here */
	bool is_url;        /* one, or a list of them */
	const char *preset; /* what stands where nothing is said, if no number says it; or NULL */
};

/* The row of a key. */
const struct spokei_key_row *spokei_key_row(enum spokei_key key);

/* What a key is called in files: in [registry] without the "registry." of URLs. */
const char *spokei_key_in_file(enum spokei_key key);

/* A section's name, as "consumer" or "service.NAME". */
const char *spokei_section_name(enum spokei_section section);

/* Does a name of its own belong to it, as to "service.NAME"? */
bool spokei_section_is_named(enum spokei_section section);

/* Writes the names of the sections a key may stand in, as "[consumer], [service.NAME]". */
void spokei_key_sections(enum spokei_key key, const char *before, const char *behind, char *out,
			 size_t size);

/* What keys were given, by number. */
struct spokei_key_values {
	uint64_t of[SPOKEI_KEYS]; /* presets where nothing was said */
	bool said[SPOKEI_KEYS];
};

/* Nothing is said. */
void spokei_keys_preset(struct spokei_key_values *values);

/*
 * What a URL says for all methods, over what was said before. It is refused if a key is not known,
 * or a value not right, of a method too. Returns 0 or an error, of which the engine's newest event
 * has a sentence.
 */
SPOKE_MUST_USE int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
				    struct spokei_key_values *values);

/* ... for one method, over what stands for all. The URL was read before. */
void spokei_keys_read_method(const struct spoke_url *url, const char *method,
			     struct spokei_key_values *values);

/* What a provider's URL says that consumers go by, over what was said before. What is not right
 * there is passed over. */
void spokei_keys_read_provided(const struct spoke_url *url, struct spokei_key_values *values);

/* An option that users set in code: refused if it is out of the key's range. */
SPOKE_MUST_USE int spokei_keys_overrule(struct spoke_engine *engine,
					struct spokei_key_values *values, enum spokei_key key,
					uint64_t option);

/* The name of a key, as URLs have it. */
const char *spokei_keys_name(enum spokei_key key);

/* Is it one that is a text and read elsewhere, or that says nothing to spoke? */
bool spokei_keys_is_other(const char *key);

#endif
