/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the scripts. Numbers of Lua are floating-point numbers, so a fencing counter near
 * 2^53 or above is passed on as text, which stays exact.
 */
#include "cluster/lease/script.h"
#include "timer/base.h"

/* Sets `got` to 1 if the holder has its field. A key of another type counts as a lost lease: its
 * error would end the whole script, and with it the renewals of other leases. Other errors do. */
#define HOLDS(key, holder)                                                                         \
	"local got = redis.pcall('hexists', " key ", " holder ")\n"                                \
	"if type(got) == 'table' and not string.find(got.err, 'WRONGTYPE', 1, true) then\n"        \
	"  return got\n"                                                                           \
	"end\n"

/* The counter comes first: if it cannot be counted up, nothing has been written. A repeated run
 * finds the field and must not count again. Each call costs about 0.6 us, so an acquire that no
 * other client contests makes four. */
#define ACQUIRE                                                                                    \
	"local call, key, token = redis.call, KEYS[1]\n"                                           \
	"if call('exists', key) == 0 then\n"                                                       \
	"  token = call('incr', KEYS[2])\n"                                                        \
	"  call('hset', key, ARGV[2], 1)\n"                                                        \
	"elseif call('hexists', key, ARGV[2]) == 0 then\n"                                         \
	"  return {1, call('pttl', key)}\n"                                                        \
	"end\n"                                                                                    \
	"call('pexpire', key, ARGV[1])\n"                                                          \
	"if not token or token > 9e15 then token = call('get', KEYS[2]) end\n"                     \
	"if not token then token = call('incr', KEYS[2]) end\n"                                    \
	"return {0, token}\n"

#define RENEW                                                                                      \
	"local held = {}\n"                                                                        \
	"for i = 1, #KEYS do\n" HOLDS(                                                             \
		"KEYS[i]", "ARGV[2 * i - 1]") "held[i] = 0\n"                                      \
					      "if got == 1 then held[i] = redis.call('pexpire', "  \
					      "KEYS[i], ARGV[2 * i]) end\n"                        \
					      "end\n"                                              \
					      "return held\n"

#define RELEASE                                                                                    \
	HOLDS("KEYS[1]", "ARGV[1]")                                                                \
	"if got ~= 1 then return 0 end\n"                                                          \
	"redis.call('del', KEYS[1])\n"                                                             \
	"redis.call('publish', KEYS[2], '0')\n"                                                    \
	"return 1\n"

static const struct {
	const char *name;
	const char *text;
} scripts[SPOKEI_SCRIPTS] = {
	[SPOKEI_SCRIPT_NONE] = { "command", NULL },
	[SPOKEI_SCRIPT_ACQUIRE] = { "acquire", ACQUIRE },
	[SPOKEI_SCRIPT_RENEW] = { "renew", RENEW },
	[SPOKEI_SCRIPT_RELEASE] = { "release", RELEASE },
};

const char *spokei_script_text(enum spokei_script script)
{
	SPOKE_ASSERT(script > SPOKEI_SCRIPT_NONE && script < SPOKEI_SCRIPTS);
	return scripts[script].text;
}

const char *spokei_script_name(enum spokei_script script)
{
	SPOKE_ASSERT(script < SPOKEI_SCRIPTS);
	return scripts[script].name;
}

/* {0, fence}, or {1, time to live of the other holder}. */
static bool is_acquisition(struct spokei_resp_cursor reply)
{
	struct spokei_resp_value value;
	int64_t refused, number;

	return spokei_resp_next(&reply, &value) && value.kind == SPOKEI_RESP_ARRAY &&
	       value.count == 2 && spokei_resp_next_number(&reply, &refused) &&
	       spokei_resp_next_number(&reply, &number) &&
	       (refused == 1 || (refused == 0 && number >= 0));
}

static bool is_renewal(struct spokei_resp_cursor *reply, unsigned keys)
{
	struct spokei_resp_value value;

	if (!spokei_resp_next(reply, &value) || value.kind != SPOKEI_RESP_ARRAY ||
	    value.count != keys)
		return false;
	while (keys > 0 && spokei_resp_next(reply, &value) && value.kind == SPOKEI_RESP_INTEGER)
		keys--;
	return keys == 0;
}

bool spokei_script_answers(enum spokei_script script, unsigned keys,
			   struct spokei_resp_cursor reply)
{
	struct spokei_resp_cursor first = reply;
	struct spokei_resp_value value;

	if (!spokei_resp_next(&first, &value))
		return false;
	switch (script) {
	case SPOKEI_SCRIPT_ACQUIRE:
		return is_acquisition(reply);
	case SPOKEI_SCRIPT_RENEW:
		return is_renewal(&reply, keys);
	case SPOKEI_SCRIPT_RELEASE:
		return value.kind == SPOKEI_RESP_INTEGER;
	case SPOKEI_SCRIPT_NONE:
	case SPOKEI_SCRIPTS:
		break;
	}
	return true;
}
