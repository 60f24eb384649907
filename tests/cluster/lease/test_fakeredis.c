/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis in memory: replies byte by byte, as Redis 7.0 gives them. */
#include "tests/cluster/lease/fakeredisrig.h"
#include "tests/support/test.h"

#include <stdio.h>

#include "cluster/lease/script.h"

#define rig fakeredisrig
#define HOLDER "285475da-9152-4c83-822a-67ee2f116a79:52"

/* Runs a script of Redisson, keys and arguments in `words`. */
static void assert_script(enum fakeredis_script kind, const char *words, const char *expected)
{
	char text[1024];
	size_t len = (size_t)snprintf(text, sizeof(text), "EVAL ");

	for (const char *at = fakeredis_texts[kind]; *at; at++)
		text[len++] = (char)(*at == ' ' ? '~' : *at);
	(void)snprintf(text + len, sizeof(text) - len, " %s", words);
	fakeredisrig_answer(text, expected);
}

/* --- commands */

FIXTURE(fakeredisrig_set_up, fakeredisrig_tear_down);

TEST(small_commands_are_answered_as_by_redis)
{
	fakeredisrig_answer("PING", "+PONG\r\n");
	fakeredisrig_answer("ping x", "$1\r\nx\r\n");
	fakeredisrig_answer("CLIENT ID", ":1\r\n");
	fakeredisrig_answer("CLIENT SETNAME spoke", "+OK\r\n");
	fakeredisrig_answer("SELECT 3", "+OK\r\n");
	fakeredisrig_answer("SELECT 16", "-ERR DB index is out of range\r\n");
	fakeredisrig_answer("CONFIG GET maxmemory-policy",
			    "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n");
	fakeredisrig_answer("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
	fakeredisrig_answer("GET x", "$-1\r\n");
	fakeredisrig_answer("GET", "-ERR wrong number of arguments for 'get' command\r\n");
	fakeredisrig_answer("FOO x", "-ERR unknown command 'foo', with args beginning with: \r\n");
	fakeredisrig_answer("EVALSHA 0123 0", "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

TEST(bytes_that_are_no_command_end_the_connection)
{
	fakeredisrig_put(&rig.one, "PING\r\n", 6);
	fakeredisrig_got(&rig.one, "-ERR Protocol error: not an array of bulk strings\r\nEND");
	assert_int_equal(rig.server.protocol_errors, 1);
}

TEST(commands_in_pieces_are_put_together)
{
	static const char bytes[] = "*2\r\n$4\r\nPING\r\n$2\r\nab\r\n*1\r\n$4\r\nPING\r\n";

	for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
		fakeredisrig_put(&rig.one, bytes + i, 1);
		fakeredisrig_pass(0);
	}
	fakeredisrig_got(&rig.one, "$2\r\nab\r\n+PONG\r\n");
}

TEST(wrong_password_is_refused)
{
	rig.server.password = "secret";
	fakeredisrig_answer("PING", "-NOAUTH Authentication required.\r\n");
	fakeredisrig_answer("AUTH wrong",
			    "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	fakeredisrig_answer("AUTH secret", "+OK\r\n");
	fakeredisrig_answer("PING", "+PONG\r\n");
}

TEST(forbidden_command_is_refused)
{
	rig.server.forbidden[0] = "client|kill";
	fakeredisrig_answer(
		"CLIENT KILL ID 2",
		"-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
	fakeredisrig_answer("CLIENT ID", ":1\r\n");
}

TEST(killed_client_is_closed)
{
	fakeredisrig_answer("CLIENT KILL ID 2 ADDR 127.0.0.1:1", ":0\r\n");
	fakeredisrig_answer("CLIENT KILL ID", "-ERR syntax error\r\n");
	fakeredisrig_answer("CLIENT KILL ID 2", ":1\r\n");
	fakeredisrig_got(&rig.two, "END");
	fakeredisrig_answer("CLIENT KILL ID 2", ":0\r\n");
}

TEST(phase_refuses_all_but_some_commands)
{
	rig.server.phase = FAKEREDIS_LOADING;
	fakeredisrig_answer("PING", "-LOADING Redis is loading the dataset in memory\r\n");
	fakeredisrig_answer("CLIENT ID", ":1\r\n");
	rig.server.phase = FAKEREDIS_BUSY;
	fakeredisrig_answer("CLIENT ID",
			    "-BUSY Redis is busy running a script. You can only call SCRIPT "
			    "KILL or SHUTDOWN NOSAVE.\r\n");
	rig.server.phase = FAKEREDIS_NORMAL;
	fakeredisrig_answer("PING", "+PONG\r\n");
}

/* --- locks */

TEST(key_lives_through_its_time)
{
	struct fakeredis_lock lock;

	fakeredis_put_lock(&rig.server, "n", HOLDER, 1, 100);
	fakeredisrig_pass(100 * MS);
	assert_true(fakeredis_lock(&rig.server, "n", &lock));
	assert_int_equal(lock.ttl_ms, 0);
	fakeredisrig_pass(MS);
	assert_false(fakeredis_lock(&rig.server, "n", &lock));
	fakeredisrig_answer("PTTL n", ":-2\r\n");
	assert_int_equal(rig.server.key_count, 0);
}

TEST(clock_of_the_server_may_step)
{
	struct fakeredis_lock lock;

	fakeredis_put_lock(&rig.server, "n", HOLDER, 1, 1000);
	rig.server.clock_ms += 900;
	assert_true(fakeredis_lock(&rig.server, "n", &lock));
	assert_int_equal(lock.ttl_ms, 100);
	rig.server.clock_ms += 101;
	assert_false(fakeredis_lock(&rig.server, "n", &lock));
}

TEST(scripts_of_redisson_count_and_release)
{
	struct fakeredis_lock lock;

	assert_script(FAKEREDIS_REDISSON_FENCED, "2 n redisson_lock_token:{n} 1000 a:1",
		      "*2\r\n:-1\r\n:1\r\n");
	assert_script(FAKEREDIS_REDISSON_ACQUIRE, "1 n 2000 a:1", "$-1\r\n");
	assert_true(fakeredis_lock(&rig.server, "n", &lock));
	assert_string_equal(lock.holder, "a:1");
	assert_int_equal(lock.count, 2);
	assert_int_equal(fakeredis_token(&rig.server, "n"), 1);
	fakeredisrig_pass(500 * MS);
	assert_script(FAKEREDIS_REDISSON_ACQUIRE, "1 n 2000 b:1", ":1500\r\n");
	fakeredisrig_send(&rig.two, "SUBSCRIBE redisson_lock__channel:{n}");
	fakeredisrig_got(&rig.two,
			 "*3\r\n$9\r\nsubscribe\r\n$26\r\nredisson_lock__channel:{n}\r\n:1\r\n");
	assert_script(FAKEREDIS_REDISSON_RELEASE, "2 n redisson_lock__channel:{n} 0 1000 a:1",
		      ":0\r\n");
	assert_script(FAKEREDIS_REDISSON_RELEASE, "2 n redisson_lock__channel:{n} 0 1000 b:1",
		      "$-1\r\n");
	fakeredisrig_got(&rig.two, "");
	assert_script(FAKEREDIS_REDISSON_RELEASE, "2 n redisson_lock__channel:{n} 0 1000 a:1",
		      ":1\r\n");
	fakeredisrig_got(&rig.two,
			 "*3\r\n$7\r\nmessage\r\n$26\r\nredisson_lock__channel:{n}\r\n$1\r\n0\r\n");
	assert_false(fakeredis_lock(&rig.server, "n", &lock));
}

TEST(script_of_another_type_or_without_memory_fails)
{
	fakeredis_put(&rig.server, "n", "text");
	fakeredisrig_answer("HGETALL n",
			    "-WRONGTYPE Operation against a key holding the wrong kind of "
			    "value\r\n");
	fakeredis_know(&rig.server, FAKEREDIS_ACQUIRE, "acquire");
	fakeredisrig_answer("SCRIPT LOAD acquire",
			    "$40\r\n657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43\r\n");
	fakeredisrig_answer(
		"EVALSHA 657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43 2 n t 1000 a:1",
		"-WRONGTYPE Operation against a key holding the wrong kind of value script: "
		"657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43, on @user_script:1.\r\n");
	rig.server.phase = FAKEREDIS_OOM;
	fakeredisrig_answer("EVALSHA 657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43 2 m t 1000 a:1",
			    "-OOM command not allowed when used memory > 'maxmemory'. script: "
			    "657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43, on @user_script:1.\r\n");
	rig.server.phase = FAKEREDIS_NORMAL;
	fakeredisrig_answer("EVALSHA 657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43 2 m t 1000 a:1",
			    "*2\r\n:0\r\n:1\r\n");
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE), 3);
	fakeredisrig_answer("SCRIPT FLUSH", "+OK\r\n");
	fakeredisrig_answer("EVALSHA 657d3c7714fb8d9f2df8c78e78ad719e4d4dbe43 2 m t 1000 a:1",
			    "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

/* A changed text changes what runs in C, in tests/support/redis/scripts.c, and then this. */
TEST(texts_of_the_product_are_those_that_run_in_c)
{
	static const char *const sha1[SPOKEI_SCRIPTS] = {
		[SPOKEI_SCRIPT_ACQUIRE] = "ded303e81df9c711db7823b8f10441f167b64579",
		[SPOKEI_SCRIPT_RENEW] = "34877be206bcd0c14a3395b55e27a53830c341c0",
		[SPOKEI_SCRIPT_RELEASE] = "f05069c5f00844dd047a5d9e9f563f217b2aef3a",
	};

	for (unsigned i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++)
		assert_string_equal(rig.server.scripts[i - SPOKEI_SCRIPT_ACQUIRE].sha1, sha1[i]);
}

TEST(scan_finds_each_key_of_its_pattern)
{
	fakeredis_put_lock(&rig.server, "report-1", HOLDER, 1, 0);
	fakeredis_put_lock(&rig.server, "other", HOLDER, 1, 0);
	fakeredis_put(&rig.server, "report-2", "text");
	fakeredisrig_answer("SCAN 0 MATCH re[a-p]ort-? TYPE hash COUNT 1000",
			    "*2\r\n$1\r\n0\r\n*1\r\n$8\r\nreport-1\r\n");
	fakeredisrig_answer("HGETALL other", "*2\r\n$39\r\n" HOLDER "\r\n$1\r\n1\r\n");
	fakeredisrig_answer("DEL other other", ":1\r\n");
}

/* --- messages */

TEST(subscriber_may_only_listen)
{
	fakeredisrig_answer("SUBSCRIBE a b", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
					     "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n");
	fakeredisrig_answer(
		"GET x",
		"-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
		"QUIT / RESET are allowed in this context\r\n");
	fakeredisrig_answer("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
	fakeredisrig_answer("UNSUBSCRIBE a", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n");
	fakeredisrig_send(&rig.two, "PUBLISH a x");
	fakeredisrig_got(&rig.two, ":0\r\n");
	assert_int_equal(fakeredis_publish(&rig.server, "b", "y"), 1);
	fakeredisrig_got(&rig.one, "*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$1\r\ny\r\n");
	fakeredisrig_answer("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n");
	fakeredisrig_answer("PING", "+PONG\r\n");
}
