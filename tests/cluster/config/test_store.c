/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of stores of leases: valid ones, and the messages about invalid ones. */
#include "cluster/config/keys.h"
#include "cluster/config/store.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static struct memory memory;

static struct spokei_store right(const char *text)
{
	struct spoke_url_error why = { 0, "" };
	struct spokei_store store;

	memory_init(&memory);
	assert_int_equal(spokei_store_parse(&memory.env, text, strlen(text), &store, &why),
			 SPOKE_OK);
	return store;
}

static void drop(struct spokei_store *store)
{
	spokei_store_fini(store);
	assert_int_equal(memory.bytes, 0);
}

static void wrong(const char *text, int code, size_t at, const char *sentence)
{
	struct spoke_url_error why = { 0, "" };
	struct spokei_store store = { .db = 77 };

	memory_init(&memory);
	assert_int_equal(spokei_store_parse(&memory.env, text, strlen(text), &store, &why), code);
	assert_string_equal(why.text, sentence);
	assert_int_equal(why.at, at);
	assert_int_equal(store.db, 77);
	assert_int_equal(memory.bytes, 0);
}

static void assert_text(const char *text, const char *expected)
{
	if (expected == NULL)
		assert_null(text);
	else
		assert_string_equal(text, expected);
}

/* --- servers */

TEST(server_url_has_host_port_and_database)
{
	static const struct {
		const char *text;
		const char *host;
		uint16_t port;
		uint32_t db;
	} rows[] = {
		{ "redis://10.0.0.1", "10.0.0.1", 6379, 0 },
		{ "redis://10.0.0.1/", "10.0.0.1", 6379, 0 },
		{ "REDIS://Example.org:1/3", "example.org", 1, 3 },
		{ "redis://[::1]", "::1", 6379, 0 },
		{ "redis://[fe80::1%25eth0]:7/15", "fe80::1%eth0", 7, 15 },
		{ "redis://h:65535/2147483647", "h", 65535, 2147483647 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_store store = right(rows[i].text);

		assert_string_equal(store.server.host, rows[i].host);
		assert_int_equal(store.server.port, rows[i].port);
		assert_int_equal(store.db, rows[i].db);
		assert_null(store.path);
		assert_null(store.primary);
		assert_int_equal(store.sentinel_count, 0);
		drop(&store);
	}
}

TEST(user_and_password_are_decoded)
{
	static const struct {
		const char *text;
		const char *user;
		const char *password;
	} rows[] = {
		{ "redis://h", NULL, NULL },
		{ "redis://:s%40%2F%3A%25@h", NULL, "s@/:%" },
		{ "redis://me:secret@h/1", "me", "secret" },
		{ "redis://a%2Cb@h", "a,b", NULL },
		{ "redis://me:@h", "me", NULL },
		{ "sentinel://me:p%2Cq@h,i/m", "me", "p,q" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_store store = right(rows[i].text);

		assert_text(store.user, rows[i].user);
		assert_text(store.password, rows[i].password);
		drop(&store);
	}
}

TEST(socket_url_has_path_and_database)
{
	struct spokei_store store = right("redis+unix:///run/my%20redis.sock?db=4");

	assert_string_equal(store.path, "/run/my redis.sock");
	assert_int_equal(store.db, 4);
	assert_null(store.server.host);
	drop(&store);
	store = right("redis+unix:/run/s");
	assert_string_equal(store.path, "/run/s");
	assert_int_equal(store.db, 0);
	drop(&store);
}

/* --- sentinels */

TEST(sentinel_url_lists_hosts_in_their_order)
{
	struct spokei_store store = right(
		"sentinel://[::1]:5,Other,10.0.0.3:1/my%20master/7?lease.max=3");
	static const struct spokei_store_host hosts[] = {
		{ "::1", 5 },
		{ "other", 26379 },
		{ "10.0.0.3", 1 },
	};

	assert_int_equal(store.sentinel_count, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(store.sentinels[i].host, hosts[i].host);
		assert_int_equal(store.sentinels[i].port, hosts[i].port);
	}
	assert_string_equal(store.primary, "my master");
	assert_int_equal(store.db, 7);
	assert_null(store.server.host);
	assert_null(store.path);
	drop(&store);
	store = right("sentinel://a/m/");
	assert_string_equal(store.primary, "m");
	assert_int_equal(store.db, 0);
	drop(&store);
}

TEST(sentinels_above_the_maximum_are_refused)
{
	struct spokei_store store = right("sentinel://a,a,a,a,a,a,a,b/m");

	assert_int_equal(store.sentinel_count, SPOKEI_STORE_SENTINELS_MAX);
	assert_string_equal(store.sentinels[7].host, "b");
	drop(&store);
	wrong("sentinel://a,a,a,a,a,a,a,a,b/m", SPOKE_ETOOLARGE, 27,
	      "a store has at most 8 sentinels");
}

TEST(errors_in_a_list_have_their_position_in_it)
{
	wrong("sentinel://a,b:x/m", SPOKE_ESYNTAX, 15, "a port is a number, e.g. 20880");
	wrong("sentinel://a,,b/m", SPOKE_ESYNTAX, 13,
	      "a host is missing; for all addresses write 0.0.0.0 or [::]");
	wrong("sentinel://aaaa,b/m%2?x=1", SPOKE_ESYNTAX, 19,
	      "a percent sign comes before two hex digits; alone it is %25");
	wrong("sentinel://a,bbb/m/12?x%zz", SPOKE_ESYNTAX, 23,
	      "a percent sign comes before two hex digits; alone it is %25");
	wrong("sentinel://u%4:p@aa/m", SPOKE_ESYNTAX, 12,
	      "a percent sign comes before two hex digits; alone it is %25");
	wrong("sentinel://a,b:0/m", SPOKE_ERANGE, 0, "port 0 is not valid for a store");
}

TEST(sentinels_need_a_primary_name)
{
	static const char sentence[] = "the name of the primary is missing after the sentinels; "
				       "write e.g. sentinel://10.0.0.1,10.0.0.2/mymaster";

	wrong("sentinel://a,b", SPOKE_ESYNTAX, 14, sentence);
	wrong("sentinel://a,b/", SPOKE_ESYNTAX, 14, sentence);
	wrong("sentinel://a,b?db=1", SPOKE_ESYNTAX, 14, sentence);
	wrong("sentinel://a,b//1", SPOKE_ESYNTAX, 14, sentence);
	wrong("sentinel:/a/m", SPOKE_ESYNTAX, 9,
	      "after the scheme come // and the hosts of sentinels, e.g. "
	      "sentinel://10.0.0.1,10.0.0.2/mymaster");
}

TEST(user_stands_before_the_first_sentinel)
{
	wrong("sentinel://u:p@a,u:p@b/m", SPOKE_ESYNTAX, 16,
	      "user and password stand once, before the first host; in them write %2C for a "
	      "comma");
}

/* --- schemes */

TEST(text_without_scheme_is_not_quoted)
{
	static const char *const texts[] = {
		"", "foo", ":secret@h", "secret@h:6379", "redis", "redis:h", "re dis://h", "redis:",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		wrong(texts[i], SPOKE_ESYNTAX, 0,
		      "not the URL of a store; write e.g. redis://127.0.0.1:6379/0 or "
		      "redis+unix:///run/redis.sock");
}

TEST(tls_is_reported_as_unsupported)
{
	static const char *const texts[] = { "rediss://:pw@h", "redis+tls://h", "valkeys://h" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		wrong(texts[i], SPOKE_EUNSUPPORTED, 0,
		      "TLS to a store is not supported; use redis:// in a private network, a unix "
		      "socket, or a tunnel");
}

TEST(unknown_scheme_is_reported_with_the_known_ones)
{
	wrong("zookeeper://h", SPOKE_EUNSUPPORTED, 0,
	      "unknown scheme zookeeper; use redis, redis+unix or sentinel");
	wrong("sentinel+unix:/run/s", SPOKE_EUNSUPPORTED, 0,
	      "unknown scheme sentinel+unix; use redis, redis+unix or sentinel");
}

/* --- numbers */

TEST(database_must_be_a_number_in_range)
{
	static const char sentence[] = "a database is a number, e.g. redis://127.0.0.1:6379/0";
	static const char range[] = "the number of a database is at most 2147483647";

	wrong("redis://h/x", SPOKE_ESYNTAX, 11, sentence);
	wrong("redis://h/1/", SPOKE_ESYNTAX, 12, sentence);
	wrong("redis://h/-1", SPOKE_ESYNTAX, 12, sentence);
	wrong("redis://h/2147483648", SPOKE_ERANGE, 20, range);
	wrong("redis://h/99999999999999999999999", SPOKE_ERANGE, 33, range);
	wrong("sentinel://h/m/x", SPOKE_ESYNTAX, 14, sentence);
	wrong("sentinel://h/m/1/2", SPOKE_ESYNTAX, 14, sentence);
	wrong("redis+unix:/s?db=1x", SPOKE_ESYNTAX, 13, sentence);
}

TEST(ports_must_be_in_range)
{
	wrong("redis://h:0", SPOKE_ERANGE, 0, "port 0 is not valid for a store");
	wrong("redis://h:65536", SPOKE_ERANGE, 10, "a port is at most 65535");
}

TEST(long_names_are_refused)
{
	char long_text[257];
	char text[512];

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[256] = '\0';
	(void)snprintf(text, sizeof(text), "redis+unix:/%.107s", long_text);
	wrong(text, SPOKE_ETOOLARGE, 0, "the path of a unix socket has at most 107 bytes");
	(void)snprintf(text, sizeof(text), "sentinel://h/%s", long_text);
	wrong(text, SPOKE_ETOOLARGE, 12, "the name of a primary has at most 255 bytes");
	(void)snprintf(text, sizeof(text), "redis://:%s@h", long_text);
	wrong(text, SPOKE_ETOOLARGE, 6, "user and password have at most 255 bytes each");
	(void)snprintf(text, sizeof(text), "redis://%s@h", long_text);
	wrong(text, SPOKE_ETOOLARGE, 6, "user and password have at most 255 bytes each");
}

/* --- parameters */

TEST(parameters_set_keys_of_leases)
{
	struct spokei_store store = right("redis://h/1?lease.ttl=10s&lease.wait=500&lease.guard=0");
	struct spokei_key_values values;

	spokei_keys_preset(&values);
	spokei_store_keys(&store, &values);
	assert_int_equal(values.of[SPOKEI_KEY_LEASE_TTL], 10 * SECOND);
	assert_int_equal(values.of[SPOKEI_KEY_LEASE_WAIT], SECOND / 2);
	assert_int_equal(values.of[SPOKEI_KEY_LEASE_GUARD], 0);
	assert_int_equal(values.from[SPOKEI_KEY_LEASE_GUARD], SPOKEI_FROM_URL);
	assert_int_equal(values.of[SPOKEI_KEY_LEASE_MAX], 100000);
	assert_int_equal(values.from[SPOKEI_KEY_LEASE_MAX], SPOKEI_FROM_DEFAULT);
	drop(&store);
}

TEST(unknown_parameter_suggests_the_nearest_one)
{
	wrong("redis://h?lease.tll=1", SPOKE_EINVAL, 9,
	      "lease.tll: no such option; did you mean lease.ttl?");
	wrong("redis://h?guard=1s", SPOKE_EINVAL, 9,
	      "guard: no such option; did you mean lease.guard?");
	wrong("redis+unix:/s?database=1", SPOKE_EINVAL, 13,
	      "database: no such option; did you mean db?");
	wrong("sentinel://a,b/m?x=1", SPOKE_EINVAL, 16, "x: no such option");
	wrong("redis://h?lease.store=x", SPOKE_EINVAL, 9, "lease.store: no such option");
}

TEST(parameter_with_invalid_value_is_refused)
{
	wrong("redis://h?lease.ttl=5x", SPOKE_ESYNTAX, 9,
	      "lease.ttl=5x: not a duration; write a number and a unit, e.g. 250ms or 1.5s");
	wrong("redis://h?lease.ttl=99ms", SPOKE_ERANGE, 9,
	      "lease.ttl=99ms: too small; it goes from 100ms to 24h");
	wrong("redis://h?lease.max=0", SPOKE_ERANGE, 9,
	      "lease.max=0: too small; it goes from 1 to 10000000");
	wrong("redis://h?db=1", SPOKE_EINVAL, 9,
	      "db: only for a unix socket; write the database as in redis://127.0.0.1:6379/0");
}

TEST(secrets_in_parameters_are_refused_unquoted)
{
	static const char *const keys[] = { "password", "lease.password", "lease.user", "passwd",
					    "lease.sentinel.password" };
	char text[128];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		(void)snprintf(text, sizeof(text), "redis://h?%s=geheim", keys[i]);
		wrong(text, SPOKE_EINVAL, 9,
		      "user and password are no parameters; write redis://USER:PASSWORD@HOST, or "
		      "set them in the section [lease] or in the options");
	}
}

TEST(parsing_without_memory_frees_everything)
{
	static const char text[] = "sentinel://u:p@a,b,c/m/1?lease.ttl=1s";
	struct spokei_store store = { .db = 77 };
	struct spoke_url_error why;
	unsigned failed = 0;
	int error;

	do {
		memory_init(&memory);
		memory.fail_at = ++failed;
		error = spokei_store_parse(&memory.env, text, sizeof(text) - 1, &store, &why);
		if (error) {
			assert_int_equal(error, SPOKE_ENOMEM);
			assert_int_equal(memory.bytes, 0);
			assert_int_equal(store.db, 77);
		}
	} while (error);
	assert_int_equal(failed, 5);
	drop(&store);
}
