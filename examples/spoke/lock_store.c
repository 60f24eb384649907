/* SPDX-License-Identifier: Apache-2.0 */
/* The store of `spoke lock`: where it is, with which secrets, and for how long leases live. */
#include "examples/spoke/lock.h"

#include "examples/spoke/options.h"
#include "examples/spoke/settings.h"

#include <spoke/host.h>
#include <spoke/stats.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TTL_NS UINT64_C(30000000000) /* the library's default */
#define GRACE_NS UINT64_C(5000000000)

static bool log_printed; /* by --verbose */
static char newest[256]; /* the newest log line about a failure */

static void log_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	if (line->level <= SPOKE_LOG_WARN)
		(void)snprintf(newest, sizeof(newest), "%s", line->text);
	if (!log_printed)
		return;
	(void)ending_say(VERB_OK, LOCK_VERB, "%s", line->text);
	if (line->suppressed)
		(void)ending_say(VERB_OK, LOCK_VERB, "%" PRIu64 " similar lines suppressed",
				 line->suppressed);
}

const char *lock_why(void)
{
	return newest;
}

void lock_pattern(const char *name, char *pattern, size_t size)
{
	size_t len = 0;

	for (; *name && len + 2 < size; name++) {
		if (strchr("*?[]\\", *name))
			pattern[len++] = '\\';
		pattern[len++] = *name;
	}
	pattern[len] = '\0';
}

const char *lock_time(uint64_t ns, char *text, size_t size)
{
	uint64_t seconds = ns / 1000000000;

	if (seconds < 1)
		(void)snprintf(text, size, "%" PRIu64 " ms", ns / 1000000);
	else if (seconds < 60)
		(void)snprintf(text, size, "%.1f s", (double)ns / 1e9);
	else if (seconds < 3600)
		(void)snprintf(text, size, "%" PRIu64 " min %" PRIu64 " s", seconds / 60,
			       seconds % 60);
	else
		(void)snprintf(text, size, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600,
			       seconds / 60 % 60);
	return text;
}

/* --- times */

/* Returns the URL of the store, wherever it is set; NULL: nowhere. */
static const char *store_of(const struct locker *locker)
{
	const char *url = locker->url;

	if (!url)
		url = getenv("SPOKE_LEASE_STORE"); /* NOLINT(concurrency-mt-unsafe): one thread */
	if (!url && locker->config)
		url = spoke_config_get(locker->config, "lease", "store");
	return url;
}

/* Finds a key of leases in the URL, else in the file. Returns its text, which may go on after the
 * value, or NULL. */
static const char *find_key(const struct locker *locker, const char *key)
{
	const char *url = store_of(locker);
	const char *at = url ? strchr(url, '?') : NULL;
	size_t len = strlen(key);

	for (; at; at = strchr(at + 1, '&'))
		if (strncmp(at + 1, "lease.", 6) == 0 && strncmp(at + 7, key, len) == 0 &&
		    at[7 + len] == '=')
			return at + 8 + len;
	return locker->config ? spoke_config_get(locker->config, "lease", key) : NULL;
}

/* Returns the time to live that the library will use. It rejects a wrong one, so any number will do
 * for that. */
static uint64_t ttl_of(const struct locker *locker)
{
	const char *text = find_key(locker, "ttl");
	char value[32];
	uint64_t ns;
	size_t len;

	if (locker->ttl_ns)
		return locker->ttl_ns;
	if (!text)
		return TTL_NS;
	/* Numbers without a unit are ms, in URLs. */
	len = strcspn(text, "&");
	(void)snprintf(value, sizeof(value), "%.*s%s", (int)len, text,
		       strspn(text, "0123456789") == len ? "ms" : "");
	return options_read_duration(value, &ns) ? ns : TTL_NS;
}

/* More would leave too little time for a renewal, which is due after a third. */
static uint64_t guard_max(const struct locker *locker)
{
	return ttl_of(locker) / 5 * 2;
}

int lock_prepare(struct locker *locker)
{
	uint64_t most;

	if (settings_load(LOCK_VERB, locker->config_path, &locker->config) != VERB_OK)
		return VERB_USAGE;
	if (!store_of(locker)) {
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "the store is not known; write its URL before the name, e.g. "
				  "redis://127.0.0.1:6379, or set SPOKE_LEASE_STORE, or the key "
				  "store in [lease] of the file of --config");
	}
	most = guard_max(locker);
	if (locker->grace_ns == UINT64_MAX)
		locker->grace_ns = GRACE_NS < most ? GRACE_NS : most;
	return VERB_OK;
}

/* Returns the part of the time to live that is kept for the end of the command, so that the command
 * has ended before another one can get the lease. */
static uint64_t guard_of(const struct locker *locker)
{
	uint64_t ttl = ttl_of(locker);
	uint64_t guard = locker->grace_ns;

	if (locker->mode != LOCK_RUN || find_key(locker, "guard"))
		return 0;
	if (guard < ttl / 10)
		guard = ttl / 10;
	return guard < guard_max(locker) ? guard : guard_max(locker);
}

/* --- the client of the store */

/* Does the URL name a user or a password? */
static bool has_user(const char *url)
{
	const char *at = strstr(url, "://");
	size_t len = at ? strcspn(at + 3, "/?#") : 0;

	return at && memchr(at + 3, '@', len) != NULL;
}

/* Reads secrets, which must not stand on the command line. Those of the URL count more. */
static void add_secrets(const struct locker *locker, struct spoke_leases_options *options)
{
	/* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
	if (!has_user(store_of(locker))) {
		options->user = getenv("SPOKE_LEASE_USER");
		options->password = getenv("SPOKE_LEASE_PASSWORD");
	}
	options->sentinel_password = getenv("SPOKE_LEASE_SENTINEL_PASSWORD");
	/* NOLINTEND(concurrency-mt-unsafe) */
}

static int fail(const struct locker *locker, int error)
{
	const char *why = *newest ? newest : locker->engine ? spoke_engine_why(locker->engine) : "";
	int end = spoke_error_exit(error);

	if (log_printed && why == newest && *why)
		return end;
	return ending_say(end, LOCK_VERB, "%s", *why ? why : spoke_strerror(error));
}

/* --- the store, for the client that blocks */

/* Returns the first text that is neither NULL nor empty. */
static const char *choose(const char *first, const char *second)
{
	if (first && *first)
		return first;
	return second && *second ? second : NULL;
}

/* Secrets of the file are not sent to a store that the file does not name. */
static const char *in_file(const struct locker *locker, const char *key)
{
	const char *named = locker->config ? spoke_config_get(locker->config, "lease", "store")
					   : NULL;

	if (!locker->config || (named && strcmp(named, store_of(locker)) != 0))
		return NULL;
	return spoke_config_get(locker->config, "lease", key);
}

static void choose_secrets(const struct locker *locker, struct lock_store *store)
{
	struct spoke_leases_options given = { .store = NULL };
	const char *user = store->urls[0].user;
	const char *password = store->urls[0].password;

	add_secrets(locker, &given);
	if (!choose(user, password)) {
		user = in_file(locker, "user");
		password = in_file(locker, "password");
	}
	store->user = choose(given.user, user);
	store->password = choose(given.password, password);
	store->sentinel_password = choose(given.sentinel_password,
					  in_file(locker, "sentinel.password"));
}

/* Parses the URL of one host, made of the parts around it. */
static bool read_host(const struct locker *locker, struct lock_store *store, const char *before,
		      const char *host, const char *behind)
{
	struct spoke_url *url = &store->urls[store->count];
	size_t size = strlen(before) + strlen(host) + strlen(behind) + sizeof("://");
	char *text = malloc(size);
	int error = SPOKE_ENOMEM;
	int preset = store->primary ? 26379 : 6379;

	if (text) {
		(void)snprintf(text, size, "%s%s%s", before, host, behind);
		error = spoke_url_parse(&locker->env, text, strlen(text), url, NULL);
	}
	free(text);
	if (error)
		return false;
	store->hosts[store->count].host = url->host;
	store->hosts[store->count].port = (uint16_t)(url->port < 0 ? preset : url->port);
	store->count++;
	return true;
}

/* A list of sentinels is no URL by itself: each host, with the text before and after the list, is
 * parsed as one. Behind the name of the primary is the number of the database. */
static bool read_sentinels(const struct locker *locker, struct lock_store *store)
{
	char *hosts = strstr(store->url, "://") + 3;
	char *path = strchr(hosts, '/');
	char *db = strpbrk(path + 1, "/?");
	char before[SPOKE_URL_HOST_MAX * 8] = "redis://";
	char *at;

	if (db && *db == '/')
		(void)snprintf(store->db, sizeof(store->db), "%.*s", (int)strcspn(db + 1, "?"),
			       db + 1);
	if (db)
		*db = '\0';
	*path = '\0';
	at = strrchr(hosts, '@');
	if (at) {
		(void)snprintf(before, sizeof(before), "redis://%.*s@", (int)(at - hosts), hosts);
		hosts = at + 1;
	}
	store->primary = "";
	while (hosts && store->count < LOCK_SENTINELS_MAX) {
		char *comma = strchr(hosts, ',');
		char tail[SPOKE_URL_HOST_MAX * 4];

		if (comma)
			*comma = '\0';
		(void)snprintf(tail, sizeof(tail), "/%s", path + 1);
		if (!read_host(locker, store, before, hosts, tail))
			return false;
		hosts = comma ? comma + 1 : NULL;
	}
	store->primary = store->urls[0].path;
	return true;
}

static bool read_server(const struct locker *locker, struct lock_store *store)
{
	const struct spoke_url *url = &store->urls[0];

	if (!read_host(locker, store, "", store->url, ""))
		return false;
	store->path = url->socket;
	if (!store->path)
		(void)snprintf(store->db, sizeof(store->db), "%s", url->path);
	for (unsigned i = 0; i < url->parameter_count && store->path; i++)
		if (strcmp(url->parameters[i].key, "db") == 0)
			(void)snprintf(store->db, sizeof(store->db), "%s",
				       url->parameters[i].value);
	return true;
}

bool lock_store_read(const struct locker *locker, struct lock_store *ret)
{
	bool is_read;

	*ret = (struct lock_store){ .url = strdup(store_of(locker)) };
	if (!ret->url)
		return false;
	is_read = strncasecmp(ret->url, "sentinel", 8) == 0 ? read_sentinels(locker, ret)
							    : read_server(locker, ret);
	if (is_read)
		choose_secrets(locker, ret);
	else
		lock_store_free(ret);
	return is_read;
}

void lock_store_free(struct lock_store *store)
{
	for (unsigned i = 0; i < LOCK_SENTINELS_MAX; i++)
		spoke_url_fini(&store->urls[i]);
	free(store->url);
	store->url = NULL;
}

/* --- engine and leases */

int lock_open(struct locker *locker)
{
	struct spoke_engine_options engine_options = { .env = &locker->env };
	struct spoke_leases_options options = {
		.config = locker->config,
		.ttl_ns = locker->ttl_ns,
		.guard_ns = guard_of(locker),
	};
	int error;

	options.store = store_of(locker);
	add_secrets(locker, &options);
	log_printed = locker->verbose;
	locker->env = *spoke_host_env();
	locker->env.log = log_line;
	if (locker->config)
		spoke_config_engine(locker->config, &engine_options);
	error = spoke_engine_new(&engine_options, &locker->engine);
	if (!error)
		error = spoke_leases_new(locker->engine, &options, &locker->leases);
	return error ? fail(locker, error) : VERB_OK;
}

void lock_close(struct locker *locker)
{
	locker->closing = true;
	spoke_leases_free(locker->leases);
	spoke_engine_free(locker->engine);
	spoke_config_free(locker->config);
	free(locker->url);
	locker->leases = NULL;
	locker->engine = NULL;
	locker->config = NULL;
	locker->url = NULL;
}
