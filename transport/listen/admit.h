/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admits connections by rules, before anything is allocated for them. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_ADMIT_H
#define SPOKEI_TRANSPORT_LISTEN_ADMIT_H

#include "transport/listen/rules.h"

struct spoke_engine;

/* Checks an accepted connection against the rules of the owner and those of the address where it
 * arrived; either may be NULL. */
enum spokei_rules_verdict spokei_admit_check(const struct spoke_env *env,
					     const struct spokei_rules *of_owner,
					     const struct spokei_rules *of_address, int fd,
					     const struct spoke_address *peer);

/* Checks a connection that exists against new rules of the owner. `user`: uid and gid of a peer at
 * a unix socket; NULL: they are not known. */
enum spokei_rules_verdict spokei_admit_again(const struct spoke_env *env,
					     const struct spokei_rules *of_owner,
					     const struct spoke_address *peer,
					     const uint32_t user[2]);

/* Closes a connection that is not admitted, counts it, and writes a line. */
void spokei_admit_deny(struct spoke_engine *engine, int fd, const struct spoke_address *peer,
		       enum spokei_rules_verdict verdict);

#endif
