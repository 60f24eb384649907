/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners of one owner, with the limits that they share; and how owners on several engines
 * listen together. At a shared port the kernel distributes connections, and each engine has a
 * socket of its own. At a path, and at a port if wanted, only the first engine accepts, and hands
 * the connections out in turn, to itself too.
 *
 * On the engine's thread, except where another one is named.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_GROUP_H
#define SPOKEI_TRANSPORT_LISTEN_GROUP_H

#include "transport/listen/listener.h"

#define SPOKEI_LISTENERS_MAX 64u /* of a group, with those joined */

struct spokei_bucket;
struct spokei_listen_group;

/* Whether other groups may listen at the same address. */
enum spokei_listen_sharing {
	SPOKEI_LISTEN_ALONE,
	SPOKEI_LISTEN_BY_KERNEL,  /* each with a socket of its own */
	SPOKEI_LISTEN_BY_HANDOFF, /* by handing accepted connections over */
};

struct spokei_listen_options {
	struct spokei_quota_limits limits;
	/* Takes a connection and its descriptor. The owner calls spokei_listen_group_left() once
	 * the connection has ended, or could not be served. */
	spokei_accept accept;
	spokei_make_room make_room;   /* see spokei_quota_give_way() */
	void *arg;                    /* of both */
	struct spokei_bucket *events; /* limits the events about connections; borrowed */
};

/* Makes a group that listens nowhere. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_listen_group_new(struct spoke_engine *engine,
					   const struct spokei_listen_options *options,
					   struct spokei_listen_group **ret_group);

/* Changes the limits; connections that exist stay. */
void spokei_listen_group_limit(struct spokei_listen_group *group,
			       const struct spokei_quota_limits *limits);

/* Accepts nothing until it is let go: clients wait in the backlog. */
void spokei_listen_group_hold(struct spokei_listen_group *group, bool held);

/* An address to listen at. */
struct spokei_listen_at {
	const struct spoke_address *address;
	enum spokei_listen_sharing sharing;
	unsigned marks;             /* come with each connection */
	struct spokei_rules *rules; /* of this address; NULL: only those of the group */
	bool has_mode;
	uint32_t mode; /* permission bits of the path, for an environment with listen_mode() */
};

/* Listens at one more address, and takes over its rules. Returns as spokei_listener_new(), or
 * SPOKE_ELIMIT for too many; after an error the rules are the caller's. */
SPOKE_MUST_USE int spokei_listen_group_open(struct spokei_listen_group *group,
					    const struct spokei_listen_at *at);

/* Replaces the rules of all addresses of the group, and takes them over; NULL: all peers may
 * connect. Connections that exist stay. */
void spokei_listen_group_rule(struct spokei_listen_group *group, struct spokei_rules *rules);

/* Returns the rules of all addresses of the group, and those that an address has in addition; NULL:
 * there are none. */
const struct spokei_rules *spokei_listen_group_rules(const struct spokei_listen_group *group);
const struct spokei_rules *spokei_listen_group_rules_at(const struct spokei_listen_group *group,
							size_t index);

/*
 * Listens wherever `first`, a group of another engine, shares its addresses, and takes the
 * connections that it hands over. `first` lives until the function returns. Returns as
 * spokei_listen_group_open(), or SPOKE_ECLOSED; then nothing is joined.
 */
SPOKE_MUST_USE int spokei_listen_group_join(struct spokei_listen_group *group,
					    struct spokei_listen_group *first);

/* Returns how many addresses the group shares. Any thread. */
size_t spokei_listen_group_shared(const struct spokei_listen_group *group);

/* Returns whether the group has stopped listening, so that it cannot be joined. Any thread. */
bool spokei_listen_group_stopped(const struct spokei_listen_group *group);

/* Returns whether the group has joined another one. */
bool spokei_listen_group_joined(const struct spokei_listen_group *group);

/* Returns how many addresses the group listens at, and of these how many are its own, which come
 * first; the others were joined. */
size_t spokei_listen_group_count(const struct spokei_listen_group *group);
size_t spokei_listen_group_own(const struct spokei_listen_group *group);

/* Returns an address, with the port that the kernel chose. */
const struct spoke_address *spokei_listen_group_address(const struct spokei_listen_group *group,
							size_t index);

/* Returns the marks of an address. */
unsigned spokei_listen_group_marks(const struct spokei_listen_group *group, size_t index);
/* Prints an address, e.g. "127.0.0.1:20880", "unix:PATH" or "shm:PATH", cut to `size` with the NUL.
 */
void spokei_listen_group_print(const struct spokei_listen_group *group, size_t index, char *text,
			       size_t size);

/* Returns the limits of connections, and how many there are. */
const struct spokei_quota *spokei_listen_group_quota(const struct spokei_listen_group *group);

/* Returns the peer in the quota of a connection that is being accepted. */
struct spokei_quota_peer *spokei_listen_group_peer(const struct spokei_listen_group *group,
						   const struct spoke_address *peer);

/* Counts out a connection that has ended, by its peer in the quota. */
void spokei_listen_group_left(struct spokei_listen_group *group,
			      struct spokei_quota_peer *quota_peer);

/* Accepts the connections already in the listen backlog, and those that were handed over; hands
 * new ones to other groups first. None is handed over to this group any more. */
void spokei_listen_group_drain(struct spokei_listen_group *group);

/* Stops listening. Connections on their way to this group are closed. */
void spokei_listen_group_stop(struct spokei_listen_group *group);

/* Frees a group that was stopped and has no connections. Returns false while another thread uses it
 * for a moment: try again. NULL is fine. */
SPOKE_MUST_USE bool spokei_listen_group_free(struct spokei_listen_group *group);

#endif
