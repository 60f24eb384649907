/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers: the identity that a peer has proven, in addition to its address, and lists of callers
 * that are let in.
 */
#ifndef SPOKEI_TRANSPORT_TRUST_CALLER_H
#define SPOKEI_TRANSPORT_TRUST_CALLER_H

#include "core/text/digest.h"
#include "core/text/range.h"

#include <stdatomic.h>

/* --- identities
 *
 * The identity that a peer has proven, in addition to its address: the names of its certificate,
 * the user at a unix socket, a token. Most connections have none, and no identity. It is shared by
 * a connection and the requests that outlive it; references are counted on the engine's thread.
 * Names never change, so a handler on the pool may read them.
 */

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
	bool shows;        /* it has shown `shown` */
	uint64_t proof;    /* number of the credentials that it has shown last; 0: none */
	/* SHA-256 of the token that it has shown for all requests of its connection, because its
	 * wire has no attachments. */
	unsigned char shown[SPOKEI_SHA256];
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

/* Returns a hash of all that the peer has proven besides its address, with this key; 0: nothing. */
uint64_t spokei_identity_hash(const struct spokei_identity *identity, const uint64_t key[2]);

/* Returns whether the peer has proven anything besides its address; NULL has not. */
bool spokei_identity_is_known(const struct spokei_identity *identity);

/* Returns the judgement of the list with this number, or NULL; notes a new one. */
const struct spokei_identity_judged *spokei_identity_judged(const struct spokei_identity *identity,
							    uint64_t list);
void spokei_identity_judge(struct spokei_identity *identity, uint64_t list, bool allowed);

/* --- lists
 *
 * Lists of callers that are let in, by the names that a caller has proven:
 *
 *     dns:a.pay.test, dns:*.pay.test   a name of the certificate; * stands for one label
 *     uri:spiffe://x/y                 the same; a * behind the last slash stands for any rest
 *     ip:10.0.0.7                      the same
 *     uid:1000, gid:100                the user at a unix socket
 *     addr:10.0.0.0/8, addr:unix       the address
 *     token                            a valid token was sent
 *
 * A caller is let in if any entry fits any of its names. A list never changes once it is made.
 */

#define SPOKEI_CALLERS_MAX 64u  /* entries of a list */
#define SPOKEI_CALLERS_WHY 320u /* bytes of a sentence, with the NUL */

enum spokei_caller_kind {
	SPOKEI_CALLER_NAME,   /* of a certificate: `text` is all of it */
	SPOKEI_CALLER_IP,     /* of a certificate: `range.base` */
	SPOKEI_CALLER_SUFFIX, /* dns:*.x: `text` is ".x" */
	SPOKEI_CALLER_PREFIX, /* uri:x* : `text` is "uri:x" */
	SPOKEI_CALLER_USER,
	SPOKEI_CALLER_GROUP,
	SPOKEI_CALLER_ADDRESS,
	SPOKEI_CALLER_TOKEN,
};

struct spokei_caller_rule {
	enum spokei_caller_kind kind;
	uint32_t id;
	struct spoke_span text;
	struct spokei_range range;
};

struct spokei_callers {
	size_t size;     /* of this struct, with the rules and their texts */
	uint64_t number; /* tells the list from all others of its owner, earlier ones too */
	size_t count;
	struct spokei_caller_rule rules[];
};

/* Makes a list from entries that are separated by commas; "all" makes NULL, which lets all in.
 * Returns 0, SPOKE_ENOMEM, or SPOKE_EINVAL with a sentence about the first entry that is wrong,
 * e.g. "entry 2, uid:x: ...". */
SPOKE_MUST_USE int spokei_callers_new(const struct spoke_env *env, const char *text,
				      uint64_t number, struct spokei_callers **ret_callers,
				      char why[SPOKEI_CALLERS_WHY]);

/* Reads the number of a user or a group. Returns false if it is none: the largest one stands for no
 * user at all. */
SPOKE_MUST_USE bool spokei_caller_id(struct spoke_span digits, uint32_t *ret_id);

/* NULL is fine. */
void spokei_callers_free(const struct spoke_env *env, struct spokei_callers *callers);

/* Returns whether an entry asks for the address of the caller. `callers` may be NULL. */
bool spokei_callers_ask_address(const struct spokei_callers *callers);

/* Returns whether the list shuts out any host: a range of all addresses lets in every one. NULL:
 * no.
 */
bool spokei_callers_limit_hosts(const struct spokei_callers *callers);

/* Returns whether the list fits a peer; `identity` may be NULL. */
bool spokei_callers_fit(const struct spokei_callers *callers, const struct spoke_env *env,
			const struct spokei_identity *identity, const struct spoke_address *peer);

#endif
