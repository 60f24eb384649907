/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of settings, a row each:
 *
 *     SETTING(number, name, kind, sections, sentence, details...)
 *
 * Included by keys.h, which numbers the rows, and by table.c, which keeps them and has the
 * details. The order is that of manuals and pages. FIELDS() are those of options in which a program
 * sets the key, and of the settings in force of its owner. Constant; any thread.
 */
#include "core/text/option.h"

#ifndef SETTING
#define SETTING(...)
#endif
/* clang-format off */

/* Calls of a consumer. The prefix "METHOD." in a URL limits a key to one method. */
SETTING(TIMEOUT, "timeout", DURATION, CALLS,
	"timeout of a call, including all its attempts, and its waits for a provider",
	LIVE, RANGE(NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS), PRESET(SPOKEI_TIMEOUT_NS),
	FIELDS(AT(CONSUMER, timeout_ns), AT(METHOD, timeout_ns), AT(CALL, timeout_ns)))
SETTING(ATTEMPT_TIMEOUT, "attempt.timeout", DURATION, CALLS,
	"timeout of an attempt, including queueing and connecting",
	LIVE, RANGE(NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS),
	PRESET_TEXT("time left / attempts left"),
	FIELDS(AT(CONSUMER, attempt_timeout_ns), AT(METHOD, attempt_timeout_ns),
	       AT(CALL, attempt_ns)))
SETTING(CLUSTER, "cluster", NAME, CALLS,
	"policy for calls whose attempt fails; failback: of programs that take tickets",
	LIVE, NAMES(policy_name), PRESET_TEXT("failover"), OBJECTS(policy_at),
	FIELDS(OBJECT(CONSUMER, policy), OBJECT(METHOD, policy), OBJECT(CALL, policy)))
SETTING(LOADBALANCE, "loadbalance", NAME, CALLS, "load balancer",
	LIVE, NAMES(balancer_name), PRESET_TEXT("random"), OBJECTS(balancer_at),
	FIELDS(OBJECT(CONSUMER, balancer), OBJECT(METHOD, balancer), OBJECT(CALL, balancer)))
SETTING(RETRIES, "retries", COUNT, CALLS, "attempts in addition to the first",
	LIVE, RANGE(0, SPOKEI_RETRIES_MAX), PRESET(SPOKEI_RETRIES_OF_POLICY),
	PRESET_TEXT("failover 2, failback 3, else 0"), NONE_IN_CODE,
	FIELDS(AT(CONSUMER, retries), AT(METHOD, retries), AT(CALL, retries)))
SETTING(RETRY_PERIOD, "retry.period", DURATION, CALLS, "pause before a retry of a failback call",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS), PRESET(5 * NS_PER_S),
	FIELDS(AT(CONSUMER, retry_period_ns), AT(CALL, period_ns)))
SETTING(RETRY_BACKOFF, "retry.backoff", NAME, CALLS,
	"constant pauses, or pauses that grow by 1.6 up to 60s",
	LIVE, NAMES(backoff_name),
	FIELDS(AT(CALL, growing)))
SETTING(RETRY_DEADLINE, "retry.deadline", DURATION, CALLS,
	"time limit of a failback call, from its start",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS),
	PRESET_TEXT("(retries + 1) x (retry.period + timeout)"),
	FIELDS(AT(CONSUMER, retry_deadline_ns), AT(CALL, deadline_ns)))
SETTING(FORKS, "forks", COUNT, CALLS, "providers that a forking call uses in parallel",
	LIVE, RANGE(1, 1024), PRESET(2),
	FIELDS(AT(CONSUMER, forks), AT(CALL, forks)))
SETTING(FAIL_PERCENT, "broadcast.fail.percent", COUNT, CALLS,
	"percentage of failures that ends a broadcast",
	LIVE, RANGE(1, 100), PRESET(100),
	FIELDS(AT(CALL, fail_percent)))
SETTING(WAIT_READY, "wait.ready", BOOL, CALLS, "wait until a provider is ready",
	LIVE, RANGE(0, 1),
	FIELDS(AT(CONSUMER, wait_ready), AT(CALL, wait_ready)))
SETTING(STICKY, "sticky", BOOL, CALLS, "send calls to the same provider while possible",
	LIVE, RANGE(0, 1),
	FIELDS(AT(CONSUMER, sticky), AT(CALL, sticky)))
SETTING(IDEMPOTENT, "idempotent", BOOL, CALLS, "requests may run more than once",
	LIVE, RANGE(0, 1),
	FIELDS(AT(METHOD, idempotent), AT(CALL, idempotent)))
SETTING(ONCE, "once", BOOL, CALLS,
	"a failback call whose request may have run is not repeated, and ends as unknown",
	LIVE, RANGE(0, 1),
	FIELDS(AT(METHOD, once), AT(CALL, once)))
SETTING(INHERIT, "inherit", BOOL, CALLS,
	"a call in a handler has the time left, the trace and the end of the request",
	LIVE, RANGE(0, 1), PRESET(1),
	FIELDS(AT(CALL, inherits)))
SETTING(DEDUPE_ID, "dedupe.id", NAME, CALLS,
	"calls that may be repeated bear an id: at providers that remember requests, on, off",
	LIVE, NAMES(ids_name),
	FIELDS(AT(CALL, ids)))
SETTING(HEDGE_AFTER, "hedge.after", DELAY, CALLS,
	"time or percentile after which an idempotent call gets a backup attempt; 0: none",
	LIVE, RANGE(NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS), OR_NONE,
	FIELDS(AT(CONSUMER, hedge_after_ns), AT(METHOD, hedge_after_ns), AT(CALL, hedge_ns)))
SETTING(SLOW_AFTER, "slow.after", DURATION, CALLS | PROVIDER,
	"time from which on a call or a request is listed as slow; 0: none is",
	LIVE, RANGE(NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS), PRESET(NS_PER_S), OR_NONE,
	FIELDS(AT(METHOD, slow_after_ns), AT(CALL, slow_ns)))
SETTING(ACTIVES, "actives", COUNT, CALLS, "concurrent calls of a method; 0: no limit",
	LIVE, RANGE(0, UINT32_MAX / 2),
	FIELDS(AT(METHOD, actives), AT(CALL, actives)))
SETTING(TPS, "tps", COUNT, CALLS, "calls of a method per second; 0: no limit",
	LIVE, RANGE(0, UINT32_MAX / 2),
	FIELDS(AT(METHOD, per_second), AT(CALL, per_second)))
SETTING(SERIALIZATION, "serialization", NAME, CALLS,
	"serialization of requests; auto: as the provider's URL asks for, else hessian2",
	LIVE, NAMES(serialization_name), WORDS("spoke_serialization"),
	FIELDS(AT(CONSUMER, serialization), AT(METHOD, serialization)))

/* The whole consumer, and what providers have in common with it. */
SETTING(HEARTBEAT, "heartbeat", DURATION, BOTH, "silence after which a peer is probed; 0: off",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS), PRESET(60 * NS_PER_S), OR_NONE,
	FIELDS(AT(CONSUMER, heartbeat_ns), AT(PROVIDER, heartbeat_ns), AT(LINK, heartbeat_ns)))
SETTING(IDLE_CLOSE, "idle.close", DURATION, BOTH,
	"idle timeout of connections without heartbeats; 0: off",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS), OR_NONE,
	FIELDS(AT(CONSUMER, idle_close_ns), AT(PROVIDER, idle_close_ns), AT(LINK, idle_close_ns)))
SETTING(PENDING_MAX, "pending.max", COUNT, CONSUMER, "calls waiting for an answer",
	LIVE, RANGE(1, UINT32_MAX / 2), PRESET(65536),
	FIELDS(AT(CONSUMER, pending_max), AT(LINK, pending_max)))
SETTING(FRAME_MAX, "frame.max", SIZE, BOTH, "bytes of a frame; both sides must allow a larger one",
	RANGE(FRAME_MIN, FRAME_MAX), PRESET(8388608),
	FIELDS(AT(CONSUMER, frame_max), AT(PROVIDER, frame_max), AT(LINK, wire.frame_max)))
SETTING(VALUES_MAX, "values.max", COUNT, BOTH,
	"values in the body of a frame that is read, keys of maps included",
	RANGE(VALUES_MIN, SPOKE_VALUE_ITEMS_MAX), PRESET(SPOKE_VALUE_ITEMS_MAX),
	FIELDS(AT(CONSUMER, values_max), AT(PROVIDER, values_max),
	       AT(LINK, wire.value.items_max)))
SETTING(VALUES_CYCLES, "values.cycles", BOOL, BOTH,
	"accept objects of Java that refer to a container around them, which read as nil there",
	RANGE(0, 1),
	FIELDS(AT(CONSUMER, values_cycles), AT(PROVIDER, values_cycles),
	       AT(LINK, wire.value.cycles)))
SETTING(FAILBACK_TASKS, "failback.tasks", COUNT, CONSUMER, "waiting failback calls",
	LIVE, RANGE(1, 1000000), PRESET(100),
	FIELDS(AT(CONSUMER, failback_tasks_max)))
SETTING(FAILBACK_BYTES, "failback.bytes", SIZE, CONSUMER, "memory of waiting failback calls",
	LIVE, RANGE(1024, UINT32_MAX), PRESET(1048576),
	FIELDS(AT(CONSUMER, failback_bytes_max)))
SETTING(FAILBACK_OVERFLOW, "failback.overflow", NAME, CONSUMER,
	"failback call to drop when there are too many",
	LIVE, NAMES(overflow_name), WORDS("spoke_consumer_overflow"),
	FIELDS(AT(CONSUMER, failback_overflow)))
SETTING(DURABILITY, "durability", NAME, BOTH | SERVICE,
	"events that what a journal has survives: the end of the process, loss of power, or none",
	NAMES(durability_name), WORDS("spoke_durability"),
	FIELDS(AT(CONSUMER, durability), AT(PROVIDER, durability), AT(JOURNAL, durability)))
SETTING(JOURNAL_WAIT, "journal.wait", DURATION, BOTH | SERVICE,
	"longest wait for the journal; a failed call is refused then, and an answer is sent",
	RANGE(NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS), PRESET(100 * NS_PER_MS),
	FIELDS(AT(JOURNAL, wait_ns)))
SETTING(JOURNAL_SYNC, "journal.sync", DURATION, BOTH | SERVICE,
	"longest time until records that were written are on the disk (durability = process)",
	RANGE(NS_PER_MS, NS_PER_H), PRESET(NS_PER_S),
	FIELDS(AT(JOURNAL, sync_ns)))
SETTING(JOURNAL_BYTES, "journal.bytes", SIZE, CONSUMER | SERVICE,
	"bytes of the journal on the disk; beyond them no new tickets are taken",
	RANGE(SPOKEI_JOURNAL_SIZE_MIN, UINT64_C(1) << 34), PRESET(67108864),
	FIELDS(AT(JOURNAL, size_max)))
SETTING(JOURNAL_BROKEN, "journal.broken", NAME, BOTH | SERVICE,
	"while the journal cannot be written: refuse tickets and ids, or keep them in memory",
	NAMES(broken_name),
	FIELDS(AT(JOURNAL, is_optional)))
SETTING(JOURNAL_DAMAGED, "journal.damaged", NAME, BOTH | SERVICE,
	"a damaged journal is not used, or used without the records that are lost",
	NAMES(damaged_name),
	FIELDS(AT(JOURNAL, salvages)))
SETTING(ENDPOINT_ACTIVES, "endpoint.actives", COUNT, CONSUMER,
	"concurrent calls to one provider; 0: no limit",
	LIVE, RANGE(0, UINT32_MAX / 2),
	FIELDS(AT(CONSUMER, endpoint_actives_max), AT(DIRECTORY, actives_max)))
SETTING(ENDPOINTS_MAX, "endpoints.max", COUNT, CONSUMER,
	"providers of a registry's list that are used, the first ones",
	LIVE, RANGE(1, SPOKEI_PLACES_MAX), PRESET(65536),
	FIELDS(AT(DIRECTORY, endpoints_max)))
SETTING(CONNECTIONS, "connections", COUNT, CONSUMER, "connections to each provider",
	RANGE(1, 16), PRESET(1),
	FIELDS(AT(CONSUMER, connections), AT(DIRECTORY, connections)))
SETTING(TAG_FORCE, "tag.force", BOOL, CONSUMER,
	"calls with a tag fail where no provider has it, instead of going to those without a tag",
	LIVE, RANGE(0, 1))
SETTING(LAZY, "lazy", BOOL, CONSUMER, "connect on the first call",
	RANGE(0, 1),
	FIELDS(AT(CONSUMER, lazy), AT(DIRECTORY, lazy)))
SETTING(LOCAL_PATH, "local.path", NAME, BOTH,
	"publish the path of a unix socket with the ports; consumers on the same host connect there",
	NAMES(local_path_name),
	FIELDS(NOT(DIRECTORY, local_path)))
SETTING(SHM_RING, "shm.ring", SIZE, CONSUMER,
	"bytes of each of the two rings of a shm: connection, rounded up to a power of two",
	RANGE(SHM_RING_MIN, SHM_RING_MAX), PRESET(262144))
SETTING(EJECT_FAILURES, "eject.failures", COUNT, CONSUMER,
	"consecutive failures that eject a provider; 0: never",
	LIVE, RANGE(0, 1000000), PRESET(5),
	FIELDS(AT(DIRECTORY, eject.failures)))
SETTING(EJECT_TIME, "eject.time", DURATION, CONSUMER, "duration of the first ejection",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, NS_PER_H), PRESET(10 * NS_PER_S),
	FIELDS(AT(DIRECTORY, eject.first_ns)))
SETTING(EJECT_ERRORS, "eject.errors", COUNT, CONSUMER,
	"percentage of failures in eject.interval that ejects a provider; 0: none does",
	LIVE, RANGE(0, 100), PRESET(50),
	FIELDS(AT(DIRECTORY, eject.errors)))
SETTING(EJECT_LATENCY, "eject.latency", COUNT, CONSUMER,
	"a provider is ejected that takes this many times as long as the others; 0: none is",
	LIVE, RANGE(0, 1000),
	FIELDS(AT(DIRECTORY, eject.latency)))
SETTING(EJECT_CALLS, "eject.calls", COUNT, CONSUMER,
	"attempts in eject.interval before errors and latency eject a provider",
	LIVE, RANGE(1, 1000000), PRESET(20),
	FIELDS(AT(DIRECTORY, eject.calls)))
SETTING(EJECT_INTERVAL, "eject.interval", DURATION, CONSUMER,
	"interval in which errors and attempts are counted",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, NS_PER_H), PRESET(10 * NS_PER_S),
	FIELDS(AT(DIRECTORY, eject.interval_ns)))
SETTING(EJECT_SHARE, "eject.share", COUNT, CONSUMER,
	"percentage of the providers, at least one, that errors and latency eject at once",
	LIVE, RANGE(1, 100), PRESET(30),
	FIELDS(AT(DIRECTORY, eject_share)))
SETTING(REGISTRY_RETRY_PERIOD, "registry.retry.period", DURATION, REGISTRY,
	"pause before a retry at the registry",
	RANGE(SPOKEI_PERIOD_MIN_NS, 24 * NS_PER_H), PRESET(5 * NS_PER_S),
	FIELDS(AT(PROVIDER, registry_retry_ns)))
SETTING(REGISTRY_RETRY_TIMES, "registry.retry.times", COUNT, REGISTRY,
	"consecutive retries; 0: no limit",
	RANGE(0, 1000000),
	FIELDS(AT(PROVIDER, registry_retries)))
SETTING(REGISTRY_PROTECT, "registry.protect", BOOL, REGISTRY,
	"keep the providers if the registry's list is empty",
	RANGE(0, 1), PRESET(1),
	FIELDS(AT(DIRECTORY, protects)))

/* Registries and services. */
SETTING(REGISTRY_URL, "registry.url", TEXT, REGISTRY, "URL of the registry",
	RANGE(1, TEXT_MAX), URLS(check_registry),
	FIELDS(AT(CONSUMER, registry), AT(PROVIDER, registry)))
SETTING(REGISTRY_CACHE, "registry.cache", TEXT, REGISTRY, "file for the last list of providers",
	RANGE(1, TEXT_MAX), OF_URLS,
	FIELDS(AT(CONSUMER, registry_cache)))
SETTING(REGISTER_MODE, "register-mode", NAME, PROVIDER,
	"publish services, the instance of the application, as in Dubbo 3, or both",
	NAMES(register_mode_name))
SETTING(SUBSCRIBE_MODE, "subscribe-mode", NAME, CONSUMER,
	"which providers are called: all, instances of applications first, or those of one kind",
	NAMES(subscribe_mode_name))
SETTING(VERSION, "version", TEXT, SERVICE, "version of the service to call; *: any",
	RANGE(1, TEXT_MAX), OF_URLS)
SETTING(GROUP, "group", TEXT, SERVICE, "group of the service to call; *: any",
	RANGE(1, TEXT_MAX), OF_URLS)

/* A path, which no URL may contain. */
SETTING(JOURNAL, "journal", TEXT, BOTH | SERVICE,
	"folder of the journal in which tickets, or a provider's answers, survive; one for each",
	RANGE(1, TEXT_MAX),
	FIELDS(AT(CONSUMER, journal), AT(PROVIDER, journal), AT(JOURNAL, folder)))

/* Providers. */
SETTING(LISTEN, "listen", LIST, PROVIDER,
	"addresses to listen at: dubbo://0.0.0.0:20880, fd://NAME (systemd); ?shared=turns",
	RANGE(1, 64), URLS(check_listen))
SETTING(ADVERTISE, "advertise", TEXT, PROVIDER, "host to publish in the registry",
	RANGE(1, SPOKE_URL_HOST_MAX), CHECK(check_host),
	FIELDS(AT(PROVIDER, advertise)))
SETTING(APPLICATION, "application", TEXT, BOTH, "name of the application, which registries show",
	RANGE(1, TEXT_MAX), PRESET_TEXT("spoke"), OF_URLS,
	FIELDS(AT(CONSUMER, application), AT(PROVIDER, application)))
SETTING(TAG, "tag", TEXT, BOTH,
	"tag of calls, which go to providers with it, else to those without any; that of a provider",
	LIVE, RANGE(1, 63), OF_URLS,
	FIELDS(AT(CONSUMER, tag), AT(PROVIDER, tag)))
SETTING(WEIGHT, "weight", COUNT, PROVIDER, "weight for load balancing",
	LIVE, RANGE(0, SPOKEI_WEIGHT_MAX), PRESET(100), OF_URLS, NONE_IN_CODE,
	FIELDS(AT(PROVIDER, weight)))
SETTING(WARMUP, "warmup", DURATION, PROVIDER,
	"time until a new provider has its full weight; 0: none",
	LIVE, RANGE(0, SPOKEI_TIMEOUT_MAX_NS), PRESET(600 * NS_PER_S), OR_NONE, OF_URLS,
	FIELDS(AT(PROVIDER, warmup_ns)))
SETTING(ONLINE, "online", BOOL, PROVIDER,
	"take calls from the start; off: the provider begins offline, until it is told",
	RANGE(0, 1), PRESET(1),
	FIELDS(NOT(PROVIDER, offline)))
SETTING(REGISTER_DELAY, "register.delay", DURATION, PROVIDER,
	"time after the start until the provider is online; 0: none",
	RANGE(SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS), OR_NONE,
	FIELDS(AT(PROVIDER, register_delay_ns)))
SETTING(DEFAULT_SERVICE, "default.service", TEXT, PROVIDER,
	"service of MessagePack-RPC methods without a dot",
	RANGE(1, TEXT_MAX), PRESET_TEXT("the first"),
	FIELDS(AT(PROVIDER, default_service)))
SETTING(ACCESS_LOG, "access.log", TEXT, PROVIDER, "file of the access log; true: the engine's log",
	RANGE(1, TEXT_MAX),
	FIELDS(AT(PROVIDER, access_log)))

/* Credentials. */
SETTING(TOKEN, "token", LIST, PROVEN,
	"tokens of which requests must bear one; true: a random one; consumers: the one to send",
	LIVE, RANGE(1, SPOKEI_TOKENS_MAX), OF_URLS, SECRET, CHECK(check_token),
	FIELDS(AT(CONSUMER, token), AT(PROVIDER, token)))
SETTING(TOKEN_FILE, "token.file", TEXT, PROVEN,
	"file with these tokens, one a line; its group and others must not read it",
	LIVE, RANGE(1, TEXT_MAX),
	FIELDS(AT(CONSUMER, token_file), AT(PROVIDER, token_file)))
SETTING(TOKEN_PUBLISH, "token.publish", BOOL, PROVIDER,
	"publish the first token in the registry, where consumers find it",
	RANGE(0, 1), PRESET(1),
	FIELDS(NOT(PROVIDER, token_private)))
SETTING(TOKEN_PLAIN, "token.plain", BOOL, CONSUMER,
	"send a token of one's own over plain TCP to other machines, too",
	LIVE, RANGE(0, 1),
	FIELDS(AT(CONSUMER, token_plain)))
SETTING(AUTH, "auth", NAME, PROVEN, "accesskey: requests bear the signature of Dubbo",
	LIVE, NAMES(auth_name))
SETTING(ACCESS_ID, "access.id", TEXT, PROVEN, "name of the key that signs requests",
	LIVE, RANGE(1, CREDENTIAL_MAX),
	FIELDS(AT(CONSUMER, access_id), AT(PROVIDER, access_id)))
SETTING(ACCESS_SECRET_FILE, "access.secret.file", TEXT, PROVEN,
	"file with the key that signs requests, in one line; its group and others must not read it",
	LIVE, RANGE(1, TEXT_MAX),
	FIELDS(AT(CONSUMER, access_secret_file), AT(PROVIDER, access_secret_file)))
SETTING(ACCESS_WINDOW, "access.window", DURATION, PROVIDER | SERVICE,
	"difference of the clocks, and age, at which a signature is good",
	LIVE, RANGE(NS_PER_S, 24 * NS_PER_H), PRESET(300 * NS_PER_S))
SETTING(UNPROVEN_FRAME_MAX, "unproven.frame.max", SIZE, PROVIDER,
	"bytes of a frame of a peer without proof, if a token or a signature is asked for",
	LIVE, RANGE(FRAME_MIN, UNPROVEN_FRAME_MAX), PRESET(65536))
SETTING(AUTH_FAILURES_MAX, "auth.failures.max", COUNT, PROVIDER,
	"requests without good credentials after which a connection is closed",
	LIVE, RANGE(1, 1000), PRESET(3))
SETTING(FENCE_PROVEN, "fence.proven", BOOL, PROVIDER,
	"fences take numbers only of callers with a certificate, a user, a token or a signature",
	LIVE, RANGE(0, 1))

/* Providers: requests. */
SETTING(EXECUTES, "executes", CAP, SERVED,
	"concurrent requests of a method; auto: those that can be answered in time; 0: no limit",
	LIVE, RANGE(0, UINT32_MAX / 2))
SETTING(EXECUTES_TPS, "executes.tps", COUNT, SERVED, "requests of a method per second; 0: no limit",
	LIVE, RANGE(0, UINT32_MAX / 2))
SETTING(TIMEOUT_DEFAULT, "timeout.default", DURATION, PROVIDER,
	"time of requests whose callers name none, for their inner calls; 0: no limit",
	LIVE, RANGE(NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS), OR_NONE,
	FIELDS(AT(PROVIDER, timeout_default_ns), AT(LINK, timeout_default_ns)))
SETTING(DEDUPE, "dedupe", DURATION, SERVED,
	"time for which repeats of a request get its answer; 0: repeats are not recognised",
	LIVE, RANGE(NS_PER_S, 24 * NS_PER_H), OR_NONE,
	FIELDS(AT(PROVIDER, dedupe_ns)))
SETTING(DEDUPE_UNKNOWN, "dedupe.unknown", NAME, SERVED,
	"repeat of a request that may have been forgotten: refuse it, or run it",
	LIVE, NAMES(unknown_name))
SETTING(DEDUPE_MAX, "dedupe.max", COUNT, PROVIDER, "requests remembered for their repeats",
	LIVE, RANGE(1, 10000000), PRESET(100000))
SETTING(DEDUPE_BYTES, "dedupe.bytes", SIZE, PROVIDER, "memory of these requests, with their answers",
	LIVE, RANGE(4096, UINT32_MAX), PRESET(67108864))
SETTING(CONNECTIONS_MAX, "connections.max", COUNT, PROVIDER, "connections to a provider",
	LIVE, RANGE(1, UINT32_MAX / 2), PRESET(10000),
	FIELDS(AT(PROVIDER, connections_max), AT(QUOTA, max)))
SETTING(CONNECTIONS_PER_PEER_MAX, "connections.per.peer.max", COUNT, PROVIDER,
	"connections from one address",
	LIVE, RANGE(1, UINT32_MAX / 2), PRESET(1000),
	FIELDS(AT(PROVIDER, connections_per_peer_max), AT(QUOTA, per_peer_max)))
SETTING(CONNECTIONS_PER_PEER_PREFIX6, "connections.per.peer.prefix6", COUNT, PROVIDER,
	"bits of an IPv6 address that count as one address, for connections and handshakes",
	LIVE, RANGE(1, 128), PRESET(64),
	FIELDS(AT(PROVIDER, connections_per_peer_prefix6), AT(QUOTA, prefix6),
	       AT(HANDSHAKES, prefix6)))
SETTING(REQUESTS_MAX, "requests.max", COUNT, PROVIDER, "concurrent requests",
	LIVE, RANGE(1, UINT32_MAX / 2), PRESET(10000),
	FIELDS(AT(PROVIDER, requests_max), AT(LINK, serving_max)))
SETTING(REQUESTS_PER_CONNECTION_MAX, "requests.per.connection.max", COUNT, PROVIDER,
	"concurrent requests of one connection",
	LIVE, RANGE(1, UINT32_MAX / 2), PRESET(1024),
	FIELDS(AT(PROVIDER, requests_per_connection_max), AT(LINK, serving_per_conn_max)))
SETTING(PUSHES_MAX, "pushes.max", COUNT, PROVIDER, "pushes waiting for an answer",
	LIVE, RANGE(1, UINT32_MAX / 2), PRESET(65536),
	FIELDS(AT(PROVIDER, pushes_max), AT(LINK, pending_max)))
SETTING(QUEUED_MAX, "queued.max", SIZE, PROVIDER, "bytes of answers waiting to be written",
	LIVE, RANGE(1024, UINT32_MAX), PRESET(268435456),
	FIELDS(AT(PROVIDER, queued_max), AT(LINK, queued_max)))
SETTING(HALF_CLOSE, "half.close", DURATION, PROVIDER,
	"how long a caller that sends no more is served; 0: its FIN ends its requests",
	LIVE, RANGE(SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS), PRESET(60 * NS_PER_S), OR_NONE,
	FIELDS(AT(PROVIDER, half_close_ns), AT(LINK, half_ns)))
SETTING(HTTP_ORIGINS, "http.origins", LIST, PROVIDER, "origins whose pages may call over HTTP",
	RANGE(1, 255), CHECK(check_origins),
	FIELDS(AT(PROVIDER, http_origins)))
SETTING(HTTP_HOSTS, "http.hosts", LIST, PROVIDER, "names of this host that HTTP clients may use",
	RANGE(1, 64), CHECK(check_hosts),
	FIELDS(AT(PROVIDER, http_hosts)))

/* TLS. */
SETTING(TLS, "tls", NAME, BOTH,
	"whether connections are TLS; optional: a provider accepts plain ones, too",
	NAMES(tls_name), PRESET_TEXT("off"), OF_URLS, CHECK(check_tls))
SETTING(TLS_CERT, "tls.cert", TEXT, BOTH, "file of the own certificate and its chain, PEM",
	RANGE(1, TEXT_MAX),
	FIELDS(AT(TLS, cert), AT(FILES, cert)))
SETTING(TLS_KEY, "tls.key", TEXT, BOTH, "file of its key, PEM; refused if others may read it",
	RANGE(1, TEXT_MAX),
	FIELDS(AT(TLS, key), AT(FILES, key)))
SETTING(TLS_CA, "tls.ca", TEXT, BOTH, "file of the authorities of peers' certificates",
	RANGE(1, TEXT_MAX), PRESET_TEXT("the system's, for consumers"),
	FIELDS(AT(TLS, ca), AT(FILES, ca)))
SETTING(TLS_CRL, "tls.crl", TEXT, BOTH, "file of revoked certificates",
	RANGE(1, TEXT_MAX),
	FIELDS(AT(TLS, crl), AT(FILES, crl)))
SETTING(TLS_PEERS, "tls.peers", LIST, CONSUMER | SERVICE,
	"names of which a provider's certificate must bear one: dns:HOST, uri:URI, ip:ADDRESS",
	RANGE(1, 16), CHECK(check_tls_peers), PRESET_TEXT("the URL's host"),
	FIELDS(AT(TLS, peers), AT(FILES, peers)))
SETTING(TLS_VERIFY, "tls.verify", NAME, PROVIDER,
	"whether consumers must show a certificate; auto: if there is tls.ca",
	RANGE(0, SPOKE_TLS_VERIFY_REQUIRED), NAMES(tls_verify_name), PRESET_TEXT("auto"),
	FIELDS(AT(TLS, verify), AT(FILES, verify)))
SETTING(TLS_MIN, "tls.min", NAME, BOTH, "oldest version of TLS",
	NAMES(tls_min_name), PRESET_TEXT("1.3"))
SETTING(HANDSHAKE_TIMEOUT, "handshake.timeout", DURATION, PROVIDER,
	"time from accepting a connection to the end of its handshake",
	LIVE, RANGE(100 * NS_PER_MS, 60 * NS_PER_S), PRESET(5 * NS_PER_S),
	FIELDS(AT(TLS, handshake_timeout_ns), AT(LINK, handshake_ns)))
SETTING(HANDSHAKES_MAX, "handshakes.max", COUNT, PROVIDER,
	"handshakes under way at a time; further ones wait",
	LIVE, RANGE(1, 65536), PRESET(256),
	FIELDS(AT(TLS, handshakes_max), AT(HANDSHAKES, handshakes_max)))
SETTING(HANDSHAKES_PER_PEER_MAX, "handshakes.per.peer.max", COUNT, PROVIDER,
	"handshakes of one address at a time; further ones are closed",
	LIVE, RANGE(1, 65536), PRESET(32),
	FIELDS(AT(TLS, handshakes_per_peer_max), AT(HANDSHAKES, handshakes_per_peer_max)))
SETTING(HANDSHAKES_TPS, "handshakes.tps", COUNT, PROVIDER,
	"handshakes that begin in a second; further ones wait; 0: no limit",
	LIVE, RANGE(0, 1000000),
	FIELDS(AT(TLS, handshakes_per_second), AT(HANDSHAKES, handshakes_per_second)))
SETTING(ALLOW_FROM, "allow.from", LIST, PROVIDER,
	"addresses that may connect: 10.0.0.7, ranges like 10.0.0.0/8, unix",
	LIVE, RANGE(1, SPOKEI_RULES_MAX), CHECK(check_rules), PRESET_TEXT("all"),
	FIELDS(AT(PROVIDER, allow_from)))
SETTING(DENY_FROM, "deny.from", LIST, PROVIDER,
	"addresses that may not connect, even if allow.from has them",
	LIVE, RANGE(1, SPOKEI_RULES_MAX), CHECK(check_rules), PRESET_TEXT("none"),
	FIELDS(AT(PROVIDER, deny_from)))
SETTING(ALLOW_USERS, "allow.users", LIST, PROVIDER,
	"users that may connect to unix sockets: their numbers, gid:N for groups",
	LIVE, RANGE(1, SPOKEI_RULES_MAX), CHECK(check_rules), PRESET_TEXT("all"),
	FIELDS(AT(PROVIDER, allow_users)))
SETTING(ALLOW_CALLERS, "allow.callers", LIST, PROVIDER | SERVICE,
	"callers that are let in: dns:*.pay.test, uri:spiffe://x/y, uid:1000, addr:10.0.0.0/8, token",
	LIVE, RANGE(1, SPOKEI_CALLERS_MAX), CHECK(check_callers), PRESET_TEXT("all"),
	FIELDS(AT(PROVIDER, allow_callers)))

/* Leases. Those from the time to live on may also stand in the URL of a store. */
SETTING(LEASE_STORE, "lease.store", TEXT, LEASE,
	"URL of the store of leases, e.g. redis://127.0.0.1:6379/0",
	RANGE(1, TEXT_MAX), IS_URL, CHECK(check_store),
	FIELDS(AT(LEASES, store)))
SETTING(LEASE_USER, "lease.user", TEXT, LEASE, "user at the store; needs a password",
	RANGE(1, CREDENTIAL_MAX),
	FIELDS(AT(LEASES, user)))
SETTING(LEASE_PASSWORD, "lease.password", TEXT, LEASE, "password at the store",
	RANGE(1, CREDENTIAL_MAX), SECRET,
	FIELDS(AT(LEASES, password)))
SETTING(LEASE_SENTINEL_PASSWORD, "lease.sentinel.password", TEXT, LEASE,
	"password at the sentinels themselves",
	RANGE(1, CREDENTIAL_MAX), SECRET,
	FIELDS(AT(LEASES, sentinel_password)))
SETTING(LEASE_TTL, "lease.ttl", DURATION, LEASE,
	"time to live of a lease in the store, renewed after a third of it",
	RANGE(LEASE_TTL_MIN_NS, 24 * NS_PER_H), PRESET(30 * NS_PER_S),
	FIELDS(AT(LEASES, ttl_ns)))
SETTING(LEASE_WAIT, "lease.wait", DURATION, LEASE,
	"how long to wait for a lease that is held elsewhere; 0: try once",
	RANGE(0, SPOKEI_TIMEOUT_MAX_NS), OR_NONE)
SETTING(LEASE_GUARD, "lease.guard", DURATION, LEASE,
	"part of the time to live that holders leave unused; less than half of it",
	RANGE(0, 12 * NS_PER_H), OR_NONE, PRESET_TEXT("ttl / 10"),
	FIELDS(AT(LEASES, guard_ns)))
SETTING(LEASE_MAX, "lease.max", COUNT, LEASE, "leases asked for and held at one time",
	RANGE(1, LEASES_MAX), PRESET(100000),
	FIELDS(AT(LEASES, leases_max)))

/* Gateways for browsers. */
SETTING(COMET_LISTEN, "comet.listen", LIST, COMET, "addresses of the gateway, e.g. 127.0.0.1:8080",
	RANGE(1, SPOKE_COMET_LISTEN_MAX), CHECK(check_comet_listen),
	FIELDS(AT(COMET, listen)))
SETTING(COMET_ORIGINS, "comet.origins", LIST, COMET,
	"other origins whose pages may connect, e.g. https://shop.example",
	LIVE, RANGE(1, 64), CHECK(check_comet_origins),
	FIELDS(AT(COMET, origins)))
SETTING(COMET_HOSTS, "comet.hosts", LIST, COMET, "names of this host that pages may use",
	LIVE, RANGE(1, 64), CHECK(check_hosts),
	FIELDS(AT(COMET, hosts)))
SETTING(COMET_PROXIES, "comet.proxies", LIST, COMET,
	"proxies whose X-Forwarded-For is believed: 127.0.0.1, ranges like 10.0.0.0/8, unix",
	LIVE, RANGE(1, 64), CHECK(check_ranges),
	FIELDS(AT(COMET, proxies)))
SETTING(COMET_ANY_CLIENT, "comet.any.client", BOOL, COMET,
	"allow WebSockets and posts without an origin, which no browser sends",
	LIVE, RANGE(0, 1),
	FIELDS(AT(COMET, any_client)))
SETTING(COMET_QUERY_USER, "comet.query.user", BOOL, COMET,
	"believe user=ID in the query instead of asking for tickets; for trying only",
	RANGE(0, 1),
	FIELDS(AT(COMET, query_user)))
SETTING(COMET_TICKET_LIFE, "comet.ticket.life", DURATION, COMET,
	"how long a ticket can be used, once",
	RANGE(100 * NS_PER_MS, NS_PER_H), PRESET(30 * NS_PER_S))
SETTING(COMET_PAGE, "comet.page", TEXT, COMET, "file with the document at /, in HTML",
	RANGE(1, TEXT_MAX))
SETTING(COMET_BACKEND, "comet.backend", TEXT, COMET,
	"URL of a service whose method received(user, text) gets the texts of pages",
	RANGE(1, TEXT_MAX), URLS(check_backend))
SETTING(COMET_HEAD_TIME, "comet.head.time", DURATION, COMET,
	"how long a request may take to arrive",
	LIVE, RANGE(NS_PER_MS, COMET_TIME_MAX), PRESET(5 * NS_PER_S),
	FIELDS(AT(COMET, head_ns)))
SETTING(COMET_KEEPALIVE, "comet.keepalive", DURATION, COMET,
	"silence after which a byte is written",
	LIVE, RANGE(10 * NS_PER_MS, COMET_TIME_MAX), PRESET(25 * NS_PER_S),
	FIELDS(AT(COMET, keepalive_ns)))
SETTING(COMET_POLL, "comet.poll", DURATION, COMET, "how long a long poll is held",
	LIVE, RANGE(NS_PER_MS, COMET_TIME_MAX), PRESET(25 * NS_PER_S),
	FIELDS(AT(COMET, poll_ns)))
SETTING(COMET_LIFE, "comet.life", DURATION, COMET,
	"life of a connection, +/- 10 % at random; then it is told to reconnect",
	LIVE, RANGE(10 * NS_PER_MS, COMET_TIME_MAX), PRESET(1800 * NS_PER_S),
	FIELDS(AT(COMET, life_ns)))
SETTING(COMET_KEEP, "comet.keep", DURATION, COMET, "how long a user without connections is kept",
	RANGE(NS_PER_MS, COMET_TIME_MAX), PRESET(60 * NS_PER_S),
	FIELDS(AT(COMET, keep_ns)))
SETTING(COMET_SLOW, "comet.slow", DURATION, COMET, "how long a client may read nothing",
	LIVE, RANGE(10 * NS_PER_MS, COMET_TIME_MAX), PRESET(30 * NS_PER_S),
	FIELDS(AT(COMET, slow_ns)))
SETTING(COMET_RETRY_MIN, "comet.retry.min", DURATION, COMET,
	"shortest pause before a page reconnects; the pause is random",
	LIVE, RANGE(NS_PER_MS, NS_PER_H), PRESET(NS_PER_S),
	FIELDS(AT(COMET, retry_min_ns)))
SETTING(COMET_RETRY_MAX, "comet.retry.max", DURATION, COMET,
	"longest pause before a page reconnects",
	LIVE, RANGE(NS_PER_MS, NS_PER_H), PRESET(15 * NS_PER_S),
	FIELDS(AT(COMET, retry_max_ns)))
SETTING(COMET_DRAIN, "comet.drain", DURATION, COMET,
	"time over which a drain spreads the reconnects",
	LIVE, RANGE(NS_PER_MS, COMET_TIME_MAX), PRESET(10 * NS_PER_S),
	FIELDS(AT(COMET, drain_ns)))
SETTING(COMET_ACCEPT_RATE, "comet.accept.rate", COUNT, COMET,
	"connections opened per second; more are told to come again",
	LIVE, RANGE(1, UINT32_MAX), PRESET(2000),
	FIELDS(AT(COMET, accept_rate)))
SETTING(COMET_CONNECTIONS_MAX, "comet.connections.max", COUNT, COMET, "connections of pages",
	LIVE, RANGE(1, 16777216), PRESET(20000),
	FIELDS(AT(COMET, connections_max), AT(QUOTA, max)))
SETTING(COMET_CONNECTIONS_PER_PEER_MAX, "comet.connections.per.peer.max", COUNT, COMET,
	"connections of pages from one address",
	LIVE, RANGE(1, UINT32_MAX), PRESET(1000),
	FIELDS(AT(COMET, connections_per_peer_max), AT(QUOTA, per_peer_max)))
SETTING(COMET_CONNECTIONS_PER_PEER_PREFIX6, "comet.connections.per.peer.prefix6", COUNT, COMET,
	"bits of an IPv6 address that count as one address",
	LIVE, RANGE(1, 128), PRESET(64),
	FIELDS(AT(COMET, connections_per_peer_prefix6), AT(QUOTA, prefix6)))
SETTING(COMET_CONNECTIONS_PER_USER_MAX, "comet.connections.per.user.max", COUNT, COMET,
	"connections of one user; the oldest is closed",
	LIVE, RANGE(1, 250), PRESET(6),
	FIELDS(AT(COMET, connections_per_user_max)))
SETTING(COMET_USERS_MAX, "comet.users.max", COUNT, COMET, "known users",
	LIVE, RANGE(1, UINT32_MAX), PRESET(100000),
	FIELDS(AT(COMET, users_max)))
SETTING(COMET_FRAMES_PER_SECOND, "comet.frames.per.second", COUNT, COMET,
	"frames of a page per second",
	LIVE, RANGE(1, 250), PRESET(10),
	FIELDS(AT(COMET, frames_per_second)))
SETTING(COMET_FRAME_MAX, "comet.text.max", SIZE, COMET, "bytes of a text from a page",
	LIVE, RANGE(1, COMET_TEXT_MAX), PRESET(16384),
	FIELDS(AT(COMET, frame_max)))
SETTING(COMET_MESSAGE_MAX, "comet.message.max", SIZE, COMET, "bytes of a message's data",
	LIVE, RANGE(1, 16777216), PRESET(16384),
	FIELDS(AT(COMET, message_max)))
SETTING(COMET_RING_MESSAGES, "comet.ring.messages", COUNT, COMET,
	"messages kept for a user that comes back",
	LIVE, RANGE(1, 65535), PRESET(32),
	FIELDS(AT(COMET, ring_messages)))
SETTING(COMET_RING_BYTES, "comet.ring.bytes", SIZE, COMET, "bytes of these messages",
	LIVE, RANGE(1, UINT32_MAX), PRESET(16384),
	FIELDS(AT(COMET, ring_bytes)))
SETTING(COMET_RING_TIME, "comet.ring.time", DURATION, COMET, "how long they are kept",
	RANGE(NS_PER_MS, COMET_TIME_MAX), PRESET(60 * NS_PER_S),
	FIELDS(AT(COMET, ring_ns)))
SETTING(COMET_ALL_MESSAGES, "comet.all.messages", COUNT, COMET, "messages to all that are kept",
	LIVE, RANGE(1, 65535), PRESET(256),
	FIELDS(AT(COMET, all_messages)))
SETTING(COMET_ALL_BYTES, "comet.all.bytes", SIZE, COMET, "bytes of the messages to all",
	LIVE, RANGE(1, UINT32_MAX), PRESET(262144),
	FIELDS(AT(COMET, all_bytes)))
SETTING(COMET_BYTES_MAX, "comet.bytes.max", SIZE, COMET,
	"bytes of all messages, and of partial output and input",
	LIVE, RANGE(4096, UINT64_C(1) << 50), PRESET(67108864),
	FIELDS(AT(COMET, bytes_max)))
SETTING(COMET_SEND_BUFFER, "comet.send.buffer", SIZE, COMET,
	"bytes that the system may queue per connection",
	LIVE, RANGE(1024, 1073741824), PRESET(16384),
	FIELDS(AT(COMET, send_buffer)))

/* The engine. */
SETTING(TICK, "tick", DURATION, ENGINE, "tick of the timing wheel",
	RANGE(1, NS_PER_H), PRESET(NS_PER_MS),
	FIELDS(AT(ENGINE, tick_ns)))
SETTING(TIMERS_MAX, "timers.max", COUNT, ENGINE, "armed timers",
	RANGE(1, UINT32_MAX), PRESET(16777216),
	FIELDS(AT(ENGINE, timers_max)))
SETTING(LATE, "late", DURATION, ENGINE,
	"a turn this late first reads each socket once, for this long at most",
	RANGE(1, NS_PER_H), PRESET(50 * NS_PER_MS),
	FIELDS(AT(ENGINE, late_ns)))
SETTING(SLOW_LOOP, "slow.loop", DURATION, ENGINE,
	"a handler that keeps the loop from other work for longer is named in the log",
	RANGE(NS_PER_MS, NS_PER_H), PRESET(100 * NS_PER_MS),
	FIELDS(AT(ENGINE, slow_loop_ns)))
SETTING(SPIN, "spin", SPIN, ENGINE,
	"how long to busy-poll before sleeping; auto: at most 50us, while that pays",
	RANGE(1, SPOKE_ENGINE_SPIN_MAX_NS),
	FIELDS(AT(ENGINE, spin_ns)))
SETTING(POOL_THREADS, "pool.threads", COUNT, ENGINE, "threads that run blocking handlers",
	RANGE(1, SPOKE_POOL_THREADS_MAX), PRESET(SPOKE_POOL_THREADS),
	FIELDS(AT(ENGINE, pool_threads)))
SETTING(POOL_QUEUE, "pool.queue", COUNT, ENGINE,
	"requests that wait for such a thread; more are refused",
	RANGE(1, SPOKE_POOL_QUEUE_MAX), PRESET(SPOKE_POOL_QUEUE),
	FIELDS(AT(ENGINE, pool_queue)))
SETTING(LOG, "log", NAME, ENGINE,
	"least severe lines to log; without this key a program's own hook begins with info",
	LIVE, NAMES(log_level_name), PRESET(SPOKE_LOG_WARN))
SETTING(ADMIN, "admin", TEXT, ENGINE,
	"address of the admin page; https:// before it: over TLS, as [provider]",
	RANGE(1, TEXT_MAX), CHECK(check_admin))
SETTING(ADMIN_TOKEN_FILE, "admin.token.file", TEXT, ENGINE,
	"file with the token that the page's actions need; its group and others must not read it",
	LIVE, RANGE(1, TEXT_MAX), PRESET_TEXT("a random token"))

/* clang-format on */
#undef SETTING
