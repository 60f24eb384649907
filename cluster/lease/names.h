/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that belong to a lease's name in the store. They are those of Redisson, so a Java
 * program with an RLock or RFencedLock of that name is a peer. Pure, any thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_NAMES_H
#define SPOKEI_CLUSTER_LEASE_NAMES_H

#include <spoke/lease.h>

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

#endif
