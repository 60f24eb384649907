/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the scripts, the derived names, and the meaning of error replies. Numbers of Lua are
 * floating-point numbers, so a fencing counter near 2^53 or above is passed on as text, which stays
 * exact.
 */
#include "cluster/lease/script.h"
#include "timer/base.h"

#include <string.h>

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

/* --- names */

static const struct spoke_span prefixes[] = {
	[SPOKEI_LEASE_CHANNEL] = { "redisson_lock__channel:", 23 },
	[SPOKEI_LEASE_TOKEN] = { "redisson_lock_token:", 20 },
};

size_t spokei_lease_name(char *to, enum spokei_lease_name which, struct spoke_span name)
{
	bool tagged = name.len > 0 && memchr(name.data, '{', name.len) != NULL;
	size_t at = prefixes[which].len;

	memcpy(to, prefixes[which].data, at);
	if (!tagged)
		to[at++] = '{';
	if (name.len > 0)
		memcpy(to + at, name.data, name.len);
	at += name.len;
	if (!tagged)
		to[at++] = '}';
	return at;
}

/* --- error replies: classified by their code, the first word. Unknown codes are refusals */

static const char moved[] = "the store is a node of a Redis cluster, which is not supported";

static const struct {
	const char *code;
	enum spokei_refusal refusal;
} codes[] = {
	{ "BUSY", SPOKEI_REFUSAL_AGAIN },          { "CLUSTERDOWN", SPOKEI_REFUSAL_AGAIN },
	{ "LOADING", SPOKEI_REFUSAL_AGAIN },       { "MASTERDOWN", SPOKEI_REFUSAL_AGAIN },
	{ "MISCONF", SPOKEI_REFUSAL_AGAIN },       { "NOREPLICAS", SPOKEI_REFUSAL_AGAIN },
	{ "NOSCRIPT", SPOKEI_REFUSAL_RELOAD },     { "OOM", SPOKEI_REFUSAL_AGAIN },
	{ "READONLY", SPOKEI_REFUSAL_ELSEWHERE },  { "TRYAGAIN", SPOKEI_REFUSAL_AGAIN },
	{ "UNBLOCKED", SPOKEI_REFUSAL_ELSEWHERE },
};

/* Returns whether the first word of a text is `code`. */
static bool begins(struct spoke_span text, const char *code)
{
	size_t len = strlen(code);
	const char *bytes = text.data;

	return text.len >= len && memcmp(bytes, code, len) == 0 &&
	       (text.len == len || bytes[len] == ' ');
}

/* Returns where the next `what` begins in the text, or text.len. */
static size_t find(struct spoke_span text, const char *what)
{
	size_t len = strlen(what);
	const char *bytes = text.data;

	for (size_t at = 0; at + len <= text.len; at++)
		if (memcmp(bytes + at, what, len) == 0)
			return at;
	return text.len;
}

static struct spoke_span after(struct spoke_span text, size_t len)
{
	return (struct spoke_span){ (const char *)text.data + len, text.len - len };
}

/*
 * Servers before Redis 7 put the error of a command inside of an error of the script:
 * "ERR Error running script (call to f_SHA): @user_script:1: -READONLY You can't write ...".
 */
static struct spoke_span inner(struct spoke_span text)
{
	static const char place[] = "@user_script:";
	struct spoke_span rest = text;
	size_t at;

	if (!begins(text, "ERR") || find(text, "Error running script") == text.len)
		return text;
	while ((at = find(rest, place)) < rest.len) {
		rest = after(rest, at + sizeof(place) - 1);
		at = find(rest, ": ");
		if (at == rest.len)
			return text;
		rest = after(rest, at + 2);
	}
	if (rest.len > 0 && *(const char *)rest.data == '-')
		rest = after(rest, 1);
	return rest.len > 0 ? rest : text;
}

enum spokei_refusal spokei_refusal_of(struct spoke_span text)
{
	text = inner(text);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (begins(text, codes[i].code))
			return codes[i].refusal;
	return SPOKEI_REFUSAL_REFUSED;
}

struct spoke_span spokei_refusal_text(struct spoke_span text)
{
	text = inner(text);
	if (begins(text, "MOVED") || begins(text, "ASK"))
		return (struct spoke_span){ moved, sizeof(moved) - 1 };
	return text;
}
