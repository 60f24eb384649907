/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies error replies by their code, the first word. Unknown codes are refusals. */
#include "cluster/lease/refusal.h"

#include <stdbool.h>
#include <string.h>

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
