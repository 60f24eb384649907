/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity that a peer has proven, in addition to its address: the names of its certificate,
 * the user at a unix socket, a token. Most connections have none, and no identity. It is shared by
 * a connection and the requests that outlive it; references are counted on the engine's thread.
 * Names never change, so a handler on the pool may read them.
 */
#ifndef SPOKEI_TRANSPORT_CONN_IDENTITY_H
#define SPOKEI_TRANSPORT_CONN_IDENTITY_H

#include <spoke/env.h>
#include <spoke/value.h>

#include <stdatomic.h>

/* Judgements that an identity remembers, and the bytes of a name, with the NUL. Longer names are
 * left out: a cut name would be another one. */
#define SPOKEI_IDENTITY_JUDGED 4u
#define SPOKEI_IDENTITY_NAME 512u

/* The user at the other end of a unix socket, as of connect(). The pid is for logs only, because
 * another process may have it by now. */
struct spokei_identity_user {
	uint32_t uid;
	uint32_t gid;
	int32_t pid;
};

/* A judgement about the peer. Each list has a number of its own. */
struct spokei_identity_judged {
	uint64_t list; /* its number; 0: none */
	bool allowed;
};

struct spokei_identity {
	const struct spoke_env *env;
	size_t size; /* of this struct, with the names and their texts */
	uint32_t shares;
	bool has_user;
	atomic_bool token; /* the peer has sent a valid token */
	uint64_t proof;    /* number of the credentials that it has shown last; 0: none */
	struct spokei_identity_user user;
	/* The newest judgements, in a ring. */
	struct spokei_identity_judged judged[SPOKEI_IDENTITY_JUDGED];
	unsigned next;
	size_t name_count;
	struct spoke_span names[]; /* e.g. "dns:a.pay.test", "uri:spiffe://x/y" */
};

/* The facts that are known when a stream opens. */
struct spokei_identity_of {
	const struct spokei_identity_user *user; /* NULL: none */
	const struct spoke_span *names;
	size_t name_count;
};

/* Makes an identity with one reference; the names are copied. NULL: no memory. */
struct spokei_identity *spokei_identity_new(const struct spoke_env *env,
					    const struct spokei_identity_of *of);

/* Take and drop a reference; NULL is fine. */
struct spokei_identity *spokei_identity_share(struct spokei_identity *identity);
void spokei_identity_drop(struct spokei_identity *identity);

/* Notes that the peer has shown valid credentials, which have this number. Judgements of a peer
 * that had none do not count any more. */
void spokei_identity_prove(struct spokei_identity *identity, uint64_t proof);

/* Undoes that, because the credentials are not valid any more. */
void spokei_identity_withdraw(struct spokei_identity *identity);

/*
 * Writes the name number `index` of a peer: the names of its certificate, "uid:N", "token", and
 * last "addr:HOST", which a unix socket has not. `identity` may be NULL. Returns the length of the
 * text; 0: there is no such name.
 */
size_t spokei_identity_print(const struct spoke_env *env, const struct spokei_identity *identity,
			     const struct spoke_address *peer, size_t index, char *text,
			     size_t size);

/* Returns whether the peer has proven anything besides its address; NULL has not. */
bool spokei_identity_is_known(const struct spokei_identity *identity);

/* Returns the judgement of the list with this number, or NULL; notes a new one. */
const struct spokei_identity_judged *spokei_identity_judged(const struct spokei_identity *identity,
							    uint64_t list);
void spokei_identity_judge(struct spokei_identity *identity, uint64_t list, bool allowed);

#endif
