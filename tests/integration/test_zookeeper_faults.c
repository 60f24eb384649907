/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ZooKeeper registry with a real server that is killed and restarted, ends the session, and
 * whose nodes are changed by another client; also start and end of the registry.
 */
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- changes by another client */

NEEDS(zooserver_absent);
GROUP(zoorig_set_up_all, zoorig_tear_down_all);
FIXTURE(zoorig_set_up, zoorig_tear_down);

TEST(removed_node_is_reported_as_lost)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	assert_int_equal(zoostranger_write(NODE_A, "x"), ZOK);
	assert_int_equal(zoostranger_write(NODE_A, "y"), ZOK);
	assert_int_equal(zoostranger_delete(NODE_A), ZOK);
	zoorig_until(zoorig_lost(number) != 1);
	assert_int_equal(zoorig_lost(number), SPOKE_ENOENT);
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A));
	zoostranger_clears("/dubbo");
	zoorig_until(zoorig_lost(number) == SPOKE_ENOENT);
}

TEST(killed_and_restarted_server_keeps_all_nodes)
{
	uint64_t entry;
	uint64_t listing;
	size_t heard;
	int64_t session;

	zoorig_open("");
	entry = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(entry), 0);
	listing = zoorig_subscribe(SERVICE);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A)) == 0);
	session = zoorig_session();
	heard = zoorig_count(NOTE_LIST, listing);
	zooserver_kill();
	zoorig_until(zoorig_said("connection lost"));
	zooserver_revive();
	zoorig_until(zoorig_count(NOTE_LIST, listing) > heard);
	assert_string_equal(zoorig_list(listing), LIST(URL_A));
	assert_int_equal(zoorig_session(), session);
	assert_int_equal(zoostranger_owner_of(NODE_A), session);
	assert_int_equal(zoostranger_create(NODE_B, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A "\n" URL_B)) == 0);
	assert_int_equal(zoorig_lost(listing), 1);
	assert_int_equal(zoorig_lost(entry), 1);
	assert_int_equal(zoostranger_delete(NODE_A), ZOK);
	zoorig_until(zoorig_lost(entry) == SPOKE_ENOENT);
}

TEST(expired_session_is_reported_and_replaced)
{
	uint64_t entry;
	uint64_t listing;
	int64_t session;

	zoorig_open("");
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), 0);
	assert_int_equal(zoorig_end(listing), 0);
	session = zoorig_session();
	zoostranger_ends_session();
	zoorig_until(zoorig_lost(entry) != 1);
	assert_int_equal(zoorig_lost(entry), SPOKE_ELOST);
	assert_int_equal(zoorig_lost(listing), SPOKE_ELOST);
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), 0);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A)) == 0);
	assert_true(zoorig_session() != session);
	assert_int_equal(zoostranger_owner_of(NODE_A), zoorig_session());
	assert_int_equal(zoorig_lost(entry), 1);
	zoorig_until(__atomic_load_n(&rig.closed, __ATOMIC_SEQ_CST) == 1);
	assert_true(__atomic_load_n(&rig.closed_by, __ATOMIC_SEQ_CST) !=
		    spoke_host_env()->threads->self(NULL));
}

/* --- unreachable server */

TEST(without_a_server_all_ends_as_unavailable)
{
	uint64_t entry;
	uint64_t listing;
	uint64_t end;

	assert_int_equal(zoorig_open_url("zookeeper://127.0.0.1:1?backup=[::1]:1"), 0);
	entry = zoorig_publish(SERVICE, URL_B);
	end = zoorig_unwant(entry);
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), SPOKE_EUNAVAILABLE);
	assert_int_equal(zoorig_end(listing), SPOKE_EUNAVAILABLE);
	assert_int_equal(zoorig_end(end), 0); /* nothing was requested yet */
	assert_true(zoorig_said("registry zookeeper 127.0.0.1:1: no server has answered for 2 s"));
}

TEST(requests_in_flight_end_when_the_server_dies)
{
	uint64_t numbers[20];

	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	/* A frozen server cannot answer before it is killed. */
	zooserver_freeze();
	for (unsigned i = 0; i < 20; i++)
		numbers[i] = i % 2 ? zoorig_publish(SERVICE, URL_A) : zoorig_subscribe(SERVICE);
	zooserver_kill();
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(zoorig_end(numbers[i]), SPOKE_ELOST);
	zooserver_revive();
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A "\n" LEAF_B));
}

/* The server has created the node, but the next request failed. The test is repeated if that
 * request was faster than the kill. */
static uint64_t fail_to_publish(const char *url, const char *node)
{
	for (unsigned tries = 0; tries < 20; tries++) {
		uint64_t number = zoorig_publish(SERVICE, url);
		int64_t owner;
		int error;

		while (zoostranger_owner(node, &owner) != ZOK)
			continue;
		zooserver_kill();
		error = zoorig_end(number);
		if (error == SPOKE_ELOST)
			return number;
		assert_int_equal(error, 0);
		zooserver_revive();
		assert_int_equal(zoorig_end(zoorig_unwant(number)), 0);
	}
	fail_msg("the node was always published before the server could be killed");
	return 0;
}

TEST(uncertain_node_is_removed_unless_it_is_wanted)
{
	uint64_t number;

	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	number = fail_to_publish(URL_A, NODE_A);
	zooserver_revive();
	assert_int_equal(zoorig_end(zoorig_unwant(number)), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_B));
	(void)fail_to_publish(URL_A, NODE_A);
	zooserver_revive();
	number = zoorig_publish(SERVICE, URL_A); /* there is no connection before the next turn */
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A "\n" LEAF_B));
	assert_int_equal(zoorig_lost(number), 1);
}

/* The server may reject requests just after its start. */
TEST(mute_server_is_retried)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address at;
	char text[64];
	char url[96];
	int listener;
	int fds[2] = { -1, -1 };

	assert_int_equal(env->net->parse(env->ctx, "127.0.0.1:0", &at), 0);
	assert_int_equal(env->net->listen(env->ctx, &at, 8, &listener), 0);
	assert_int_equal(env->net->local(env->ctx, listener, &at), 0);
	env->net->print(env->ctx, &at, text, sizeof(text));
	(void)snprintf(url, sizeof(url), "zookeeper://%s?session=1h", text);
	assert_int_equal(zoorig_open_url(url), 0);
	for (unsigned i = 0; i < 2; i++)
		zoorig_until(env->net->accept(env->ctx, listener, &fds[i], &at) == 0);
	zoorig_close();
	env->net->close(env->ctx, fds[0]);
	env->net->close(env->ctx, fds[1]);
	env->net->close(env->ctx, listener);
}

/* --- addresses of the servers */

TEST(server_names_are_resolved_and_all_servers_are_tried)
{
	char url[128];

	(void)snprintf(url, sizeof(url),
		       "zookeeper://127.0.0.1:1?backup=nowhere.invalid,localhost:%u",
		       (unsigned)zooserver_port());
	assert_int_equal(zoorig_open_url(url), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_true(rig.faulty.calls[SPOKEI_FAULTS_RESOLVE] >= 2);
}

TEST(unresolvable_names_are_retried)
{
	char url[128];

	(void)snprintf(url, sizeof(url), "zookeeper://localhost:%u", (unsigned)zooserver_port());
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_RESOLVE, 1, -ENOENT, false);
	assert_int_equal(zoorig_open_url(url), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_true(zoorig_said("cannot resolve any server name"));
}

/* --- end of the registry */

TEST(a_session_is_closed_on_another_thread)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	(void)zoorig_publish(SERVICE, URL_B);
	(void)zoorig_subscribe(SERVICE);
	zoorig_close();
	zoorig_until(__atomic_load_n(&rig.closed, __ATOMIC_SEQ_CST) == 1);
	assert_true(rig.closed_by != spoke_host_env()->threads->self(NULL));
	zoorig_until(zoostranger_count(FOLDER) == 0);
}

static int no_offload(void *loop, struct spoke_work *work)
{
	(void)loop;
	(void)work;
	return -EAGAIN;
}

TEST(without_a_thread_the_connection_is_cut)
{
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	rig.faulty.loop.offload = no_offload;
	zoorig_close();
	assert_int_equal(rig.closed, 1);
	assert_int_equal(rig.closed_by, spoke_host_env()->threads->self(NULL));
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A));
}

TEST(an_engine_that_ends_takes_it_along)
{
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	zoorig_close();
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	assert_int_equal(rig.closed, 1);
	assert_int_equal(rig.faulty.blocks, 0);
}

TEST(urls_that_make_no_sense_are_refused)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} rows[] = {
		{ "zookeeper://me:secret@h", SPOKE_EUNSUPPORTED, "users and passwords" },
		{ "zookeeper://h?backup=i:0", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i,:9", SPOKE_EINVAL, "invalid host name" },
		{ "zookeeper://h?session=1y", SPOKE_ESYNTAX, "session" },
		{ "zookeeper://h?session=1", SPOKE_ERANGE, "session" },
		{ "zookeeper://h?group=a//b", SPOKE_EINVAL, "invalid path" },
		{ "zookeeper://h/..", SPOKE_EINVAL, "invalid path" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(zoorig_open_url(rows[i].url), rows[i].error);
		assert_true(zoorig_said(rows[i].words));
	}
}

TEST(any_memory_may_be_missing)
{
	uint64_t failed = 1;
	uint64_t nth = 1;

	for (; failed; nth++) {
		uint64_t before = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		if (zoorig_try_open() == 0) {
			uint64_t entry = zoorig_publish(SERVICE, URL_A);
			uint64_t listing = zoorig_subscribe(SERVICE);

			zoorig_until(zoorig_has_ended(entry) && zoorig_has_ended(listing));
			(void)zoorig_end(zoorig_unwant(entry));
			spokei_faults_heal(&rig.faulty);
			zoorig_close();
		}
		spokei_faults_heal(&rig.faulty);
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY] - before;
		zoorig_forget();
	}
	assert_true(nth > 10);
}
