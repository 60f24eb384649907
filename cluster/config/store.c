/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the URL of a store of leases. A list of sentinels is no URL by itself: each host, with
 * the text before and after the list, is parsed as one.
 */
#include "cluster/config/store.h"

#include "cluster/config/keys.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/text/option.h"

#include <stdio.h>

#define SCHEME_MAX 32u /* bytes of a scheme in a message, with the NUL */
#define QUOTED_MAX 64u /* ... of a key */
#define PATH_MAX 107u  /* ... of a unix socket's path, as Linux has it */
#define EXAMPLE "redis://127.0.0.1:6379/0"

enum scheme {
	REDIS,
	REDIS_UNIX,
	SENTINEL,
	SCHEMES,
};

/* The text, and the parts that are found in it. */
struct reader {
	const struct spoke_env *env;
	const char *text;
	size_t len;
	struct spokei_store *store;
	struct spoke_url_error *why;
	enum scheme scheme;
	unsigned url_count;
};

static int refuse(struct reader *reader, int code, size_t at, const char *sentence)
{
	reader->why->at = at;
	(void)snprintf(reader->why->text, sizeof(reader->why->text), "%s", sentence);
	return code;
}

/* Returns the position of the first of these bytes, or the end. */
static size_t find(const struct reader *reader, size_t at, const char *bytes)
{
	while (at < reader->len && (!reader->text[at] || !strchr(bytes, reader->text[at])))
		at++;
	return at;
}

/* --- scheme */

static int refuse_scheme(struct reader *reader, const char *scheme)
{
	static const char *const encrypted[] = { "rediss",    "rediss+unix", "redis+tls",
						 "redis+ssl", "sentinels",   "valkeys" };

	for (size_t i = 0; i < sizeof(encrypted) / sizeof(encrypted[0]); i++) {
		if (strcmp(scheme, encrypted[i]) == 0)
			return refuse(reader, SPOKE_EUNSUPPORTED, 0,
				      "TLS to a store is not supported; use redis:// in a private "
				      "network, a unix socket, or a tunnel");
	}
	reader->why->at = 0;
	(void)snprintf(reader->why->text, sizeof(reader->why->text),
		       "unknown scheme %s; use redis, redis+unix or sentinel", scheme);
	return SPOKE_EUNSUPPORTED;
}

/* Copies the scheme in lower case. Returns false if the text has none. */
static bool copy_scheme(const struct reader *reader, char out[SCHEME_MAX])
{
	size_t end = find(reader, 0, ":");

	if (end == 0 || end >= SCHEME_MAX || end + 1 >= reader->len || reader->text[end + 1] != '/')
		return false;
	for (size_t i = 0; i < end; i++) {
		char byte = reader->text[i];

		if (byte >= 'A' && byte <= 'Z')
			byte = (char)(byte - 'A' + 'a');
		if ((byte < 'a' || byte > 'z') && (byte < '0' || byte > '9') &&
		    (byte == '\0' || strchr("+-.", byte) == NULL))
			return false;
		out[i] = byte;
	}
	out[end] = '\0';
	return true;
}

static int read_scheme(struct reader *reader)
{
	static const char *const names[SCHEMES] = {
		[REDIS] = "redis",
		[REDIS_UNIX] = "redis+unix",
		[SENTINEL] = "sentinel",
	};
	char scheme[SCHEME_MAX];

	if (reader->len > SPOKE_URL_MAX)
		return refuse(reader, SPOKE_ETOOLARGE, SPOKE_URL_MAX,
			      "a URL has at most 65536 bytes");
	if (!copy_scheme(reader, scheme))
		return refuse(reader, SPOKE_ESYNTAX, 0,
			      "not the URL of a store; write e.g. " EXAMPLE
			      " or redis+unix:///run/redis.sock");
	for (unsigned i = 0; i < SCHEMES; i++) {
		if (strcmp(scheme, names[i]) != 0)
			continue;
		reader->scheme = (enum scheme)i;
		return SPOKE_OK;
	}
	return refuse_scheme(reader, scheme);
}

/* --- hosts */

static int read_port(struct reader *reader, const struct spoke_url *url, int preset,
		     struct spokei_store_host *ret)
{
	if (url->port == 0)
		return refuse(reader, SPOKE_ERANGE, 0, "port 0 is not valid for a store");
	*ret = (struct spokei_store_host){
		.host = url->host,
		.port = (uint16_t)(url->port < 0 ? preset : url->port),
	};
	return SPOKE_OK;
}

/* Reads digits, all of the text. */
static int read_db(struct reader *reader, size_t at, const char *text, size_t len)
{
	uint64_t number = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return refuse(reader, SPOKE_ESYNTAX, at,
				      "a database is a number, e.g. " EXAMPLE);
		number = number * 10 + (uint64_t)(text[i] - '0');
		if (number > SPOKEI_STORE_DB_MAX)
			return refuse(reader, SPOKE_ERANGE, at,
				      "the number of a database is at most 2147483647");
	}
	reader->store->db = (uint32_t)number;
	return SPOKE_OK;
}

static int read_server(struct reader *reader)
{
	struct spokei_store *store = reader->store;
	struct spoke_url *url = &store->urls[0];
	int error = spoke_url_parse(reader->env, reader->text, reader->len, url, reader->why);

	if (error)
		return error;
	reader->url_count = 1;
	if (reader->scheme == REDIS_UNIX) {
		store->path = url->socket;
		if (strlen(url->socket) <= PATH_MAX)
			return SPOKE_OK;
		return refuse(reader, SPOKE_ETOOLARGE, 0,
			      "the path of a unix socket has at most 107 bytes");
	}
	error = read_port(reader, url, SPOKEI_STORE_PORT, &store->server);
	return error ? error : read_db(reader, find(reader, 0, "?"), url->path, strlen(url->path));
}

/* --- sentinels */

/* The parts of a text with sentinels, as positions. */
struct parts {
	size_t hosts; /* the first host */
	size_t path;  /* the slash before the primary's name */
	size_t db;    /* the slash before the database, or `query` */
	size_t query; /* the question mark, or the end */
};

static int split_sentinels(struct reader *reader, struct parts *ret)
{
	size_t begin = find(reader, 0, ":") + 1;
	struct parts parts;

	if (reader->len < begin + 2 || memcmp(reader->text + begin, "//", 2) != 0)
		return refuse(reader, SPOKE_ESYNTAX, begin,
			      "after the scheme come // and the hosts of sentinels, e.g. "
			      "sentinel://10.0.0.1,10.0.0.2/mymaster");
	begin += 2;
	parts.path = find(reader, begin, "/?");
	parts.query = find(reader, parts.path, "?");
	parts.db = parts.path < parts.query ? find(reader, parts.path + 1, "/?") : parts.query;
	parts.hosts = begin;
	for (size_t at = begin; at < parts.path; at++)
		if (reader->text[at] == '@')
			parts.hosts = at + 1;
	for (size_t at = begin; at < parts.hosts; at++) {
		if (reader->text[at] == ',')
			return refuse(reader, SPOKE_ESYNTAX, at,
				      "user and password stand once, before the first host; in "
				      "them write %2C for a comma");
	}
	if (parts.db <= parts.path + 1)
		return refuse(reader, SPOKE_ESYNTAX, parts.path,
			      "the name of the primary is missing after the sentinels; write "
			      "e.g. sentinel://10.0.0.1,10.0.0.2/mymaster");
	*ret = parts;
	return SPOKE_OK;
}

/* Parses the URL of one sentinel, made in `room` from the parts around its host. */
static int read_sentinel(struct reader *reader, const struct parts *parts, size_t host,
			 size_t host_len, char *room)
{
	struct spokei_store *store = reader->store;
	struct spoke_url *url = &store->urls[reader->url_count];
	size_t name_len = parts->db - parts->path;
	size_t query_len = reader->len - parts->query;
	size_t after = parts->hosts + host_len;
	int error;

	memcpy(room, reader->text, parts->hosts);
	memcpy(room + parts->hosts, reader->text + host, host_len);
	memcpy(room + after, reader->text + parts->path, name_len);
	memcpy(room + after + name_len, reader->text + parts->query, query_len);
	error = spoke_url_parse(reader->env, room, after + name_len + query_len, url, reader->why);
	if (error) {
		size_t at = reader->why->at;

		if (at >= after + name_len)
			reader->why->at = parts->query + at - after - name_len;
		else if (at > after)
			reader->why->at = parts->path + at - after;
		else if (at >= parts->hosts)
			reader->why->at = host + at - parts->hosts;
		return error;
	}
	reader->url_count++;
	error = read_port(reader, url, SPOKEI_STORE_SENTINEL_PORT,
			  &store->sentinels[store->sentinel_count]);
	store->sentinel_count += error == SPOKE_OK;
	return error;
}

static int read_hosts(struct reader *reader, const struct parts *parts, char *room)
{
	size_t at = parts->hosts;

	for (;;) {
		size_t end = find(reader, at, ",/?");
		int error;

		if (reader->url_count == SPOKEI_STORE_SENTINELS_MAX)
			return refuse(reader, SPOKE_ETOOLARGE, at,
				      "a store has at most 8 sentinels");
		error = read_sentinel(reader, parts, at, end - at, room);
		if (error || end == parts->path)
			return error;
		at = end + 1;
	}
}

static int read_sentinels(struct reader *reader)
{
	struct parts parts = { 0, 0, 0, 0 };
	int error = split_sentinels(reader, &parts);
	char *room;

	if (error)
		return error;
	room = spokei_alloc_unset(reader->env, reader->len);
	if (room == NULL)
		return refuse(reader, SPOKE_ENOMEM, 0, spoke_strerror(SPOKE_ENOMEM));
	error = read_hosts(reader, &parts, room);
	spokei_free(reader->env, room, 1, reader->len);
	if (error)
		return error;
	reader->store->primary = reader->store->urls[0].path;
	if (strlen(reader->store->primary) > SPOKEI_STORE_TEXT_MAX)
		return refuse(reader, SPOKE_ETOOLARGE, parts.path,
			      "the name of a primary has at most 255 bytes");
	if (parts.db == parts.query)
		return SPOKE_OK;
	return read_db(reader, parts.db, reader->text + parts.db + 1, parts.query - parts.db - 1);
}

/* --- parameters */

/* Returns the key that a parameter sets; SPOKEI_KEYS: none. */
static enum spokei_key key_of(const char *name)
{
	const enum spokei_key key = spokei_key_find(name);

	return key >= SPOKEI_KEY_LEASE_TTL && key <= SPOKEI_KEY_LEASE_MAX ? key : SPOKEI_KEYS;
}

static const char *name_at(const void *of, size_t i)
{
	(void)of;
	return spokei_keys_name((enum spokei_key)(SPOKEI_KEY_LEASE_TTL + i));
}

/* Suggests the key whose prefix is missing, else the most similar one. */
static const char *suggest(const struct reader *reader, const char *name)
{
	const enum spokei_key key = spokei_key_find_in(SPOKEI_IN_LEASE, name);

	if (key >= SPOKEI_KEY_LEASE_TTL && key <= SPOKEI_KEY_LEASE_MAX)
		return spokei_keys_name(key);
	if (reader->scheme == REDIS_UNIX && strcmp(name, "database") == 0)
		return "db";
	return spokei_option_nearest_name(name, name_at, NULL,
					  SPOKEI_KEY_LEASE_MAX - SPOKEI_KEY_LEASE_TTL + 1);
}

static int refuse_parameter(struct reader *reader, const char *name, size_t at)
{
	const char *nearest;
	char quoted[QUOTED_MAX];

	if (strcmp(name, "db") == 0)
		return refuse(reader, SPOKE_EINVAL, at,
			      "db: only for a unix socket; write the database as in " EXAMPLE);
	if (strstr(name, "user") || strstr(name, "pass"))
		return refuse(reader, SPOKE_EINVAL, at,
			      "user and password are no parameters; write redis://USER:PASSWORD@"
			      "HOST, or set them in the section [lease] or in the options");
	nearest = suggest(reader, name);
	(void)spokei_log_escape(quoted, sizeof(quoted), name, strlen(name));
	reader->why->at = at;
	(void)snprintf(reader->why->text, sizeof(reader->why->text), "%s: no such option%s%s%s",
		       quoted, nearest ? "; did you mean " : "", nearest ? nearest : "",
		       nearest ? "?" : "");
	return SPOKE_EINVAL;
}

static int read_parameter(struct reader *reader, const struct spoke_url_parameter *parameter,
			  size_t at)
{
	enum spokei_key key = key_of(parameter->key);
	uint64_t unused;

	if (reader->scheme == REDIS_UNIX && strcmp(parameter->key, "db") == 0)
		return read_db(reader, at, parameter->value, strlen(parameter->value));
	if (key == SPOKEI_KEYS)
		return refuse_parameter(reader, parameter->key, at);
	reader->why->at = at;
	return spokei_option_parse(&spokei_key_row(key)->option, parameter->value, true, &unused,
				   reader->why->text, sizeof(reader->why->text));
}

static int read_parameters(struct reader *reader)
{
	const struct spoke_url *url = &reader->store->urls[0];
	size_t at = find(reader, 0, "?");
	int error = SPOKE_OK;

	for (unsigned i = 0; i < url->parameter_count && error == 0; i++)
		error = read_parameter(reader, &url->parameters[i], at);
	return error;
}

void spokei_store_keys(const struct spokei_store *store, struct spokei_key_values *values)
{
	const struct spoke_url *url = &store->urls[0];
	char why[SPOKEI_OPTION_WHY_MAX];

	for (unsigned i = 0; i < url->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &url->parameters[i];
		enum spokei_key key = key_of(parameter->key);
		uint64_t number;

		if (key != SPOKEI_KEYS &&
		    spokei_option_parse(&spokei_key_row(key)->option, parameter->value, true,
					&number, why, sizeof(why)) == SPOKE_OK)
			spokei_keys_put(values, key, number, SPOKEI_FROM_URL, 0);
	}
}

/* --- the whole */

static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static int read_user(struct reader *reader)
{
	struct spokei_store *store = reader->store;

	store->user = given(store->urls[0].user);
	store->password = given(store->urls[0].password);
	if ((store->user && strlen(store->user) > SPOKEI_STORE_TEXT_MAX) ||
	    (store->password && strlen(store->password) > SPOKEI_STORE_TEXT_MAX))
		return refuse(reader, SPOKE_ETOOLARGE, find(reader, 0, ":") + 1,
			      "user and password have at most 255 bytes each");
	return SPOKE_OK;
}

int spokei_store_parse(const struct spoke_env *env, const char *text, size_t len,
		       struct spokei_store *ret, struct spoke_url_error *why)
{
	struct spokei_store store = { .db = 0 };
	struct reader reader = {
		.env = env, .text = text, .len = len, .store = &store, .why = why
	};
	int error = read_scheme(&reader);

	if (error == SPOKE_OK)
		error = reader.scheme == SENTINEL ? read_sentinels(&reader) : read_server(&reader);
	if (error == SPOKE_OK)
		error = read_user(&reader);
	if (error == SPOKE_OK)
		error = read_parameters(&reader);
	if (error)
		spokei_store_fini(&store);
	else
		*ret = store;
	return error;
}

void spokei_store_fini(struct spokei_store *store)
{
	for (unsigned i = 0; i < SPOKEI_STORE_SENTINELS_MAX; i++)
		spoke_url_fini(&store->urls[i]);
	*store = (struct spokei_store){ .db = 0 };
}
