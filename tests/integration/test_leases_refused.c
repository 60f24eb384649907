/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases whose Redis refuses commands for a time, or for good, or sends bytes that are no replies;
 * and clocks that jump. Rows 23 to 25 of the leases in FAULTS.md.
 */
#include "tests/integration/redisrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAME "reports"
#define TTL_NS (2 * SECOND)
#define PAUSE_LEAST_NS (20 * MS) /* much shorter than any pause between tries */
#define TRIES_EXTRA 8u
#define MEMORY_MAX (256u << 10)

/* --- row 23: refusals that pass */

/* Lets an ask wait while the server refuses. Every try is followed by a pause. */
static struct asked *ask_while_refused(const char *tried)
{
	uint64_t begun_ns = rig_now();
	uint64_t until_ns = begun_ns + 400 * MS;
	unsigned accepted = redisrelay_accepted();
	struct asked *asked;

	redisrelay_forget();
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until(rig_now() >= until_ns && redisrelay_seen(tried) > 0);
	assert_int_equal(asked->told, 0);
	assert_true(redisrelay_seen("EVALSHA") + redisrelay_accepted() - accepted <=
		    TRIES_EXTRA + (rig_now() - begun_ns) / PAUSE_LEAST_NS);
	assert_true(redisrig.log_lines < 20);
	return asked;
}

static void assert_gets_it(struct asked *asked)
{
	if (redisrig_answer(asked))
		fail_msg("%s", asked->text);
	assert_string_equal(stranger("HVALS", asked->name), "[1]");
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(stranger_number("EXISTS", asked->name), 0);
}

NEEDS(redisserver_absent);
GROUP(redisrig_set_up_all, redisrig_tear_down_all);
FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(lease_23_forgotten_scripts_are_loaded_again)
{
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	asked = redisrig_hold(NAME);
	assert_string_equal(stranger("SCRIPT", "FLUSH", "SYNC"), "OK");
	redisrig_until_renewed(asked);
	assert_string_equal(stranger("SCRIPT", "FLUSH", "SYNC"), "OK");
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_string_equal(stranger("SCRIPT", "FLUSH", "SYNC"), "OK");
	assert_gets_it(redisrig_ask(NAME, SPOKE_LEASE_FOREVER));
}

TEST(lease_23_ask_waits_for_a_busy_script)
{
	struct redisclient busy;
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	assert_string_equal(stranger("CONFIG", "SET", "busy-reply-threshold", "10"), "OK");
	redisclient_open(&busy, redis.path);
	redisclient_send(&busy, REDIS_WORDS("EVAL", "while true do end", "0"));
	while (strncmp(stranger("PING"), "-BUSY", 5) != 0)
		continue;
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("SCRIPT", "KILL"), "OK");
	assert_gets_it(asked);
	redisclient_close(&busy);
}

TEST(lease_23_ask_waits_while_the_server_is_a_replica)
{
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	assert_string_equal(stranger("REPLICAOF", "127.0.0.1", "1"), "OK");
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("REPLICAOF", "NO", "ONE"), "OK");
	assert_gets_it(asked);
}

TEST(lease_23_ask_waits_for_memory_of_the_server)
{
	struct asked *asked;

	redisrig_open_ttl(TTL_NS);
	assert_string_equal(stranger("CONFIG", "SET", "maxmemory", "1kb"), "OK");
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("CONFIG", "SET", "maxmemory", "0"), "OK");
	assert_gets_it(asked);
}

/* A server that cannot save refuses to write. */
TEST(lease_23_ask_waits_for_a_server_that_cannot_save)
{
	struct asked *asked;
	char path[128];

	redisrig_open_ttl(TTL_NS);
	(void)snprintf(path, sizeof(path), "%s/dump.rdb", redis.folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_string_equal(stranger("CONFIG", "SET", "save", "3600 1"), "OK");
	(void)stranger("BGSAVE");
	while (!strstr(stranger("INFO", "persistence"), "rdb_last_bgsave_status:err"))
		rig_sleep(MS);
	asked = ask_while_refused("EVALSHA");
	assert_string_equal(stranger("CONFIG", "SET", "save", ""), "OK");
	assert_gets_it(asked);
	assert_int_equal(remove(path), 0);
}

TEST(lease_23_ask_waits_while_the_server_loads)
{
	struct redisserver loader;
	struct asked *asked;
	char url[128];

	redisserver_make(&loader, 0, "");
	stranger_goes_to(loader.path);
	assert_string_equal(stranger("CONFIG", "SET", "rdbcompression", "no"), "OK");
	assert_string_equal(stranger("DEBUG", "POPULATE", "40", "key", "2000"), "OK");
	assert_string_equal(stranger("SAVE"), "OK");
	redisserver_kill(&loader);
	redisserver_add(&loader,
			"key-load-delay 20000\nloading-process-events-interval-bytes 1024\n");
	redisserver_revive(&loader);
	redisserver_wait(&loader);
	(void)snprintf(url, sizeof(url), "redis+unix://%s", loader.path);
	assert_memory_equal(stranger("PING"), "-LOADING", 8);
	redisrig_open(&(struct spoke_leases_options){ .store = url, .ttl_ns = TTL_NS });
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	assert_int_equal(redisrig_answer(asked), SPOKE_OK);
	assert_string_equal(stranger("HVALS", NAME), "[1]");
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_true(redisrig.log_lines < 20);
	redisserver_unmake(&loader);
	stranger_goes_to(redis.path);
}

/* --- row 23: users and passwords */

TEST(lease_23_wrong_password_is_retried_with_pauses)
{
	struct asked *asked;

	assert_string_equal(stranger("CONFIG", "SET", "requirepass", "open-sesame"), "OK");
	redisrig_open(&(struct spoke_leases_options){ .password = "open-barley" });
	asked = ask_while_refused("AUTH");
	assert_true(redisrig_logged("WRONGPASS") > 0);
	assert_int_equal(redisrig_logged("open-barley"), 0);
	assert_string_equal(stranger("CONFIG", "SET", "requirepass", "open-barley"), "OK");
	assert_gets_it(asked);
	assert_string_equal(stranger("CONFIG", "SET", "requirepass", ""), "OK");
}

TEST(lease_23_missing_password_is_logged)
{
	struct asked *asked;

	assert_string_equal(stranger("CONFIG", "SET", "requirepass", "open-sesame"), "OK");
	redisrig_open(&(struct spoke_leases_options){ .ttl_ns = TTL_NS });
	asked = ask_while_refused("*");
	assert_true(redisrig_logged("NOAUTH") > 0);
	assert_string_equal(stranger("CONFIG", "SET", "requirepass", ""), "OK");
	assert_gets_it(asked);
}

/* The rights that cluster/LEASES.md names are enough. */
TEST(lease_23_user_with_few_rights_holds_leases)
{
	struct asked *asked;
	struct asked *waiter;

	assert_string_equal(stranger("ACL", "SETUSER", "keeper", "on", ">secret", "resetkeys", "~*",
				     "resetchannels", "&redisson_lock__channel:*", "-@all", "+ping",
				     "+role", "+script|load", "+evalsha", "+subscribe",
				     "+unsubscribe", "+publish", "+hexists", "+hset", "+hlen",
				     "+hgetall", "+exists", "+incr", "+get", "+del", "+type",
				     "+pexpire", "+pttl"),
			    "OK");
	redisrig_open(&(struct spoke_leases_options){
		.user = "keeper", .password = "secret", .ttl_ns = TTL_NS });
	asked = redisrig_hold(NAME);
	waiter = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	redisrig_until_renewed(asked);
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
	assert_int_equal(redisrig_answer(waiter), SPOKE_OK);
	assert_int_equal(redisrig_release(waiter), SPOKE_OK);
	assert_true(redisrig.log_lines < 4);
	assert_int_equal(stranger_number("ACL", "DELUSER", "keeper"), 1);
}

TEST(lease_23_user_without_rights_is_told_why)
{
	struct asked *asked;

	assert_string_equal(stranger("ACL", "SETUSER", "reader", "on", ">secret", "~mine:*",
				     "~redisson_lock_*:{mine:*", "&*", "+@all"),
			    "OK");
	redisrig_open(&(struct spoke_leases_options){
		.user = "reader", .password = "secret", .ttl_ns = TTL_NS });
	asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
	assert_int_equal(redisrig_answer(asked), SPOKE_ESTORE);
	assert_non_null(strstr(asked->text, "NOPERM"));
	assert_gets_it(redisrig_ask("mine:" NAME, SPOKE_LEASE_FOREVER));
	assert_int_equal(stranger_number("ACL", "DELUSER", "reader"), 1);
}

/* --- row 24: bytes that are no replies */

struct hostile {
	const char *head; /* sent once */
	char filling;     /* then this, for as long as the client reads; 0: none */
};

static const struct hostile hostile[] = {
	{ "$9223372036854775807\r\n", 'x' },
	{ "$18446744073709551617\r\nx\r\n", 0 },
	{ "$-2\r\n", 0 },
	{ "*9223372036854775807\r\n", ':' },
	{ "*1048576\r\n", '*' },
	{ "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 0 },
	{ ":99999999999999999999\r\n", 0 },
	{ ":", '1' },
	{ "+", 'x' },
	{ "-", 'x' },
	{ "$5\r\nabcdefg\r\n", 0 },
	{ ">3\r\n$10\r\ninvalidate\r\n*0\r\n:1\r\n", 0 },
	{ "%1\r\n+a\r\n:1\r\n", 0 },
	{ "HTTP/1.1 400 Bad Request\r\n\r\n", 0 },
	{ "\r\n\r\n", 0 },
	{ "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n", 0 },
	{ "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", 0 },
	{ "*2\r\n+a\r\n+b\r\n", 0 },
	{ "$-1\r\n$-1\r\n", 0 },
};

/* Sends the bytes in place of replies, or without a question, until the connection is given up. */
static void inject(const struct hostile *row)
{
	unsigned accepted = redisrelay_accepted();
	size_t size = 16384;
	char filling[16384];

	memset(filling, row->filling, size);
	redisrelay_inject(row->head, strlen(row->head));
	for (unsigned turns = 0; redisrelay_accepted() == accepted; turns++) {
		assert_true(turns < 20000);
		if (row->filling)
			redisrelay_inject(filling, size);
		redisrig_turn();
	}
}

/* Each row has leases of its own, so that no pause has grown. */
TEST(lease_24_bytes_without_a_question_end_the_connection)
{
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		unsigned lines = redisrig.log_lines;
		struct asked *asked;

		redisrig_open_ttl(LONG_NS);
		asked = redisrig_hold(NAME);
		redisrig_settle();
		redisrig.faulty.bytes_peak = redisrig.faulty.bytes;
		inject(&hostile[i]);
		redisrig_settle();
		assert_true(redisrig.faulty.bytes_peak <= redisrig.faulty.bytes + MEMORY_MAX);
		assert_in_range(redisrig.log_lines - lines, 1, 2); /* one for each connection */
		assert_int_equal(asked->lost, 0);
		assert_int_equal(redisrig_release(asked), SPOKE_OK);
		redisrig_free();
	}
}

TEST(lease_24_bytes_in_place_of_a_reply_end_the_connection)
{
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		unsigned lines = redisrig.log_lines;
		struct asked *asked;

		redisrig_open_ttl(LONG_NS);
		redisrig.faulty.bytes_peak = redisrig.faulty.bytes;
		redisrelay_set(REDISRELAY_HOLD_REPLY, NAME);
		asked = redisrig_ask(NAME, SPOKE_LEASE_FOREVER);
		redisrig_until(redisrelay_has_sprung());
		inject(&hostile[i]);
		assert_gets_it(asked);
		assert_true(redisrig.faulty.bytes_peak <= redisrig.faulty.bytes + MEMORY_MAX);
		assert_in_range(redisrig.log_lines - lines, 1, 2);
		redisrig_free();
	}
}

/* --- row 25: clocks */

TEST(lease_25_step_of_the_wall_clock_changes_nothing)
{
	struct asked *asked;
	uint64_t left_ns;

	redisrig_open_ttl(TTL_NS);
	asked = redisrig_hold(NAME);
	for (unsigned i = 0; i < 2; i++) {
		left_ns = redisrig_left(asked);
		redisrig.wall_ahead_ns = i ? UINT64_MAX - 86400 * SECOND : 86400 * SECOND;
		assert_true(redisrig_left(asked) <= left_ns);
		redisrig_until_renewed(asked);
		assert_int_equal(asked->lost, 0);
	}
	assert_int_equal(redisrig_release(asked), SPOKE_OK);
}

struct observed {
	struct spoke_alarm alarm;
	const struct asked *asked;
	unsigned lost; /* when the alarm was due */
	bool is_over;
};

static void observe(struct spoke_alarm *alarm)
{
	struct observed *observed = spoke_container_of(alarm, struct observed, alarm);

	observed->lost = observed->asked->lost;
	observed->is_over = true;
}

TEST(lease_25_lease_ends_in_the_sleep_of_the_machine)
{
	struct observed observed = { 0 };
	struct asked *asked;
	struct asked *longer;

	redisrig_open_ttl(TTL_NS);
	asked = redisrig_hold(NAME);
	longer = redisrig_ask_at(redisrig.leases, "longer",
				 &(struct spoke_lease_options){ .ttl_ns = LONG_NS });
	assert_int_equal(redisrig_answer(longer), SPOKE_OK);
	observed.asked = asked;
	assert_int_equal(spoke_alarm_after(redisrig.engine, &observed.alarm, 0, observe), 0);
	redisrig.boot_ahead_ns = TTL_NS;
	assert_int_equal(redisrig_left(asked), 0);
	redisrig_until(observed.is_over);
	assert_int_equal(observed.lost, 1);
	assert_int_equal(asked->why, SPOKE_LEASE_EXPIRED);
	assert_int_equal(longer->lost, 0);
	assert_int_equal(redisrig_release(longer), SPOKE_OK);
}
