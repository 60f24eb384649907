/* SPDX-License-Identifier: Apache-2.0 */
/*
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
#ifndef SPOKEI_TRANSPORT_CONN_CALLERS_H
#define SPOKEI_TRANSPORT_CONN_CALLERS_H

#include "core/text/range.h"

#define SPOKEI_CALLERS_MAX 64u  /* entries of a list */
#define SPOKEI_CALLERS_WHY 320u /* bytes of a sentence, with the NUL */

struct spokei_conn;
struct spokei_identity;

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

/* Returns whether the list lets in the peer of a connection, which remembers it; *ret_new: this is
 * the first time. `callers` NULL: all are let in. */
bool spokei_callers_let_in(const struct spokei_callers *callers, struct spokei_conn *conn,
			   bool *ret_new);

#endif
