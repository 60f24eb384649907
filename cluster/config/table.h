/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of configuration keys: type, range, default, description, sections and whether a reload
 * applies the key to running objects. Constant; any thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_TABLE_H
#define SPOKEI_CLUSTER_CONFIG_TABLE_H

#include "core/text/option.h"

#define SPOKEI_TIMEOUT_NS UINT64_C(1000000000)
#define SPOKEI_TIMEOUT_MAX_NS UINT64_C(2147483647000000) /* 2^31 - 1 ms, as Java's int */
#define SPOKEI_RETRIES_MAX 100u
#define SPOKEI_PERIOD_MIN_NS UINT64_C(10000000)
#define SPOKEI_WEIGHT_MAX 1000000u

enum spokei_key {
	/* Calls of a consumer. The prefix "METHOD." in a URL limits a key to one method. */
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
	SPOKEI_KEY_HEDGE_AFTER,
	SPOKEI_KEY_SLOW_AFTER, /* of a provider's methods, too */
	SPOKEI_KEY_ACTIVES,
	SPOKEI_KEY_TPS,
	SPOKEI_KEY_SERIALIZATION,
	SPOKEI_KEYS_OF_METHODS,
	/* The whole consumer. */
	SPOKEI_KEY_HEARTBEAT = SPOKEI_KEYS_OF_METHODS,
	SPOKEI_KEY_IDLE_CLOSE,
	SPOKEI_KEY_PENDING_MAX,
	SPOKEI_KEY_FRAME_MAX,
	SPOKEI_KEY_VALUES_MAX,
	SPOKEI_KEY_VALUES_CYCLES,
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
	/* Registries and services. */
	SPOKEI_KEY_REGISTRY_URL = SPOKEI_KEYS_OF_URLS,
	SPOKEI_KEY_REGISTRY_CACHE,
	SPOKEI_KEY_VERSION,
	SPOKEI_KEY_GROUP,
	/* Providers. */
	SPOKEI_KEY_LISTEN,
	SPOKEI_KEY_ADVERTISE,
	SPOKEI_KEY_APPLICATION,
	SPOKEI_KEY_WEIGHT,
	SPOKEI_KEY_WARMUP,
	SPOKEI_KEY_DEFAULT_SERVICE,
	SPOKEI_KEY_ACCESS_LOG,
	SPOKEI_KEY_TOKEN, /* of consumers, too, like the next ones */
	SPOKEI_KEY_TOKEN_FILE,
	SPOKEI_KEY_TOKEN_PUBLISH,
	SPOKEI_KEY_TOKEN_PLAIN,
	SPOKEI_KEY_AUTH,
	SPOKEI_KEY_ACCESS_ID,
	SPOKEI_KEY_ACCESS_SECRET_FILE,
	SPOKEI_KEY_ACCESS_WINDOW,
	SPOKEI_KEY_UNPROVEN_FRAME_MAX,
	SPOKEI_KEY_AUTH_FAILURES_MAX,
	SPOKEI_KEY_EXECUTES,
	SPOKEI_KEY_EXECUTES_TPS,
	SPOKEI_KEY_CONNECTIONS_MAX,
	SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX,
	SPOKEI_KEY_REQUESTS_MAX,
	SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX,
	SPOKEI_KEY_PUSHES_MAX,
	SPOKEI_KEY_QUEUED_MAX,
	SPOKEI_KEY_HALF_CLOSE,
	SPOKEI_KEY_HTTP_ORIGINS,
	SPOKEI_KEY_HTTP_HOSTS,
	/* TLS. */
	SPOKEI_KEY_TLS,
	SPOKEI_KEY_TLS_CERT,
	SPOKEI_KEY_TLS_KEY,
	SPOKEI_KEY_TLS_CA,
	SPOKEI_KEY_TLS_CRL,
	SPOKEI_KEY_TLS_PEERS,
	SPOKEI_KEY_TLS_VERIFY,
	SPOKEI_KEY_TLS_MIN,
	SPOKEI_KEY_HANDSHAKE_TIMEOUT,
	SPOKEI_KEY_HANDSHAKES_MAX,
	SPOKEI_KEY_HANDSHAKES_PER_PEER_MAX,
	SPOKEI_KEY_ALLOW_FROM,
	SPOKEI_KEY_DENY_FROM,
	SPOKEI_KEY_ALLOW_USERS,
	SPOKEI_KEY_ALLOW_CALLERS,
	/* Leases. */
	SPOKEI_KEY_LEASE_STORE,
	SPOKEI_KEY_LEASE_USER,
	SPOKEI_KEY_LEASE_PASSWORD,
	SPOKEI_KEY_LEASE_SENTINEL_PASSWORD,
	SPOKEI_KEY_LEASE_TTL, /* from here on also in the URL of a store */
	SPOKEI_KEY_LEASE_WAIT,
	SPOKEI_KEY_LEASE_GUARD,
	SPOKEI_KEY_LEASE_REPLICAS,
	SPOKEI_KEY_LEASE_REPLICAS_WAIT,
	SPOKEI_KEY_LEASE_MAX,
	/* Gateways for browsers. */
	SPOKEI_KEY_COMET_LISTEN,
	SPOKEI_KEY_COMET_ORIGINS,
	SPOKEI_KEY_COMET_HOSTS,
	SPOKEI_KEY_COMET_PROXIES,
	SPOKEI_KEY_COMET_ANY_CLIENT,
	SPOKEI_KEY_COMET_QUERY_USER,
	SPOKEI_KEY_COMET_TICKET_LIFE,
	SPOKEI_KEY_COMET_PAGE,
	SPOKEI_KEY_COMET_BACKEND,
	SPOKEI_KEY_COMET_HEAD_TIME,
	SPOKEI_KEY_COMET_KEEPALIVE,
	SPOKEI_KEY_COMET_POLL,
	SPOKEI_KEY_COMET_LIFE,
	SPOKEI_KEY_COMET_KEEP,
	SPOKEI_KEY_COMET_SLOW,
	SPOKEI_KEY_COMET_RETRY_MIN,
	SPOKEI_KEY_COMET_RETRY_MAX,
	SPOKEI_KEY_COMET_DRAIN,
	SPOKEI_KEY_COMET_ACCEPT_RATE,
	SPOKEI_KEY_COMET_CONNECTIONS_MAX,
	SPOKEI_KEY_COMET_CONNECTIONS_PER_PEER_MAX,
	SPOKEI_KEY_COMET_CONNECTIONS_PER_USER_MAX,
	SPOKEI_KEY_COMET_USERS_MAX,
	SPOKEI_KEY_COMET_FRAMES_PER_SECOND,
	SPOKEI_KEY_COMET_FRAME_MAX,
	SPOKEI_KEY_COMET_MESSAGE_MAX,
	SPOKEI_KEY_COMET_RING_MESSAGES,
	SPOKEI_KEY_COMET_RING_BYTES,
	SPOKEI_KEY_COMET_RING_TIME,
	SPOKEI_KEY_COMET_ALL_MESSAGES,
	SPOKEI_KEY_COMET_ALL_BYTES,
	SPOKEI_KEY_COMET_BYTES_MAX,
	SPOKEI_KEY_COMET_SEND_BUFFER,
	/* The engine. */
	SPOKEI_KEY_TICK,
	SPOKEI_KEY_TIMERS_MAX,
	SPOKEI_KEY_LATE,
	SPOKEI_KEY_SPIN,
	SPOKEI_KEY_POOL_THREADS,
	SPOKEI_KEY_POOL_QUEUE,
	SPOKEI_KEY_LOG,
	SPOKEI_KEY_ADMIN,
	SPOKEI_KEYS,
};

/* Sections of a file, in the order in which they are listed. */
enum spokei_section {
	SPOKEI_IN_CONSUMER,
	SPOKEI_IN_SERVICE,
	SPOKEI_IN_METHOD,
	SPOKEI_IN_PROVIDER,
	SPOKEI_IN_REGISTRY,
	SPOKEI_IN_LEASE,
	SPOKEI_IN_COMET,
	SPOKEI_IN_ENGINE,
	SPOKEI_SECTIONS,
};

struct spokei_key_row {
	struct spokei_option option;
	unsigned sections;  /* bits 1 << section: where the key may stand */
	bool live;          /* a reload applies the key to running objects */
	bool of_urls;       /* allowed in URLs, but read by other code */
	bool is_url;        /* the value is a URL or a list of URLs */
	bool secret;        /* no message shows the value */
	const char *preset; /* text of a default that is not a number, else NULL */
};

/* Returns the row of a key. */
const struct spokei_key_row *spokei_key_row(enum spokei_key key);

/* Writes a value as a file would contain it, or the text of a default that is not a number
 * (`preset`). For texts: "". */
void spokei_key_print(enum spokei_key key, uint64_t number, bool preset, char *out, size_t size);

/* Returns the name of a key in files: in [registry], [lease] and [comet] without the prefix, e.g.
 * "registry.". */
const char *spokei_key_in_file(enum spokei_key key);

/* Returns the name of a section, e.g. "consumer" or "service.NAME". */
const char *spokei_section_name(enum spokei_section section);

/* Returns whether a heading of this kind contains a name, e.g. "service.NAME". */
bool spokei_section_is_named(enum spokei_section section);

/* Writes the sections that allow a key, each between `before` and `behind`, e.g.
 * "[consumer], [service.NAME]". */
void spokei_key_sections(enum spokei_key key, const char *before, const char *behind, char *out,
			 size_t size);

#endif
