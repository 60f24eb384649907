/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that may connect: ranges of addresses that are denied, ranges that are allowed, and users
 * at unix sockets. Denials come first; a list that is absent allows all. Rules never change once
 * they are made: they are replaced as a whole. A verdict allocates nothing.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_RULES_H
#define SPOKEI_TRANSPORT_LISTEN_RULES_H

#include "core/text/range.h"

struct spoke_engine;

#define SPOKEI_RULES_MAX 64u  /* entries of a list */
#define SPOKEI_RULES_WHY 320u /* bytes of a sentence, with the NUL */

struct spokei_rule_user {
	bool is_group;
	uint32_t id;
};

struct spokei_rules {
	size_t size; /* of this struct, with its lists */
	size_t deny_count;
	size_t allow_count;
	size_t user_count;
	struct spokei_range *deny;
	struct spokei_range *allow;
	struct spokei_rule_user *users;
};

/* Lists separated by commas; NULL: the list is absent. The words in brackets mean the same. */
struct spokei_rules_of {
	const char *deny_from;   /* ("none") */
	const char *allow_from;  /* ("all") */
	const char *allow_users; /* "1000", "gid:100" ("all") */
};

/* Makes rules; *ret_rules is NULL if all lists are absent. Returns 0, SPOKE_ENOMEM, or SPOKE_EINVAL
 * with a sentence about the first entry that is wrong, e.g. "allow.from: entry 2, 10.0.0.1/8: ...".
 * Free them with spokei_rules_free(). */
SPOKE_MUST_USE int spokei_rules_new(const struct spoke_env *env, const struct spokei_rules_of *of,
				    struct spokei_rules **ret_rules, char why[SPOKEI_RULES_WHY]);

/* Copies rules, which may be NULL. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_rules_copy(const struct spoke_env *env, const struct spokei_rules *rules,
				     struct spokei_rules **ret_rules);

/* NULL is fine. */
void spokei_rules_free(const struct spoke_env *env, struct spokei_rules *rules);

/* Returns whether the rules shut out any host: lists about unix sockets alone do not, and neither
 * does an allow.from with a range of all addresses. NULL: no. */
bool spokei_rules_limit_hosts(const struct spokei_rules *rules);

/* The verdict on a peer, and the list that it follows from. */
enum spokei_rules_verdict {
	SPOKEI_RULES_ADMIT,
	SPOKEI_RULES_DENY_FROM,
	SPOKEI_RULES_ALLOW_FROM,
	SPOKEI_RULES_ALLOW_USERS,
};

/* Checks an address. NULL admits all. */
enum spokei_rules_verdict spokei_rules_judge(const struct spokei_rules *rules,
					     const struct spokei_machine *machine);

/* Checks the peer of a unix socket by its user; there are rules about users. */
enum spokei_rules_verdict spokei_rules_judge_user(const struct spokei_rules *rules, uint32_t uid,
						  uint32_t gid);

/* --- connections, before anything is allocated for them. On the engine's thread */

/* Checks an accepted connection against the rules of the owner and those of the address where it
 * arrived; either may be NULL. */
enum spokei_rules_verdict spokei_rules_admit(const struct spoke_env *env,
					     const struct spokei_rules *of_owner,
					     const struct spokei_rules *of_address, int fd,
					     const struct spoke_address *peer);

/* Checks a connection that exists against new rules of the owner. `user`: uid and gid of a peer at
 * a unix socket; NULL: they are not known. */
enum spokei_rules_verdict spokei_rules_admit_again(const struct spoke_env *env,
						   const struct spokei_rules *of_owner,
						   const struct spoke_address *peer,
						   const uint32_t user[2]);

/* Closes a connection that is not admitted, counts it, and writes a line. */
void spokei_rules_deny(struct spoke_engine *engine, int fd, const struct spoke_address *peer,
		       enum spokei_rules_verdict verdict);

#endif
