/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what follows an error reply of the store. Pure, any thread. */
#ifndef SPOKEI_CLUSTER_LEASE_REFUSAL_H
#define SPOKEI_CLUSTER_LEASE_REFUSAL_H

#include <spoke/value.h>

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
