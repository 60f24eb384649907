/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases in a cluster of Redis: a primary, its replica, and a sentinel that promotes the replica
 * when the primary is dead. Writes that the replica does not have are lost then. Row 22 of the
 * leases in FAULTS.md.
 */
#include "tests/integration/redisrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "reports"
#define TTL_NS (5 * SECOND)

static struct redisserver primary;
static struct redisserver replica;
static struct redisserver sentinel;

/* --- the cluster */

/* Asks one server of the cluster. */
#define asked_at(server, ...) stranger_tries((server)->path, REDIS_WORDS(__VA_ARGS__))

static bool is_in_sync(const struct redisserver *server)
{
	return strstr(asked_at(server, "INFO", "replication"), "master_link_status:up") != NULL;
}

static void make_cluster(void)
{
	uint16_t port = redisserver_free_port();
	char settings[128];

	redisserver_make(&primary, port, "repl-diskless-sync-delay 0\n");
	(void)snprintf(settings, sizeof(settings),
		       "replicaof 127.0.0.1 %u\nrepl-diskless-sync-delay 0\n", (unsigned)port);
	redisserver_make(&replica, redisserver_free_port(), settings);
	redisrig_until(is_in_sync(&replica));
	redisserver_make_sentinel(&sentinel, redisserver_free_port(), port);
	redisrig_until(strstr(asked_at(&sentinel, "SENTINEL", "replicas", "main"),
			      "master-link-status ok"));
}

/* Leases that follow the sentinel. */
static void open_by_sentinel(void)
{
	char url[64];

	(void)snprintf(url, sizeof(url), "sentinel://127.0.0.1:%u/main", (unsigned)sentinel.port);
	redisrig_open(&(struct spoke_leases_options){ .store = url, .ttl_ns = TTL_NS });
}

/* Freezes the replica, and cuts its connection, so that nothing waits for it in a socket. */
static void cut_off_replica(void)
{
	redisserver_freeze(&replica);
	assert_string_equal(asked_at(&primary, "CLIENT", "KILL", "TYPE", "replica"), "1");
}

/* Kills the primary, and promotes the replica, which lacks all that was written since its cut. */
static void fail_over(void)
{
	redisserver_kill(&primary);
	redisserver_thaw(&replica);
	redisserver_promote(&sentinel, &replica);
}

/* Returns the fence number that was given last under the name, at a server. */
static int64_t last_fence(const struct redisserver *server)
{
	char key[REDISPEER_NAME];
	const char *text;

	redispeer_token(NAME, key);
	text = asked_at(server, "GET", key);
	return strcmp(text, "(nil)") == 0 ? 0 : strtoll(text, NULL, 10);
}

static bool is_free(const struct redisserver *server)
{
	return strcmp(asked_at(server, "EXISTS", NAME), "0") == 0;
}

/* --- rows */

NEEDS(redisserver_absent);
GROUP(redisrig_set_up_all, redisrig_tear_down_all);

/* What Redis loses: a lease is granted twice, with the same fence number. */
TEST(lease_22_failover_grants_it_twice)
{
	struct spoke_leases *leases;
	struct asked *first;
	struct asked *second;
	char url[64];

	make_cluster();
	open_by_sentinel();
	leases = redisrig.leases;
	assert_int_equal(redisrig_release(redisrig_hold(NAME)), SPOKE_OK);
	redisrig_until(last_fence(&replica) == 1 && is_free(&replica));
	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u", (unsigned)primary.port);
	redisrig_open(&(struct spoke_leases_options){ .store = url, .ttl_ns = LONG_NS });
	cut_off_replica();
	first = redisrig_hold(NAME);
	fail_over();
	second = redisrig_ask_at(leases, NAME,
				 &(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER,
								.ttl_ns = LONG_NS });
	assert_int_equal(redisrig_answer(second), SPOKE_OK);
	assert_true(redisrig_left(first) > 0);
	assert_true(redisrig_left(second) > 0);
	assert_int_equal(second->fence, first->fence);
	assert_int_equal(redisrig_release(second), SPOKE_OK);
	spoke_leases_free(leases);
}

static int tear_down(void **state)
{
	int error = redisrig_tear_down(state);

	redisserver_unmake(&sentinel);
	redisserver_unmake(&replica);
	redisserver_unmake(&primary);
	return error;
}

FIXTURE(redisrig_set_up, tear_down);
