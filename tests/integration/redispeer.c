/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that locks as Redisson does; see redispeer.h. */
#include "tests/integration/redispeer.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATCH_MS "15000"
#define TTL_AFTER_PARTIAL_RELEASE "30000"
#define LATCH_SIZE (REDISPEER_NAME + 40u)
#define UUID "285475da-9152-4c83-822a-67ee2f116a79"

/* Free, or held by this holder: one more. Otherwise the time to live. */
static const char acquire[] =
	"if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then"
	"  redis.call('hincrby', KEYS[1], ARGV[2], 1)"
	"  redis.call('pexpire', KEYS[1], ARGV[1])"
	"  return nil "
	"end "
	"return redis.call('pttl', KEYS[1])";

/* Does the same, and counts a token first. */
static const char acquire_fenced[] =
	"if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then"
	"  local token = redis.call('incr', KEYS[2])"
	"  redis.call('hincrby', KEYS[1], ARGV[2], 1)"
	"  redis.call('pexpire', KEYS[1], ARGV[1])"
	"  return {-1, token} "
	"end "
	"return {redis.call('pttl', KEYS[1]), -1}";

static const char renew[] = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end "
			    "return redis.call('pexpire', KEYS[1], ARGV[2])";

/* Keys: lock, channel, latch; arguments: message, time to live, holder, time of the latch. */
static const char release[] = "local latch = redis.call('get', KEYS[3]) "
			      "if latch then return tonumber(latch) end "
			      "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
			      "if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then"
			      "  redis.call('pexpire', KEYS[1], ARGV[2])"
			      "  redis.call('set', KEYS[3], 0, 'px', ARGV[4])"
			      "  return 0 "
			      "end "
			      "redis.call('del', KEYS[1]) "
			      "redis.call('publish', KEYS[2], ARGV[1]) "
			      "redis.call('set', KEYS[3], 1, 'px', ARGV[4]) "
			      "return 1";

static const char force_release[] = "if redis.call('del', KEYS[1]) == 0 then return 0 end "
				    "redis.call('publish', KEYS[2], ARGV[1]) "
				    "return 1";

/* A name with a brace has a tag, or none, already. */
static void derive(const char *prefix, const char *name, char *ret_name)
{
	bool has_brace = strchr(name, '{') != NULL;

	(void)snprintf(ret_name, REDISPEER_NAME, has_brace ? "%s:%s" : "%s:{%s}", prefix, name);
}

void redispeer_channel(const char *name, char *ret_channel)
{
	derive("redisson_lock__channel", name, ret_channel);
}

void redispeer_token(const char *name, char *ret_token)
{
	derive("redisson_lock_token", name, ret_token);
}

void redispeer_open(struct redispeer *peer, const char *path, unsigned thread)
{
	redisclient_open(&peer->asks, path);
	redisclient_open(&peer->hears, path);
	peer->requests = 0;
	(void)snprintf(peer->holder, sizeof(peer->holder), UUID ":%u", thread);
}

void redispeer_close(struct redispeer *peer)
{
	redisclient_close(&peer->asks);
	redisclient_close(&peer->hears);
}

/* Returns the number that a reply contains, or `nil` for none. */
static int64_t number_of(const char *text, int64_t nil)
{
	char *end;
	int64_t number = strtoll(text, &end, 10);

	if (strcmp(text, "(nil)") == 0)
		return nil;
	if (end == text || *end)
		fail_msg("not a number: %s", text);
	return number;
}

int64_t redispeer_acquire(struct redispeer *peer, const char *name, unsigned ttl_ms)
{
	char ttl[16];

	(void)snprintf(ttl, sizeof(ttl), "%u", ttl_ms);
	return number_of(redisclient_ask(&peer->asks, REDIS_WORDS("EVAL", acquire, "1", name, ttl,
								  peer->holder)),
			 REDISPEER_HELD);
}

int64_t redispeer_acquire_fenced(struct redispeer *peer, const char *name, unsigned ttl_ms,
				 int64_t *ret_token)
{
	char token[REDISPEER_NAME];
	char ttl[16];
	const char *text;
	char *rest;
	int64_t answer;

	redispeer_token(name, token);
	(void)snprintf(ttl, sizeof(ttl), "%u", ttl_ms);
	text = redisclient_ask(&peer->asks, REDIS_WORDS("EVAL", acquire_fenced, "2", name, token,
							ttl, peer->holder));
	if (*text != '[')
		fail_msg("not a pair: %s", text);
	answer = strtoll(text + 1, &rest, 10);
	*ret_token = strtoll(rest, NULL, 10);
	return answer;
}

bool redispeer_renew(struct redispeer *peer, const char *name, unsigned ttl_ms)
{
	char ttl[16];

	(void)snprintf(ttl, sizeof(ttl), "%u", ttl_ms);
	return number_of(redisclient_ask(&peer->asks,
					 REDIS_WORDS("EVAL", renew, "1", name, peer->holder, ttl)),
			 0) == 1;
}

/* Writes the name of the latch of the peer's present release. */
static void name_latch(const struct redispeer *peer, const char *name, char *ret_latch)
{
	char prefix[REDISPEER_NAME];

	derive("redisson_unlock_latch", name, prefix);
	(void)snprintf(ret_latch, LATCH_SIZE, "%s:%032x", prefix, peer->requests);
}

int64_t redispeer_release_with_latch_left(struct redispeer *peer, const char *name)
{
	char channel[REDISPEER_NAME];
	char latch[LATCH_SIZE];

	peer->requests++;
	redispeer_channel(name, channel);
	name_latch(peer, name, latch);
	return number_of(redisclient_ask(&peer->asks,
					 REDIS_WORDS("EVAL", release, "3", name, channel, latch,
						     "0", TTL_AFTER_PARTIAL_RELEASE, peer->holder,
						     LATCH_MS)),
			 REDISPEER_NOT_HELD);
}

int64_t redispeer_release(struct redispeer *peer, const char *name)
{
	int64_t answer = redispeer_release_with_latch_left(peer, name);
	char latch[LATCH_SIZE];

	name_latch(peer, name, latch);
	(void)redisclient_ask(&peer->asks, REDIS_WORDS("DEL", latch));
	return answer;
}

int64_t redispeer_force_release(struct redispeer *peer, const char *name)
{
	char channel[REDISPEER_NAME];

	redispeer_channel(name, channel);
	return number_of(redisclient_ask(&peer->asks, REDIS_WORDS("EVAL", force_release, "2", name,
								  channel, "0")),
			 0);
}

/* --- waiting */

void redispeer_subscribe(struct redispeer *peer, const char *name)
{
	char channel[REDISPEER_NAME];
	char answer[REDISPEER_NAME + 64];

	redispeer_channel(name, channel);
	(void)snprintf(answer, sizeof(answer), "[subscribe %s 1]", channel);
	assert_string_equal(redisclient_ask(&peer->hears, REDIS_WORDS("SUBSCRIBE", channel)),
			    answer);
}

const char *redispeer_hear(struct redispeer *peer)
{
	const char *text = redisclient_read(&peer->hears);
	size_t len = strlen(text);
	char *last;

	/* "[message CHANNEL TEXT]" */
	assert_memory_equal(text, "[message ", 9);
	assert_true(text[len - 1] == ']');
	peer->hears.text[len - 1] = '\0';
	last = strrchr(text, ' ');
	return last + 1;
}

bool redispeer_has_heard(struct redispeer *peer)
{
	return redisclient_has_one(&peer->hears);
}
