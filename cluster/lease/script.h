/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts that run in the store, in Lua. Each can be run again after a lost answer with the
 * same effect. Times are in ms. Constant; any thread.
 *
 * Keys: N is the name of the lease, a hash with one field, the holder; its value is how often it
 * holds; TOKEN its fencing counter; CHANNEL where a release is published. A holder is "UUID:n", and
 * no two leases have the same. All answers are arrays or integers:
 *
 *   ACQUIRE  keys N, TOKEN; ttl, holder -> {0, the counter, as number or text}: held, also if it
 *            was before; {1, PTTL of N}: another holds it (-1: without a time to live)
 *   RENEW    keys N, 1 to 128; holder, ttl for each -> for each 1: prolonged, or 0: not this
 *            holder's any more
 *   RELEASE  keys N, CHANNEL; holder -> 1: released now; 0: it was not this holder's
 *
 * A key N of another type makes ACQUIRE fail with WRONGTYPE; it is never deleted.
 */
#ifndef SPOKEI_CLUSTER_LEASE_SCRIPT_H
#define SPOKEI_CLUSTER_LEASE_SCRIPT_H

#include "cluster/lease/resp.h"

enum spokei_script {
	SPOKEI_SCRIPT_NONE,
	SPOKEI_SCRIPT_ACQUIRE,
	SPOKEI_SCRIPT_RENEW,
	SPOKEI_SCRIPT_RELEASE,
	SPOKEI_SCRIPTS,
};

#define SPOKEI_SCRIPT_RENEW_MAX 128u /* names of one RENEW, which takes the store about 200 us */

/* Returns the text of a script other than NONE. */
const char *spokei_script_text(enum spokei_script script);

/* Returns whether a reply, not an error, has the form of an answer of this script that was called
 * with so many keys; with NONE any has. */
bool spokei_script_answers(enum spokei_script script, unsigned keys,
			   struct spokei_resp_cursor reply);

/* Returns its name in messages, e.g. "acquire". */
const char *spokei_script_name(enum spokei_script script);

/* --- names that belong to a lease's name in the store */

enum spokei_lease_name {
	SPOKEI_LEASE_CHANNEL, /* a release is published here: redisson_lock__channel:{NAME} */
	SPOKEI_LEASE_TOKEN,   /* the fencing counter: redisson_lock_token:{NAME} */
};

/* The most bytes that are added to a name. */
#define SPOKEI_LEASE_NAME_MORE (sizeof("redisson_lock__channel:{}") - 1)

/*
 * Writes a derived name, without a NUL, into `to`, which has room for name.len +
 * SPOKEI_LEASE_NAME_MORE bytes. The name is put in braces, so that all keys of a lease have the
 * same hash slot, unless it contains "{" itself. Returns the length.
 */
size_t spokei_lease_name(char *to, enum spokei_lease_name which, struct spoke_span name);

/* --- error replies */

enum spokei_refusal {
	SPOKEI_REFUSAL_AGAIN,     /* ask again after a pause: the store is busy, loading or full */
	SPOKEI_REFUSAL_RELOAD,    /* the script is not loaded: the store was flushed or restarted */
	SPOKEI_REFUSAL_ELSEWHERE, /* this server is no primary: connect again */
	SPOKEI_REFUSAL_REFUSED,   /* it will not be accepted: tell the user */
};

/* Classifies the text of an error reply, e.g. "WRONGTYPE Operation against ...". */
enum spokei_refusal spokei_refusal_of(struct spoke_span text);

/*
 * Returns the part of an error's text that users are to see: that of the command which failed, if a
 * script of a server before Redis 7 reports it, and a text of this room for servers of a cluster.
 * Borrowed from `text`, or constant; bytes of the peer are not escaped.
 */
struct spoke_span spokei_refusal_text(struct spoke_span text);

#endif
