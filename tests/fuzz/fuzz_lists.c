/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the lists of peers that may connect and of callers that are let in. A list is read as a
 * whole, or refused with a sentence. An entry of a list of callers fits the name that it spells,
 * and a name without a prefix is let in by none.
 */
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"
#include "transport/listen/rules.h"
#include "transport/trust/caller.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>

static void try_rules(const struct spoke_env *env, const struct spokei_rules_of *of)
{
	static const struct spokei_machine other = { SPOKEI_MACHINE_OTHER, 0, 0 };
	char why[SPOKEI_RULES_WHY] = "";
	struct spokei_rules *rules;
	struct spokei_rules *copy;

	if (spokei_rules_new(env, of, &rules, why)) {
		demand(rules == NULL && *why != '\0' && memchr(why, '\0', sizeof(why)),
		       "an error has a sentence");
		return;
	}
	if (rules == NULL) { /* a word that stands for an absent list */
		demand(of->deny_from ? strcmp(of->deny_from, "none") == 0
				     : strcmp(of->allow_from ? of->allow_from : of->allow_users,
					      "all") == 0,
		       "any other text is a list");
		return;
	}
	demand(rules->allow_count + rules->deny_count + rules->user_count > 0, "with an entry");
	demand(rules->allow_count <= SPOKEI_RULES_MAX, "and few of them");
	demand((spokei_rules_judge(rules, &other) == SPOKEI_RULES_ALLOW_FROM) ==
		       (rules->allow_count > 0),
	       "a machine of no kind is in no list");
	demand(spokei_rules_judge_user(rules, UINT32_MAX, UINT32_MAX) == SPOKEI_RULES_ALLOW_USERS,
	       "no user is no listed one");
	demand(spokei_rules_copy(env, rules, &copy) == SPOKE_OK, "there is memory");
	spokei_rules_free(env, rules);
	spokei_rules_free(env, copy);
}

/* Returns whether a caller with this name of a certificate is let in. */
static bool lets_in(const struct spoke_env *env, const struct spokei_callers *callers,
		    struct spoke_span name)
{
	static const struct spoke_address nowhere;
	const struct spokei_identity_of of = { .names = &name, .name_count = 1 };
	struct spokei_identity *identity = spokei_identity_new(env, &of);
	bool fits;

	demand(identity != NULL, "there is memory");
	fits = spokei_callers_fit(callers, env, identity, &nowhere);
	spokei_identity_drop(identity);
	return fits;
}

static void try_callers(const struct spoke_env *env, const char *text)
{
	char why[SPOKEI_CALLERS_WHY] = "";
	struct spokei_callers *callers;

	if (spokei_callers_new(env, text, 1, &callers, why)) {
		demand(*why != '\0' && memchr(why, '\0', sizeof(why)), "an error has a sentence");
		return;
	}
	if (callers == NULL) {
		demand(strcmp(text, "all") == 0, "a list has entries");
		return;
	}
	demand(callers->count > 0 && callers->count <= SPOKEI_CALLERS_MAX, "few entries");
	for (size_t i = 0; i < callers->count; i++) {
		const struct spokei_caller_rule *rule = &callers->rules[i];

		if (rule->kind == SPOKEI_CALLER_NAME && rule->text.len < SPOKEI_IDENTITY_NAME)
			demand(lets_in(env, callers, rule->text), "a name fits itself");
	}
	demand(!lets_in(env, callers, (struct spoke_span){ "a.pay.test", 10 }),
	       "a name without a prefix fits nothing");
	spokei_callers_free(env, callers);
}

FUZZ(lists)
{
	char *text = malloc(size + 1);
	struct memory memory;

	demand(text != NULL, "there is memory");
	memory_init(&memory);
	/* Only the identity of a caller prints an address, and there is none here. */
	memory.env.net = spoke_host_env()->net;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	try_rules(&memory.env, &(struct spokei_rules_of){ .deny_from = text });
	try_rules(&memory.env, &(struct spokei_rules_of){ .allow_from = text });
	try_rules(&memory.env, &(struct spokei_rules_of){ .allow_users = text });
	try_callers(&memory.env, text);
	demand(memory.bytes == 0, "no memory leaks");
	free(text);
	return 0;
}
