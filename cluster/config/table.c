/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys, in the order of their numbers. */
#include "cluster/config/table.h"

#include "cluster/catalog.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_H UINT64_C(3600000000000)
#define FRAME_MAX 8388608u
#define FRAME_MIN 1024u
#define TEXT_MAX 2048u
#define REGISTRY_PREFIX "registry."

/* Where keys may stand. */
#define CONSUMER (1u << SPOKEI_IN_CONSUMER)
#define CALLS (CONSUMER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define PROVIDER (1u << SPOKEI_IN_PROVIDER)
#define BOTH (CONSUMER | PROVIDER)
#define SERVED (PROVIDER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define SERVICE (1u << SPOKEI_IN_SERVICE)
#define REGISTRY (1u << SPOKEI_IN_REGISTRY)
#define ENGINE (1u << SPOKEI_IN_ENGINE)

static const char *backoff_name(unsigned index)
{
	static const char *const names[] = { "fixed", "exponential", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *overflow_name(unsigned index)
{
	static const char *const names[] = { "reject", "drop-oldest", NULL };

	return index < 3 ? names[index] : NULL;
}

/* clang-format off */
static const struct spokei_key_row rows[SPOKEI_KEYS] = {
	[SPOKEI_KEY_TIMEOUT] = { .option = { .name = "timeout", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = SPOKEI_TIMEOUT_NS,
		.sentence = "how long an attempt may take, all in all" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_CLUSTER] = { .option = { .name = "cluster", .kind = SPOKEI_OPTION_NAME,
		.names = spokei_catalog_policy_name,
		.sentence = "what becomes of a call when an attempt fails" },
		.sections = CALLS, .live = true, .preset = "failover" },
	[SPOKEI_KEY_LOADBALANCE] = { .option = { .name = "loadbalance", .kind = SPOKEI_OPTION_NAME,
		.names = spokei_catalog_balancer_name,
		.sentence = "which of several providers takes a call" },
		.sections = CALLS, .live = true, .preset = "random" },
	[SPOKEI_KEY_RETRIES] = { .option = { .name = "retries", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = SPOKEI_RETRIES_MAX,
		.sentence = "attempts beside the first" },
		.sections = CALLS, .live = true, .preset = "failover 2, failback 3, else 0" },
	[SPOKEI_KEY_RETRY_PERIOD] = { .option = { .name = "retry.period", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 5 * NS_PER_S,
		.sentence = "pause before a failback call is tried again" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_RETRY_BACKOFF] = { .option = { .name = "retry.backoff", .kind = SPOKEI_OPTION_NAME,
		.names = backoff_name,
		.sentence = "whether these pauses grow, each to 1.6 times the last, up to 60s" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_RETRY_DEADLINE] = { .option = { .name = "retry.deadline", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS,
		.sentence = "how long a failback call is tried, since it was made" },
		.sections = CALLS, .live = true, .preset = "(retries + 1) x (retry.period + timeout)" },
	[SPOKEI_KEY_FORKS] = { .option = { .name = "forks", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 1024, .preset = 2,
		.sentence = "providers that a forking call asks at a time" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_FAIL_PERCENT] = { .option = { .name = "broadcast.fail.percent", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 100, .preset = 100,
		.sentence = "share of failures at which a broadcast ends" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_WAIT_READY] = { .option = { .name = "wait.ready", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "whether calls wait for a provider" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_STICKY] = { .option = { .name = "sticky", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "whether calls stay with one provider" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_IDEMPOTENT] = { .option = { .name = "idempotent", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "whether a request may be run more than once" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_ACTIVES] = { .option = { .name = "actives", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "calls of a method under way at a time; 0: no limit" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_TPS] = { .option = { .name = "tps", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "calls of a method a second; 0: no limit" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_HEARTBEAT] = { .option = { .name = "heartbeat", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 60 * NS_PER_S, .or_none = true,
		.sentence = "silence after which a peer is asked whether it lives" },
		.sections = BOTH, .live = true },
	[SPOKEI_KEY_IDLE_CLOSE] = { .option = { .name = "idle.close", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 0, .or_none = true,
		.sentence = "silence that ends a connection of a wire without heartbeats" },
		.sections = BOTH, .live = true },
	[SPOKEI_KEY_PENDING_MAX] = { .option = { .name = "pending.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 65536,
		.sentence = "calls that may wait for an answer" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_FRAME_MAX] = { .option = { .name = "frame.max", .kind = SPOKEI_OPTION_SIZE,
		.min = FRAME_MIN, .max = FRAME_MAX, .preset = FRAME_MAX,
		.sentence = "bytes that a frame may have" },
		.sections = BOTH },
	[SPOKEI_KEY_FAILBACK_TASKS] = { .option = { .name = "failback.tasks", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 1000000, .preset = 100,
		.sentence = "failback calls that may wait" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_FAILBACK_BYTES] = { .option = { .name = "failback.bytes", .kind = SPOKEI_OPTION_SIZE,
		.min = 1024, .max = UINT32_MAX, .preset = 1048576,
		.sentence = "bytes that they may keep" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_FAILBACK_OVERFLOW] = { .option = { .name = "failback.overflow", .kind = SPOKEI_OPTION_NAME,
		.names = overflow_name,
		.sentence = "which failback call gives way when there are too many" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_ENDPOINT_ACTIVES] = { .option = { .name = "endpoint.actives", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "calls under way at one provider; 0: no limit" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_CONNECTIONS] = { .option = { .name = "connections", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 16, .preset = 1,
		.sentence = "connections to each provider" },
		.sections = CONSUMER },
	[SPOKEI_KEY_LAZY] = { .option = { .name = "lazy", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "whether the first call connects" },
		.sections = CONSUMER },
	[SPOKEI_KEY_EJECT_FAILURES] = { .option = { .name = "eject.failures", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = 1000000, .preset = 5,
		.sentence = "failures in a row after which a provider is put aside; 0: it is not" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_EJECT_TIME] = { .option = { .name = "eject.time", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = NS_PER_H, .preset = 10 * NS_PER_S,
		.sentence = "for how long, at first" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_REGISTRY_RETRY_PERIOD] = { .option = { .name = "registry.retry.period", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = 24 * NS_PER_H, .preset = 5 * NS_PER_S,
		.sentence = "pause before a registry is asked again" },
		.sections = REGISTRY },
	[SPOKEI_KEY_REGISTRY_RETRY_TIMES] = { .option = { .name = "registry.retry.times", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = 1000000, .preset = 0,
		.sentence = "how often in a row; 0: no limit" },
		.sections = REGISTRY },
	[SPOKEI_KEY_REGISTRY_PROTECT] = { .option = { .name = "registry.protect", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 1,
		.sentence = "whether an empty list leaves the providers as they are" },
		.sections = REGISTRY },
	[SPOKEI_KEY_REGISTRY_URL] = { .option = { .name = "registry.url", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "where providers are listed and found" },
		.sections = REGISTRY, .is_url = true },
	[SPOKEI_KEY_REGISTRY_CACHE] = { .option = { .name = "registry.cache", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file in which a consumer keeps the providers last heard of" },
		.sections = REGISTRY, .of_urls = true },
	[SPOKEI_KEY_VERSION] = { .option = { .name = "version", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "version of the service that is called; *: any" },
		.sections = SERVICE, .of_urls = true },
	[SPOKEI_KEY_GROUP] = { .option = { .name = "group", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "group of the service that is called; *: any" },
		.sections = SERVICE, .of_urls = true },
	[SPOKEI_KEY_LISTEN] = { .option = { .name = "listen", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 64,
		.sentence = "where a provider listens, as dubbo://0.0.0.0:20880; with ?shared=true "
			    "or turns others may join" },
		.sections = PROVIDER, .is_url = true },
	[SPOKEI_KEY_ADVERTISE] = { .option = { .name = "advertise", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = SPOKE_URL_HOST_MAX,
		.sentence = "the host under which others reach it" },
		.sections = PROVIDER },
	[SPOKEI_KEY_APPLICATION] = { .option = { .name = "application", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "its name, for people" },
		.sections = PROVIDER, .of_urls = true, .preset = "spoke" },
	[SPOKEI_KEY_WEIGHT] = { .option = { .name = "weight", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = SPOKEI_WEIGHT_MAX, .preset = 100,
		.sentence = "its share of the calls" },
		.sections = PROVIDER, .live = true, .of_urls = true },
	[SPOKEI_KEY_WARMUP] = { .option = { .name = "warmup", .kind = SPOKEI_OPTION_DURATION,
		.min = 0, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 600 * NS_PER_S, .or_none = true,
		.sentence = "for how long its weight grows; 0: it does not" },
		.sections = PROVIDER, .live = true, .of_urls = true },
	[SPOKEI_KEY_DEFAULT_SERVICE] = { .option = { .name = "default.service", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "the service of MessagePack-RPC methods without a dot" },
		.sections = PROVIDER, .preset = "the first" },
	[SPOKEI_KEY_ACCESS_LOG] = { .option = { .name = "access.log", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file with a line for every request; true: the log" },
		.sections = PROVIDER },
	[SPOKEI_KEY_EXECUTES] = { .option = { .name = "executes", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "requests of a method served at a time; 0: no limit" },
		.sections = SERVED, .live = true },
	[SPOKEI_KEY_EXECUTES_TPS] = { .option = { .name = "executes.tps", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "requests of a method served a second; 0: no limit" },
		.sections = SERVED, .live = true },
	[SPOKEI_KEY_CONNECTIONS_MAX] = { .option = { .name = "connections.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 10000,
		.sentence = "connections to a provider" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX] = { .option = { .name = "connections.per.peer.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 1000,
		.sentence = "connections from one address" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_REQUESTS_MAX] = { .option = { .name = "requests.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 10000,
		.sentence = "requests being served at a time" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX] = { .option = { .name = "requests.per.connection.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 1024,
		.sentence = "requests of one connection being served at a time" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_PUSHES_MAX] = { .option = { .name = "pushes.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 65536,
		.sentence = "pushes that may wait for an answer" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_QUEUED_MAX] = { .option = { .name = "queued.max", .kind = SPOKEI_OPTION_SIZE,
		.min = 1024, .max = UINT32_MAX, .preset = 268435456,
		.sentence = "bytes of answers that may wait to be written" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_TICK] = { .option = { .name = "tick", .kind = SPOKEI_OPTION_DURATION,
		.min = 1, .max = NS_PER_H, .preset = NS_PER_MS,
		.sentence = "how finely the wheel divides time" },
		.sections = ENGINE },
	[SPOKEI_KEY_TIMERS_MAX] = { .option = { .name = "timers.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX, .preset = 16777216,
		.sentence = "timers that may be armed at a time" },
		.sections = ENGINE },
	[SPOKEI_KEY_LATE] = { .option = { .name = "late", .kind = SPOKEI_OPTION_DURATION,
		.min = 1, .max = NS_PER_H, .preset = 50 * NS_PER_MS,
		.sentence = "a turn that begins so late judges nobody" },
		.sections = ENGINE },
	[SPOKEI_KEY_SPIN] = { .option = { .name = "spin", .kind = SPOKEI_OPTION_DURATION,
		.min = 1, .max = SPOKE_ENGINE_SPIN_MAX_NS, .preset = 0, .or_none = true,
		.sentence = "how long it looks after each turn, a core busy, before it sleeps" },
		.sections = ENGINE },
	[SPOKEI_KEY_ADMIN] = { .option = { .name = "admin", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "address of the page that shows the engine" },
		.sections = ENGINE },
};
/* clang-format on */

const struct spokei_key_row *spokei_key_row(enum spokei_key key)
{
	return &rows[key];
}

const char *spokei_key_in_file(enum spokei_key key)
{
	const char *name = rows[key].option.name;

	return rows[key].sections == REGISTRY ? name + strlen(REGISTRY_PREFIX) : name;
}

const char *spokei_section_name(enum spokei_section section)
{
	static const char *const names[SPOKEI_SECTIONS] = {
		[SPOKEI_IN_CONSUMER] = "consumer",  [SPOKEI_IN_SERVICE] = "service.NAME",
		[SPOKEI_IN_METHOD] = "method.NAME", [SPOKEI_IN_PROVIDER] = "provider",
		[SPOKEI_IN_REGISTRY] = "registry",  [SPOKEI_IN_ENGINE] = "engine",
	};

	return names[section];
}

bool spokei_section_is_named(enum spokei_section section)
{
	return strchr(spokei_section_name(section), '.') != NULL;
}

void spokei_key_sections(enum spokei_key key, const char *before, const char *behind, char *out,
			 size_t size)
{
	unsigned left = rows[key].sections;
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; left && used < size; i++) {
		int len;

		if (!(left & 1u << i))
			continue;
		left &= ~(1u << i);
		len = snprintf(out + used, size - used, "%s%s%s%s", used ? ", " : "", before,
			       spokei_section_name((enum spokei_section)i), behind);
		used += len > 0 ? (size_t)len : 0;
	}
}
