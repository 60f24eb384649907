/* SPDX-License-Identifier: Apache-2.0 */
/* The table of configuration keys, in the order of their numbers. */
#include "cluster/config/table.h"

#include "cluster/catalog.h"
#include "core/base/log.h"
#include "core/text/tokens.h"
#include "transport/conn/callers.h"
#include "transport/listen/rules.h"

#include <spoke/value.h>

#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_H UINT64_C(3600000000000)
#define FRAME_MAX 67108864u
#define SHM_RING_MIN 4096u
#define SHM_RING_MAX 1048576u
#define FRAME_MIN 1024u
#define VALUES_MIN 1024u
#define TEXT_MAX 2048u
#define LEASE_TTL_MIN_NS (100 * NS_PER_MS)
#define LEASES_MAX 10000000u
#define CREDENTIAL_MAX 255u
#define UNPROVEN_FRAME_MAX 8388608u
#define COMET_TIME_MAX (480 * NS_PER_H) /* its stamps are 32 bits of ms */
#define COMET_TEXT_MAX 131072u          /* so that a text fits the engine's scratch */

/* Sections in which keys are allowed. */
#define CONSUMER (1u << SPOKEI_IN_CONSUMER)
#define CALLS (CONSUMER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define PROVIDER (1u << SPOKEI_IN_PROVIDER)
#define BOTH (CONSUMER | PROVIDER)
#define SERVED (PROVIDER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define SERVICE (1u << SPOKEI_IN_SERVICE)
#define PROVEN (CONSUMER | PROVIDER | SERVICE)
#define REGISTRY (1u << SPOKEI_IN_REGISTRY)
#define LEASE (1u << SPOKEI_IN_LEASE)
#define COMET (1u << SPOKEI_IN_COMET)
#define ENGINE (1u << SPOKEI_IN_ENGINE)

static const char *backoff_name(unsigned index)
{
	static const char *const names[] = { "fixed", "exponential", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *serialization_name(unsigned index)
{
	static const char *const names[] = { "auto", "hessian2", "msgpack", NULL };

	return index < 4 ? names[index] : NULL;
}

static const char *auth_name(unsigned index)
{
	static const char *const names[] = { "none", "accesskey", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *log_level_name(unsigned index)
{
	if (index == SPOKE_LOG_DEBUG + 1)
		return "off";
	return index <= SPOKE_LOG_DEBUG ? spokei_log_level_name((enum spoke_log_level)index) : NULL;
}

static const char *local_path_name(unsigned index)
{
	static const char *const names[] = { "auto", "off", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *overflow_name(unsigned index)
{
	static const char *const names[] = { "reject", "drop-oldest", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *tls_name(unsigned index)
{
	static const char *const names[] = { "off", "on", "optional", NULL };

	return index < 4 ? names[index] : NULL;
}

static const char *tls_verify_name(unsigned index)
{
	static const char *const names[] = { "auto", "none", "optional", "required", NULL };

	return index < 5 ? names[index] : NULL;
}

static const char *tls_min_name(unsigned index)
{
	static const char *const names[] = { "1.3", "1.2", NULL };

	return index < 3 ? names[index] : NULL;
}

/* clang-format off */
static const struct spokei_key_row rows[SPOKEI_KEYS] = {
	[SPOKEI_KEY_TIMEOUT] = { .option = { .name = "timeout", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = SPOKEI_TIMEOUT_NS,
		.sentence = "timeout of an attempt, including queueing and connecting" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_CLUSTER] = { .option = { .name = "cluster", .kind = SPOKEI_OPTION_NAME,
		.names = spokei_catalog_policy_name,
		.sentence = "policy for calls whose attempt fails" },
		.sections = CALLS, .live = true, .preset = "failover" },
	[SPOKEI_KEY_LOADBALANCE] = { .option = { .name = "loadbalance", .kind = SPOKEI_OPTION_NAME,
		.names = spokei_catalog_balancer_name,
		.sentence = "load balancer" },
		.sections = CALLS, .live = true, .preset = "random" },
	[SPOKEI_KEY_RETRIES] = { .option = { .name = "retries", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = SPOKEI_RETRIES_MAX,
		.sentence = "attempts in addition to the first" },
		.sections = CALLS, .live = true, .preset = "failover 2, failback 3, else 0" },
	[SPOKEI_KEY_RETRY_PERIOD] = { .option = { .name = "retry.period", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 5 * NS_PER_S,
		.sentence = "pause before a retry of a failback call" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_RETRY_BACKOFF] = { .option = { .name = "retry.backoff", .kind = SPOKEI_OPTION_NAME,
		.names = backoff_name,
		.sentence = "constant pauses, or pauses that grow by 1.6 up to 60s" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_RETRY_DEADLINE] = { .option = { .name = "retry.deadline", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS,
		.sentence = "time limit of a failback call, from its start" },
		.sections = CALLS, .live = true, .preset = "(retries + 1) x (retry.period + timeout)" },
	[SPOKEI_KEY_FORKS] = { .option = { .name = "forks", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 1024, .preset = 2,
		.sentence = "providers that a forking call uses in parallel" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_FAIL_PERCENT] = { .option = { .name = "broadcast.fail.percent", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 100, .preset = 100,
		.sentence = "percentage of failures that ends a broadcast" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_WAIT_READY] = { .option = { .name = "wait.ready", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "wait until a provider is ready" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_STICKY] = { .option = { .name = "sticky", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "send calls to the same provider while possible" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_IDEMPOTENT] = { .option = { .name = "idempotent", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "requests may run more than once" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_HEDGE_AFTER] = { .option = { .name = "hedge.after", .kind = SPOKEI_OPTION_DELAY,
		.min = NS_PER_MS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 0, .or_none = true,
		.sentence = "time or percentile after which an idempotent call gets a backup attempt; 0: none" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_SLOW_AFTER] = { .option = { .name = "slow.after", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = NS_PER_S, .or_none = true,
		.sentence = "time from which on a call or a request is listed as slow; 0: none is" },
		.sections = CALLS | PROVIDER, .live = true },
	[SPOKEI_KEY_ACTIVES] = { .option = { .name = "actives", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "concurrent calls of a method; 0: no limit" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_TPS] = { .option = { .name = "tps", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "calls of a method per second; 0: no limit" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_SERIALIZATION] = { .option = { .name = "serialization", .kind = SPOKEI_OPTION_NAME,
		.names = serialization_name,
		.sentence = "serialization of requests; auto: as the provider's URL asks for, else hessian2" },
		.sections = CALLS, .live = true },
	[SPOKEI_KEY_HEARTBEAT] = { .option = { .name = "heartbeat", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 60 * NS_PER_S, .or_none = true,
		.sentence = "silence after which a peer is probed; 0: off" },
		.sections = BOTH, .live = true },
	[SPOKEI_KEY_IDLE_CLOSE] = { .option = { .name = "idle.close", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 0, .or_none = true,
		.sentence = "idle timeout of connections without heartbeats; 0: off" },
		.sections = BOTH, .live = true },
	[SPOKEI_KEY_PENDING_MAX] = { .option = { .name = "pending.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 65536,
		.sentence = "calls waiting for an answer" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_FRAME_MAX] = { .option = { .name = "frame.max", .kind = SPOKEI_OPTION_SIZE,
		.min = FRAME_MIN, .max = FRAME_MAX, .preset = 8388608,
		.sentence = "bytes of a frame; both sides must allow a larger one" },
		.sections = BOTH },
	[SPOKEI_KEY_VALUES_MAX] = { .option = { .name = "values.max", .kind = SPOKEI_OPTION_COUNT,
		.min = VALUES_MIN, .max = SPOKE_VALUE_ITEMS_MAX, .preset = SPOKE_VALUE_ITEMS_MAX,
		.sentence = "values in the body of a frame that is read, keys of maps included" },
		.sections = BOTH },
	[SPOKEI_KEY_VALUES_CYCLES] = { .option = { .name = "values.cycles", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "accept objects of Java that refer to a container around them, which read as nil there" },
		.sections = BOTH },
	[SPOKEI_KEY_FAILBACK_TASKS] = { .option = { .name = "failback.tasks", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 1000000, .preset = 100,
		.sentence = "waiting failback calls" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_FAILBACK_BYTES] = { .option = { .name = "failback.bytes", .kind = SPOKEI_OPTION_SIZE,
		.min = 1024, .max = UINT32_MAX, .preset = 1048576,
		.sentence = "memory of waiting failback calls" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_FAILBACK_OVERFLOW] = { .option = { .name = "failback.overflow", .kind = SPOKEI_OPTION_NAME,
		.names = overflow_name,
		.sentence = "failback call to drop when there are too many" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_ENDPOINT_ACTIVES] = { .option = { .name = "endpoint.actives", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "concurrent calls to one provider; 0: no limit" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_CONNECTIONS] = { .option = { .name = "connections", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 16, .preset = 1,
		.sentence = "connections to each provider" },
		.sections = CONSUMER },
	[SPOKEI_KEY_LAZY] = { .option = { .name = "lazy", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "connect on the first call" },
		.sections = CONSUMER },
	[SPOKEI_KEY_LOCAL_PATH] = { .option = { .name = "local.path", .kind = SPOKEI_OPTION_NAME,
		.names = local_path_name,
		.sentence = "publish the path of a unix socket with the ports; consumers on the same host connect there" },
		.sections = BOTH },
	[SPOKEI_KEY_SHM_RING] = { .option = { .name = "shm.ring", .kind = SPOKEI_OPTION_SIZE,
		.min = SHM_RING_MIN, .max = SHM_RING_MAX, .preset = 262144,
		.sentence = "bytes of each of the two rings of a shm: connection, rounded up to a power of two" },
		.sections = CONSUMER },
	[SPOKEI_KEY_EJECT_FAILURES] = { .option = { .name = "eject.failures", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = 1000000, .preset = 5,
		.sentence = "consecutive failures that eject a provider; 0: never" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_EJECT_TIME] = { .option = { .name = "eject.time", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = NS_PER_H, .preset = 10 * NS_PER_S,
		.sentence = "duration of the first ejection" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_REGISTRY_RETRY_PERIOD] = { .option = { .name = "registry.retry.period", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = 24 * NS_PER_H, .preset = 5 * NS_PER_S,
		.sentence = "pause before a retry at the registry" },
		.sections = REGISTRY },
	[SPOKEI_KEY_REGISTRY_RETRY_TIMES] = { .option = { .name = "registry.retry.times", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = 1000000, .preset = 0,
		.sentence = "consecutive retries; 0: no limit" },
		.sections = REGISTRY },
	[SPOKEI_KEY_REGISTRY_PROTECT] = { .option = { .name = "registry.protect", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 1,
		.sentence = "keep the providers if the registry's list is empty" },
		.sections = REGISTRY },
	[SPOKEI_KEY_REGISTRY_URL] = { .option = { .name = "registry.url", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "URL of the registry" },
		.sections = REGISTRY, .is_url = true },
	[SPOKEI_KEY_REGISTRY_CACHE] = { .option = { .name = "registry.cache", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file for the last list of providers" },
		.sections = REGISTRY, .of_urls = true },
	[SPOKEI_KEY_VERSION] = { .option = { .name = "version", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "version of the service to call; *: any" },
		.sections = SERVICE, .of_urls = true },
	[SPOKEI_KEY_GROUP] = { .option = { .name = "group", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "group of the service to call; *: any" },
		.sections = SERVICE, .of_urls = true },
	[SPOKEI_KEY_LISTEN] = { .option = { .name = "listen", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 64,
		.sentence = "addresses to listen at: dubbo://0.0.0.0:20880, fd://NAME "
			    "(systemd); ?shared=turns" },
		.sections = PROVIDER, .is_url = true },
	[SPOKEI_KEY_ADVERTISE] = { .option = { .name = "advertise", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = SPOKE_URL_HOST_MAX,
		.sentence = "host to publish in the registry" },
		.sections = PROVIDER },
	[SPOKEI_KEY_APPLICATION] = { .option = { .name = "application", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "name of the application, which registries show" },
		.sections = BOTH, .of_urls = true, .preset = "spoke" },
	[SPOKEI_KEY_WEIGHT] = { .option = { .name = "weight", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = SPOKEI_WEIGHT_MAX, .preset = 100,
		.sentence = "weight for load balancing" },
		.sections = PROVIDER, .live = true, .of_urls = true },
	[SPOKEI_KEY_WARMUP] = { .option = { .name = "warmup", .kind = SPOKEI_OPTION_DURATION,
		.min = 0, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 600 * NS_PER_S, .or_none = true,
		.sentence = "time until a new provider has its full weight; 0: none" },
		.sections = PROVIDER, .live = true, .of_urls = true },
	[SPOKEI_KEY_DEFAULT_SERVICE] = { .option = { .name = "default.service", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "service of MessagePack-RPC methods without a dot" },
		.sections = PROVIDER, .preset = "the first" },
	[SPOKEI_KEY_ACCESS_LOG] = { .option = { .name = "access.log", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file of the access log; true: the engine's log" },
		.sections = PROVIDER },
	[SPOKEI_KEY_TOKEN] = { .option = { .name = "token", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = SPOKEI_TOKENS_MAX,
		.sentence = "tokens of which requests must bear one; true: a random one; consumers: the one to send" },
		.sections = PROVEN, .live = true, .of_urls = true, .secret = true },
	[SPOKEI_KEY_TOKEN_FILE] = { .option = { .name = "token.file", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file with these tokens, one a line; its group and others must not "
			    "read it" },
		.sections = PROVEN, .live = true },
	[SPOKEI_KEY_TOKEN_PUBLISH] = { .option = { .name = "token.publish", .kind = SPOKEI_OPTION_BOOL,
		.max = 1, .preset = 1,
		.sentence = "publish the first token in the registry, where consumers find it" },
		.sections = PROVIDER },
	[SPOKEI_KEY_TOKEN_PLAIN] = { .option = { .name = "token.plain", .kind = SPOKEI_OPTION_BOOL,
		.max = 1,
		.sentence = "send a token of one's own over plain TCP to other machines, too" },
		.sections = CONSUMER, .live = true },
	[SPOKEI_KEY_AUTH] = { .option = { .name = "auth", .kind = SPOKEI_OPTION_NAME,
		.names = auth_name,
		.sentence = "accesskey: requests bear the signature of Dubbo" },
		.sections = PROVEN, .live = true },
	[SPOKEI_KEY_ACCESS_ID] = { .option = { .name = "access.id", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = CREDENTIAL_MAX,
		.sentence = "name of the key that signs requests" },
		.sections = PROVEN, .live = true },
	[SPOKEI_KEY_ACCESS_SECRET_FILE] = { .option = { .name = "access.secret.file", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file with the key that signs requests, in one line; its group and "
			    "others must not read it" },
		.sections = PROVEN, .live = true },
	[SPOKEI_KEY_ACCESS_WINDOW] = { .option = { .name = "access.window", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_S, .max = 24 * NS_PER_H, .preset = 300 * NS_PER_S,
		.sentence = "difference of the clocks, and age, at which a signature is good" },
		.sections = PROVIDER | SERVICE, .live = true },
	[SPOKEI_KEY_UNPROVEN_FRAME_MAX] = { .option = { .name = "unproven.frame.max", .kind = SPOKEI_OPTION_SIZE,
		.min = FRAME_MIN, .max = UNPROVEN_FRAME_MAX, .preset = 65536,
		.sentence = "bytes of a frame of a peer without proof, if a token or a signature is asked for" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_AUTH_FAILURES_MAX] = { .option = { .name = "auth.failures.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 1000, .preset = 3,
		.sentence = "requests without good credentials after which a connection is closed" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_FENCE_PROVEN] = { .option = { .name = "fence.proven", .kind = SPOKEI_OPTION_BOOL,
		.max = 1,
		.sentence = "fences take numbers only of callers with a certificate, a user, a token or a signature" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_EXECUTES] = { .option = { .name = "executes", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "concurrent requests of a method; 0: no limit" },
		.sections = SERVED, .live = true },
	[SPOKEI_KEY_EXECUTES_TPS] = { .option = { .name = "executes.tps", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = UINT32_MAX / 2, .preset = 0,
		.sentence = "requests of a method per second; 0: no limit" },
		.sections = SERVED, .live = true },
	[SPOKEI_KEY_CONNECTIONS_MAX] = { .option = { .name = "connections.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 10000,
		.sentence = "connections to a provider" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX] = { .option = { .name = "connections.per.peer.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 1000,
		.sentence = "connections from one address" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_CONNECTIONS_PER_PEER_PREFIX6] = { .option = { .name = "connections.per.peer.prefix6", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 128, .preset = 64,
		.sentence = "bits of an IPv6 address that count as one address, for connections and handshakes" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_REQUESTS_MAX] = { .option = { .name = "requests.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 10000,
		.sentence = "concurrent requests" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX] = { .option = { .name = "requests.per.connection.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 1024,
		.sentence = "concurrent requests of one connection" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_PUSHES_MAX] = { .option = { .name = "pushes.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX / 2, .preset = 65536,
		.sentence = "pushes waiting for an answer" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_QUEUED_MAX] = { .option = { .name = "queued.max", .kind = SPOKEI_OPTION_SIZE,
		.min = 1024, .max = UINT32_MAX, .preset = 268435456,
		.sentence = "bytes of answers waiting to be written" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_HALF_CLOSE] = { .option = { .name = "half.close", .kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_PERIOD_MIN_NS, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 60 * NS_PER_S, .or_none = true,
		.sentence = "how long a caller that sends no more is served; 0: its FIN ends its requests" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_HTTP_ORIGINS] = { .option = { .name = "http.origins", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 255,
		.sentence = "origins whose pages may call over HTTP" },
		.sections = PROVIDER },
	[SPOKEI_KEY_HTTP_HOSTS] = { .option = { .name = "http.hosts", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 64,
		.sentence = "names of this host that HTTP clients may use" },
		.sections = PROVIDER },
	[SPOKEI_KEY_TLS] = { .option = { .name = "tls", .kind = SPOKEI_OPTION_NAME,
		.names = tls_name,
		.sentence = "whether connections are TLS; optional: a provider accepts plain ones, too" },
		.sections = BOTH, .of_urls = true, .preset = "off" },
	[SPOKEI_KEY_TLS_CERT] = { .option = { .name = "tls.cert", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file of the own certificate and its chain, PEM" },
		.sections = BOTH },
	[SPOKEI_KEY_TLS_KEY] = { .option = { .name = "tls.key", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file of its key, PEM; refused if others may read it" },
		.sections = BOTH },
	[SPOKEI_KEY_TLS_CA] = { .option = { .name = "tls.ca", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file of the authorities of peers' certificates" },
		.sections = BOTH, .preset = "the system's, for consumers" },
	[SPOKEI_KEY_TLS_CRL] = { .option = { .name = "tls.crl", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file of revoked certificates" },
		.sections = BOTH },
	[SPOKEI_KEY_TLS_PEERS] = { .option = { .name = "tls.peers", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 16,
		.sentence = "names of which a provider's certificate must bear one: dns:HOST, uri:URI, ip:ADDRESS" },
		.sections = CONSUMER | SERVICE, .preset = "the URL's host" },
	[SPOKEI_KEY_TLS_VERIFY] = { .option = { .name = "tls.verify", .kind = SPOKEI_OPTION_NAME,
		.names = tls_verify_name,
		.sentence = "whether consumers must show a certificate; auto: if there is tls.ca" },
		.sections = PROVIDER, .preset = "auto" },
	[SPOKEI_KEY_TLS_MIN] = { .option = { .name = "tls.min", .kind = SPOKEI_OPTION_NAME,
		.names = tls_min_name,
		.sentence = "oldest version of TLS" },
		.sections = BOTH, .preset = "1.3" },
	[SPOKEI_KEY_HANDSHAKE_TIMEOUT] = { .option = { .name = "handshake.timeout", .kind = SPOKEI_OPTION_DURATION,
		.min = 100 * NS_PER_MS, .max = 60 * NS_PER_S, .preset = 5 * NS_PER_S,
		.sentence = "time from accepting a connection to the end of its handshake" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_HANDSHAKES_MAX] = { .option = { .name = "handshakes.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 65536, .preset = 256,
		.sentence = "handshakes under way at a time; further ones wait" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_HANDSHAKES_PER_PEER_MAX] = { .option = { .name = "handshakes.per.peer.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 65536, .preset = 32,
		.sentence = "handshakes of one address at a time; further ones are closed" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_HANDSHAKES_TPS] = { .option = { .name = "handshakes.tps", .kind = SPOKEI_OPTION_COUNT,
		.min = 0, .max = 1000000, .preset = 0,
		.sentence = "handshakes that begin in a second; further ones wait; 0: no limit" },
		.sections = PROVIDER, .live = true },
	[SPOKEI_KEY_ALLOW_FROM] = { .option = { .name = "allow.from", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = SPOKEI_RULES_MAX,
		.sentence = "addresses that may connect: 10.0.0.7, ranges like 10.0.0.0/8, unix" },
		.sections = PROVIDER, .live = true, .preset = "all" },
	[SPOKEI_KEY_DENY_FROM] = { .option = { .name = "deny.from", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = SPOKEI_RULES_MAX,
		.sentence = "addresses that may not connect, even if allow.from has them" },
		.sections = PROVIDER, .live = true, .preset = "none" },
	[SPOKEI_KEY_ALLOW_USERS] = { .option = { .name = "allow.users", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = SPOKEI_RULES_MAX,
		.sentence = "users that may connect to unix sockets: their numbers, gid:N for groups" },
		.sections = PROVIDER, .live = true, .preset = "all" },
	[SPOKEI_KEY_ALLOW_CALLERS] = { .option = { .name = "allow.callers", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = SPOKEI_CALLERS_MAX,
		.sentence = "callers that are let in: dns:*.pay.test, uri:spiffe://x/y, uid:1000, addr:10.0.0.0/8, token" },
		.sections = PROVIDER | SERVICE, .live = true, .preset = "all" },
	[SPOKEI_KEY_LEASE_STORE] = { .option = { .name = "lease.store", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "URL of the store of leases, e.g. redis://127.0.0.1:6379/0" },
		.sections = LEASE, .is_url = true },
	[SPOKEI_KEY_LEASE_USER] = { .option = { .name = "lease.user", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = CREDENTIAL_MAX,
		.sentence = "user at the store; needs a password" },
		.sections = LEASE },
	[SPOKEI_KEY_LEASE_PASSWORD] = { .option = { .name = "lease.password", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = CREDENTIAL_MAX,
		.sentence = "password at the store" },
		.sections = LEASE, .secret = true },
	[SPOKEI_KEY_LEASE_SENTINEL_PASSWORD] = { .option = { .name = "lease.sentinel.password", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = CREDENTIAL_MAX,
		.sentence = "password at the sentinels themselves" },
		.sections = LEASE, .secret = true },
	[SPOKEI_KEY_LEASE_TTL] = { .option = { .name = "lease.ttl", .kind = SPOKEI_OPTION_DURATION,
		.min = LEASE_TTL_MIN_NS, .max = 24 * NS_PER_H, .preset = 30 * NS_PER_S,
		.sentence = "time to live of a lease in the store, renewed after a third of it" },
		.sections = LEASE },
	[SPOKEI_KEY_LEASE_WAIT] = { .option = { .name = "lease.wait", .kind = SPOKEI_OPTION_DURATION,
		.min = 0, .max = SPOKEI_TIMEOUT_MAX_NS, .preset = 0, .or_none = true,
		.sentence = "how long to wait for a lease that is held elsewhere; 0: try once" },
		.sections = LEASE },
	[SPOKEI_KEY_LEASE_GUARD] = { .option = { .name = "lease.guard", .kind = SPOKEI_OPTION_DURATION,
		.min = 0, .max = 12 * NS_PER_H, .or_none = true,
		.sentence = "part of the time to live that holders leave unused; less than half of it" },
		.sections = LEASE, .preset = "ttl / 10" },
	[SPOKEI_KEY_LEASE_MAX] = { .option = { .name = "lease.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = LEASES_MAX, .preset = 100000,
		.sentence = "leases asked for and held at one time" },
		.sections = LEASE },
	[SPOKEI_KEY_COMET_LISTEN] = { .option = { .name = "comet.listen", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 8,
		.sentence = "addresses of the gateway, e.g. 127.0.0.1:8080" },
		.sections = COMET },
	[SPOKEI_KEY_COMET_ORIGINS] = { .option = { .name = "comet.origins", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 64,
		.sentence = "other origins whose pages may connect, e.g. https://shop.example" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_HOSTS] = { .option = { .name = "comet.hosts", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 64,
		.sentence = "names of this host that pages may use" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_PROXIES] = { .option = { .name = "comet.proxies", .kind = SPOKEI_OPTION_LIST,
		.min = 1, .max = 64,
		.sentence = "addresses of proxies whose X-Forwarded-For is believed, e.g. 127.0.0.1" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_ANY_CLIENT] = { .option = { .name = "comet.any.client", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "allow WebSockets and posts without an origin, which no browser sends" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_QUERY_USER] = { .option = { .name = "comet.query.user", .kind = SPOKEI_OPTION_BOOL,
		.min = 0, .max = 1, .preset = 0,
		.sentence = "believe user=ID in the query instead of asking for tickets; for trying only" },
		.sections = COMET },
	[SPOKEI_KEY_COMET_TICKET_LIFE] = { .option = { .name = "comet.ticket.life", .kind = SPOKEI_OPTION_DURATION,
		.min = 100 * NS_PER_MS, .max = NS_PER_H, .preset = 30 * NS_PER_S,
		.sentence = "how long a ticket can be used, once" },
		.sections = COMET },
	[SPOKEI_KEY_COMET_PAGE] = { .option = { .name = "comet.page", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "file with the document at /, in HTML" },
		.sections = COMET },
	[SPOKEI_KEY_COMET_BACKEND] = { .option = { .name = "comet.backend", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "URL of a service whose method received(user, text) gets the texts of pages" },
		.sections = COMET, .is_url = true },
	[SPOKEI_KEY_COMET_HEAD_TIME] = { .option = { .name = "comet.head.time", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = COMET_TIME_MAX, .preset = 5 * NS_PER_S,
		.sentence = "how long a request may take to arrive" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_KEEPALIVE] = { .option = { .name = "comet.keepalive", .kind = SPOKEI_OPTION_DURATION,
		.min = 10 * NS_PER_MS, .max = COMET_TIME_MAX, .preset = 25 * NS_PER_S,
		.sentence = "silence after which a byte is written" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_POLL] = { .option = { .name = "comet.poll", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = COMET_TIME_MAX, .preset = 25 * NS_PER_S,
		.sentence = "how long a long poll is held" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_LIFE] = { .option = { .name = "comet.life", .kind = SPOKEI_OPTION_DURATION,
		.min = 10 * NS_PER_MS, .max = COMET_TIME_MAX, .preset = 1800 * NS_PER_S,
		.sentence = "life of a connection, +/- 10 % at random; then it is told to reconnect" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_KEEP] = { .option = { .name = "comet.keep", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = COMET_TIME_MAX, .preset = 60 * NS_PER_S,
		.sentence = "how long a user without connections is kept" },
		.sections = COMET },
	[SPOKEI_KEY_COMET_SLOW] = { .option = { .name = "comet.slow", .kind = SPOKEI_OPTION_DURATION,
		.min = 10 * NS_PER_MS, .max = COMET_TIME_MAX, .preset = 30 * NS_PER_S,
		.sentence = "how long a client may read nothing" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_RETRY_MIN] = { .option = { .name = "comet.retry.min", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = NS_PER_H, .preset = NS_PER_S,
		.sentence = "shortest pause before a page reconnects; the pause is random" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_RETRY_MAX] = { .option = { .name = "comet.retry.max", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = NS_PER_H, .preset = 15 * NS_PER_S,
		.sentence = "longest pause before a page reconnects" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_DRAIN] = { .option = { .name = "comet.drain", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = COMET_TIME_MAX, .preset = 10 * NS_PER_S,
		.sentence = "time over which a drain spreads the reconnects" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_ACCEPT_RATE] = { .option = { .name = "comet.accept.rate", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX, .preset = 2000,
		.sentence = "connections opened per second; more are told to come again" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_CONNECTIONS_MAX] = { .option = { .name = "comet.connections.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 16777216, .preset = 20000,
		.sentence = "connections of pages" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_CONNECTIONS_PER_PEER_MAX] = { .option = { .name = "comet.connections.per.peer.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX, .preset = 1000,
		.sentence = "connections of pages from one address" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_CONNECTIONS_PER_PEER_PREFIX6] = { .option = { .name = "comet.connections.per.peer.prefix6", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 128, .preset = 64,
		.sentence = "bits of an IPv6 address that count as one address" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_CONNECTIONS_PER_USER_MAX] = { .option = { .name = "comet.connections.per.user.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 250, .preset = 6,
		.sentence = "connections of one user; the oldest is closed" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_USERS_MAX] = { .option = { .name = "comet.users.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX, .preset = 100000,
		.sentence = "known users" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_FRAMES_PER_SECOND] = { .option = { .name = "comet.frames.per.second", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 250, .preset = 10,
		.sentence = "frames of a page per second" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_FRAME_MAX] = { .option = { .name = "comet.text.max", .kind = SPOKEI_OPTION_SIZE,
		.min = 1, .max = COMET_TEXT_MAX, .preset = 16384,
		.sentence = "bytes of a text from a page" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_MESSAGE_MAX] = { .option = { .name = "comet.message.max", .kind = SPOKEI_OPTION_SIZE,
		.min = 1, .max = 16777216, .preset = 16384,
		.sentence = "bytes of a message's data" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_RING_MESSAGES] = { .option = { .name = "comet.ring.messages", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 65535, .preset = 32,
		.sentence = "messages kept for a user that comes back" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_RING_BYTES] = { .option = { .name = "comet.ring.bytes", .kind = SPOKEI_OPTION_SIZE,
		.min = 1, .max = UINT32_MAX, .preset = 16384,
		.sentence = "bytes of these messages" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_RING_TIME] = { .option = { .name = "comet.ring.time", .kind = SPOKEI_OPTION_DURATION,
		.min = NS_PER_MS, .max = COMET_TIME_MAX, .preset = 60 * NS_PER_S,
		.sentence = "how long they are kept" },
		.sections = COMET },
	[SPOKEI_KEY_COMET_ALL_MESSAGES] = { .option = { .name = "comet.all.messages", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = 65535, .preset = 256,
		.sentence = "messages to all that are kept" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_ALL_BYTES] = { .option = { .name = "comet.all.bytes", .kind = SPOKEI_OPTION_SIZE,
		.min = 1, .max = UINT32_MAX, .preset = 262144,
		.sentence = "bytes of the messages to all" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_BYTES_MAX] = { .option = { .name = "comet.bytes.max", .kind = SPOKEI_OPTION_SIZE,
		.min = 4096, .max = UINT64_C(1) << 50, .preset = 67108864,
		.sentence = "bytes of all messages, and of partial output and input" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_COMET_SEND_BUFFER] = { .option = { .name = "comet.send.buffer", .kind = SPOKEI_OPTION_SIZE,
		.min = 1024, .max = 1073741824, .preset = 16384,
		.sentence = "bytes that the system may queue per connection" },
		.sections = COMET, .live = true },
	[SPOKEI_KEY_TICK] = { .option = { .name = "tick", .kind = SPOKEI_OPTION_DURATION,
		.min = 1, .max = NS_PER_H, .preset = NS_PER_MS,
		.sentence = "tick of the timing wheel" },
		.sections = ENGINE },
	[SPOKEI_KEY_TIMERS_MAX] = { .option = { .name = "timers.max", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = UINT32_MAX, .preset = 16777216,
		.sentence = "armed timers" },
		.sections = ENGINE },
	[SPOKEI_KEY_LATE] = { .option = { .name = "late", .kind = SPOKEI_OPTION_DURATION,
		.min = 1, .max = NS_PER_H, .preset = 50 * NS_PER_MS,
		.sentence = "a turn this late first reads each socket once, for this long at most" },
		.sections = ENGINE },
	[SPOKEI_KEY_SPIN] = { .option = { .name = "spin", .kind = SPOKEI_OPTION_SPIN,
		.min = 1, .max = SPOKE_ENGINE_SPIN_MAX_NS, .preset = 0,
		.sentence = "how long to busy-poll before sleeping; auto: at most 50us, while that pays" },
		.sections = ENGINE },
	[SPOKEI_KEY_POOL_THREADS] = { .option = { .name = "pool.threads", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = SPOKE_POOL_THREADS_MAX, .preset = SPOKE_POOL_THREADS,
		.sentence = "threads that run blocking handlers" },
		.sections = ENGINE },
	[SPOKEI_KEY_POOL_QUEUE] = { .option = { .name = "pool.queue", .kind = SPOKEI_OPTION_COUNT,
		.min = 1, .max = SPOKE_POOL_QUEUE_MAX, .preset = SPOKE_POOL_QUEUE,
		.sentence = "requests that wait for such a thread; more are refused" },
		.sections = ENGINE },
	[SPOKEI_KEY_LOG] = { .option = { .name = "log", .kind = SPOKEI_OPTION_NAME,
		.names = log_level_name, .preset = SPOKE_LOG_INFO,
		.sentence = "least severe lines to log" },
		.sections = ENGINE, .live = true },
	[SPOKEI_KEY_ADMIN] = { .option = { .name = "admin", .kind = SPOKEI_OPTION_TEXT,
		.min = 1, .max = TEXT_MAX,
		.sentence = "address of the admin page; https:// before it: over TLS, as [provider]" },
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

	if (rows[key].sections == REGISTRY)
		return name + strlen("registry.");
	if (rows[key].sections == COMET)
		return name + strlen("comet.");
	return rows[key].sections == LEASE ? name + strlen("lease.") : name;
}

const char *spokei_section_name(enum spokei_section section)
{
	static const char *const names[SPOKEI_SECTIONS] = {
		[SPOKEI_IN_CONSUMER] = "consumer",  [SPOKEI_IN_SERVICE] = "service.NAME",
		[SPOKEI_IN_METHOD] = "method.NAME", [SPOKEI_IN_PROVIDER] = "provider",
		[SPOKEI_IN_REGISTRY] = "registry",  [SPOKEI_IN_LEASE] = "lease",
		[SPOKEI_IN_COMET] = "comet",        [SPOKEI_IN_ENGINE] = "engine",
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
