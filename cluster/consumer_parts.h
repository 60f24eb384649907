/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer inside: its endpoints, its methods, the calls that are under way. On the engine's
 * thread.
 */
#ifndef SPOKEI_CONSUMER_PARTS_H
#define SPOKEI_CONSUMER_PARTS_H

#include "cluster/desk.h"
#include "cluster/service.h"
#include "cluster/settings.h"
#include "core/roll.h"
#include "core/slab.h"

struct spokei_endpoint {
	struct spoke_consumer *consumer;
	struct spokei_connector *connector; /* NULL: freed */
};

struct spoke_method {
	struct spoke_consumer *consumer;
	struct spoke_list node;        /* of the consumer */
	struct spokei_message request; /* what every request says; points into `texts` */
	struct spokei_prefix {
		const struct spokei_wire *wire; /* the prefix is of this one; NULL: none yet */
		struct spokei_buffer bytes;
	} prefix;
	uint64_t timeout_ns;
	size_t type_count; /* of a generic call, if they are given: as many arguments */
	size_t size;       /* of this, with its texts */
	unsigned char texts[];
};

struct spoke_consumer {
	struct spoke_engine *engine;
	struct spokei_link link;
	struct spokei_member member; /* of the engine's roll */
	struct spokei_consumer_settings settings;
	struct spokei_slab calls; /* of struct spokei_call, by handle */
	struct spoke_list methods;
	_Atomic(struct spokei_desk *) desk; /* where futures reach it; NULL: it never had one */
	size_t size;                        /* of this, with its endpoints */
	size_t endpoint_count;
	size_t turn; /* endpoint to ask next */
	bool closed; /* no more calls */
	bool ended;  /* and no connections */
	bool freed;  /* gone when the last connection is */
	struct spokei_task bury;
	struct spokei_route pushed; /* who serves what providers push */
	struct spokei_endpoint endpoints[];
};

/* Ends all that the consumer does. */
void spokei_consumer_end(struct spoke_consumer *consumer);

/* The connection to call on: one of the best grade there is, each in its turn; NULL: all wait for
 * their next attempt, or take no calls. */
struct spokei_conn *spokei_consumer_pick(struct spoke_consumer *consumer);

#endif
