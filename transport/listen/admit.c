/* SPDX-License-Identifier: Apache-2.0 */
/* Admits connections by rules. */
#include "transport/listen/admit.h"

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <stdio.h>

#define ADDRESS_TEXT 160u
#define USER_TEXT 24u

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

enum spokei_rules_verdict spokei_admit_check(const struct spoke_env *env,
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

enum spokei_rules_verdict spokei_admit_again(const struct spoke_env *env,
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

void spokei_admit_deny(struct spoke_engine *engine, int fd, const struct spoke_address *peer,
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
		   "%s%s may not connect: %s", address, user, spokei_rules_list_name(verdict));
}
