/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of peers that may connect, and checks peers against them. */
#include "transport/listen/rules.h"

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/text/option.h"
#include "transport/trust/caller.h"

#include <stdio.h>
#include <string.h>

#define SHOWN 96u /* bytes of an entry in a sentence */
#define ADDRESS_TEXT 160u
#define USER_TEXT 24u

/* A list while it is read. */
struct list {
	const char *name;
	const char *preset; /* the word for an absent list */
	const char *text;   /* NULL: absent */
	/* Reads an entry into `to`; returns NULL, or why it is wrong. */
	const char *(*read)(struct spoke_span entry, void *to);
	size_t size; /* of an entry */
};

static const char *read_range(struct spoke_span entry, void *to)
{
	return spokei_range_read(entry, to);
}

static const char *read_user(struct spoke_span entry, void *to)
{
	struct spokei_rule_user *user = to;
	const char *at = entry.data;
	bool of_user = entry.len > 4 && memcmp(at, "uid:", 4) == 0;
	size_t prefix = 0;

	user->is_group = entry.len > 4 && memcmp(at, "gid:", 4) == 0;
	if (of_user || user->is_group)
		prefix = 4;
	return spokei_caller_id((struct spoke_span){ at + prefix, entry.len - prefix }, &user->id)
		       ? NULL
		       : "not a number of a user; write e.g. 1000 or gid:100";
}

/* Counts the entries of a list. */
static size_t count_entries(const struct list *list)
{
	const char *at = list->text;
	struct spoke_span entry;
	size_t count = 0;

	while (at && *list->text && spokei_option_item(&at, &entry))
		count++;
	return count;
}

/* Returns NULL, or why the list has too few or too many entries. */
static const char *check_count(const struct list *list, size_t count)
{
	if (list->text == NULL || (count > 0 && count <= SPOKEI_RULES_MAX))
		return NULL;
	return count == 0 ? "the list is empty; remove it to allow all"
			  : "too many entries; at most 64, so use larger ranges";
}

static int read_list(const struct list *list, unsigned char *to, char why[SPOKEI_RULES_WHY])
{
	const char *at = list->text;
	struct spoke_span entry;
	char shown[SHOWN];

	for (unsigned number = 1; at && spokei_option_item(&at, &entry); number++) {
		const char *wrong = list->read(entry, to);

		to += list->size;
		if (wrong == NULL)
			continue;
		(void)spokei_log_escape(shown, sizeof(shown), entry.data, entry.len);
		(void)snprintf(why, SPOKEI_RULES_WHY, "%s: entry %u, %s: %s", list->name, number,
			       shown, wrong);
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

/* Allocates rules with room for lists of these lengths. */
static struct spokei_rules *make(const struct spoke_env *env, size_t deny, size_t allow,
				 size_t users)
{
	size_t size = sizeof(struct spokei_rules) + (deny + allow) * sizeof(struct spokei_range) +
		      users * sizeof(struct spokei_rule_user);
	struct spokei_rules *rules = spokei_alloc(env, 1, size);

	if (rules == NULL)
		return NULL;
	*rules = (struct spokei_rules){
		.size = size,
		.deny_count = deny,
		.allow_count = allow,
		.user_count = users,
		.deny = (struct spokei_range *)(rules + 1),
	};
	rules->allow = rules->deny + deny;
	rules->users = (struct spokei_rule_user *)(rules->allow + allow);
	return rules;
}

int spokei_rules_new(const struct spoke_env *env, const struct spokei_rules_of *of,
		     struct spokei_rules **ret_rules, char why[SPOKEI_RULES_WHY])
{
	struct list lists[] = {
		{ "deny.from", "none", of->deny_from, read_range, sizeof(struct spokei_range) },
		{ "allow.from", "all", of->allow_from, read_range, sizeof(struct spokei_range) },
		{ "allow.users", "all", of->allow_users, read_user,
		  sizeof(struct spokei_rule_user) },
	};
	struct spokei_rules *rules;
	size_t counts[3];
	int error = SPOKE_OK;

	*ret_rules = NULL;
	for (unsigned i = 0; i < 3; i++) {
		const char *wrong;

		if (lists[i].text && strcmp(lists[i].text, lists[i].preset) == 0)
			lists[i].text = NULL;
		counts[i] = count_entries(&lists[i]);
		wrong = check_count(&lists[i], counts[i]);
		if (wrong == NULL)
			continue;
		(void)snprintf(why, SPOKEI_RULES_WHY, "%s: %s", lists[i].name, wrong);
		return SPOKE_EINVAL;
	}
	if (counts[0] + counts[1] + counts[2] == 0)
		return SPOKE_OK;
	rules = make(env, counts[0], counts[1], counts[2]);
	if (rules == NULL)
		return SPOKE_ENOMEM;
	for (unsigned i = 0; i < 3 && error == SPOKE_OK; i++) {
		void *const rows[] = { rules->deny, rules->allow, rules->users };

		error = read_list(&lists[i], rows[i], why);
	}
	if (error)
		spokei_rules_free(env, rules);
	else
		*ret_rules = rules;
	return error;
}

int spokei_rules_copy(const struct spoke_env *env, const struct spokei_rules *rules,
		      struct spokei_rules **ret_rules)
{
	struct spokei_rules *copy;

	*ret_rules = NULL;
	if (rules == NULL)
		return SPOKE_OK;
	copy = make(env, rules->deny_count, rules->allow_count, rules->user_count);
	if (copy == NULL)
		return SPOKE_ENOMEM;
	memcpy(copy + 1, rules + 1, rules->size - sizeof(*rules));
	*ret_rules = copy;
	return SPOKE_OK;
}

void spokei_rules_free(const struct spoke_env *env, struct spokei_rules *rules)
{
	if (rules)
		spokei_free(env, rules, 1, rules->size);
}

bool spokei_rules_limit_hosts(const struct spokei_rules *rules)
{
	if (rules == NULL)
		return false;
	for (size_t i = 0; i < rules->deny_count; i++)
		if (rules->deny[i].base.kind != SPOKEI_MACHINE_UNIX)
			return true;
	for (size_t i = 0; i < rules->allow_count; i++)
		if (spokei_range_is_whole(&rules->allow[i]))
			return false;
	return rules->allow_count > 0;
}

static const char *list_name(enum spokei_rules_verdict verdict)
{
	static const char *const names[] = {
		[SPOKEI_RULES_ADMIT] = "",
		[SPOKEI_RULES_DENY_FROM] = "deny.from",
		[SPOKEI_RULES_ALLOW_FROM] = "allow.from",
		[SPOKEI_RULES_ALLOW_USERS] = "allow.users",
	};

	return names[verdict];
}

static bool lists(const struct spokei_range *ranges, size_t count,
		  const struct spokei_machine *machine)
{
	for (size_t i = 0; i < count; i++)
		if (spokei_range_has(&ranges[i], machine))
			return true;
	return false;
}

enum spokei_rules_verdict spokei_rules_judge(const struct spokei_rules *rules,
					     const struct spokei_machine *machine)
{
	if (rules == NULL)
		return SPOKEI_RULES_ADMIT;
	if (lists(rules->deny, rules->deny_count, machine))
		return SPOKEI_RULES_DENY_FROM;
	if (rules->allow_count > 0 && !lists(rules->allow, rules->allow_count, machine))
		return SPOKEI_RULES_ALLOW_FROM;
	return SPOKEI_RULES_ADMIT;
}

enum spokei_rules_verdict spokei_rules_judge_user(const struct spokei_rules *rules, uint32_t uid,
						  uint32_t gid)
{
	for (size_t i = 0; i < rules->user_count; i++) {
		const struct spokei_rule_user *user = &rules->users[i];

		if (user->id == (user->is_group ? gid : uid))
			return SPOKEI_RULES_ADMIT;
	}
	return SPOKEI_RULES_ALLOW_USERS;
}

/* --- connections */

/* Checks the user at a unix socket. A user without credentials is none of the listed ones. */
static enum spokei_rules_verdict check_user(const struct spoke_env *env,
					    const struct spokei_rules *rules, int fd)
{
	uint32_t uid;
	uint32_t gid;
	int32_t pid;

	if (env->net->credentials == NULL ||
	    env->net->credentials(env->ctx, fd, &uid, &gid, &pid) != 0)
		return SPOKEI_RULES_ALLOW_USERS;
	return spokei_rules_judge_user(rules, uid, gid);
}

static bool asks_for_user(const struct spokei_rules *rules, const struct spokei_machine *machine)
{
	return rules && rules->user_count > 0 && machine->kind == SPOKEI_MACHINE_UNIX;
}

enum spokei_rules_verdict spokei_rules_admit(const struct spoke_env *env,
					     const struct spokei_rules *of_owner,
					     const struct spokei_rules *of_address, int fd,
					     const struct spoke_address *peer)
{
	enum spokei_rules_verdict verdict;
	struct spokei_machine machine;

	if (SPOKEI_LIKELY(of_owner == NULL && of_address == NULL))
		return SPOKEI_RULES_ADMIT;
	machine = spokei_machine_of(env, peer);
	verdict = spokei_rules_judge(of_owner, &machine);
	if (verdict == SPOKEI_RULES_ADMIT)
		verdict = spokei_rules_judge(of_address, &machine);
	if (verdict == SPOKEI_RULES_ADMIT && asks_for_user(of_owner, &machine))
		verdict = check_user(env, of_owner, fd);
	return verdict;
}

enum spokei_rules_verdict spokei_rules_admit_again(const struct spoke_env *env,
						   const struct spokei_rules *of_owner,
						   const struct spoke_address *peer,
						   const uint32_t user[2])
{
	enum spokei_rules_verdict verdict;
	struct spokei_machine machine;

	if (of_owner == NULL)
		return SPOKEI_RULES_ADMIT;
	machine = spokei_machine_of(env, peer);
	verdict = spokei_rules_judge(of_owner, &machine);
	if (verdict != SPOKEI_RULES_ADMIT || !asks_for_user(of_owner, &machine))
		return verdict;
	return user ? spokei_rules_judge_user(of_owner, user[0], user[1])
		    : SPOKEI_RULES_ALLOW_USERS;
}

/* Writes the user at a unix socket, e.g. " (uid:1000)"; "" if it is not known. */
static void print_user(const struct spoke_env *env, int fd, char *out, size_t size)
{
	uint32_t uid;
	uint32_t gid;
	int32_t pid;

	out[0] = '\0';
	if (env->net->credentials && env->net->credentials(env->ctx, fd, &uid, &gid, &pid) == 0)
		(void)snprintf(out, size, " (uid:%u)", (unsigned)uid);
}

void spokei_rules_deny(struct spoke_engine *engine, int fd, const struct spoke_address *peer,
		       enum spokei_rules_verdict verdict)
{
	const struct spoke_env *env = engine->env;
	char address[ADDRESS_TEXT];
	char user[USER_TEXT] = "";

	if (verdict == SPOKEI_RULES_ALLOW_USERS)
		print_user(env, fd, user, sizeof(user));
	env->net->close(env->ctx, fd);
	spokei_count(engine, SPOKE_STAT_REFUSED_ADDRESS);
	env->net->print(env->ctx, peer, address, sizeof(address));
	spokei_log(engine->log, SPOKE_LOG_WARN, "listener", SPOKEI_LOG_AUTH, engine->begin_ns,
		   "%s%s may not connect: %s", address, user, list_name(verdict));
}
