/* SPDX-License-Identifier: Apache-2.0 */
/* Replication with a delay, ROLE and the sentinel. */
#include "tests/support/redis/parts.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)

/* --- writes on their way */

static void op_free(struct fakeredis_op *op)
{
	free(op->name);
	fakeredis_key_free(op->state);
	free(op);
}

static void forget(struct fakeredis_replica *replica)
{
	while (replica->first) {
		struct fakeredis_op *op = replica->first;

		replica->first = op->next;
		op_free(op);
	}
	*replica = (struct fakeredis_replica){ 0 };
}

void fakeredis_forget_replicas(struct fakeredis *server)
{
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		forget(&server->replicas[i]);
}

static void put_op(struct fakeredis *server, struct fakeredis_replica *replica, unsigned db,
		   struct spoke_span name, const struct fakeredis_key *key)
{
	struct fakeredis_op *op = calloc(1, sizeof(*op));

	SPOKE_ASSERT(op != NULL && server->offset - replica->acked < FAKEREDIS_OPS_MAX);
	op->due_ns = server->process.world->now_ns + replica->delay_ns;
	op->offset = server->offset;
	op->db = db;
	op->name = fakeredis_text_new(name);
	op->state = key ? fakeredis_key_copy(key) : NULL;
	if (replica->last)
		replica->last->next = op;
	else
		replica->first = op;
	replica->last = op;
}

void fakeredis_wrote(struct fakeredis *server, unsigned db, struct spoke_span name,
		     const struct fakeredis_key *key)
{
	server->offset++;
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		if (server->replicas[i].server)
			put_op(server, &server->replicas[i], db, name, key);
}

/* Returns the next thing that is to happen to an operation, or NULL. */
static bool is_still(const struct fakeredis_replica *replica, uint64_t now_ns)
{
	const struct fakeredis *server = replica->server;

	return replica->cut || !server->running || server->process.held_until_ns > now_ns;
}

static void move(struct fakeredis *server, struct fakeredis_replica *replica)
{
	uint64_t now_ns = server->process.world->now_ns;

	if (is_still(replica, now_ns))
		return;
	for (struct fakeredis_op *op = replica->first; op && op->due_ns <= now_ns; op = op->next) {
		if (op->arrived)
			continue;
		fakeredis_replace(replica->server, op->db, fakeredis_span(op->name), op->state);
		replica->server->offset = replica->applied = op->offset;
		op->arrived = true;
	}
	while (replica->first && replica->first->arrived &&
	       replica->first->due_ns + replica->delay_ns <= now_ns) {
		struct fakeredis_op *op = replica->first;

		replica->acked = op->offset;
		replica->first = op->next;
		if (op->next == NULL)
			replica->last = NULL;
		op_free(op);
	}
}

void fakeredis_replicate(struct fakeredis *server)
{
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		if (server->replicas[i].server)
			move(server, &server->replicas[i]);
}

static uint64_t next_of(const struct fakeredis_replica *replica, uint64_t now_ns)
{
	const struct fakeredis_op *op = replica->first;
	uint64_t next_ns;

	if (op == NULL || replica->cut || !replica->server->running)
		return UINT64_MAX;
	if (is_still(replica, now_ns))
		return replica->server->process.held_until_ns;
	next_ns = op->arrived ? op->due_ns + replica->delay_ns : op->due_ns;
	while (op && op->arrived)
		op = op->next;
	return op && op->due_ns < next_ns ? op->due_ns : next_ns;
}

uint64_t fakeredis_replicate_next(const struct fakeredis *server)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++) {
		const struct fakeredis_replica *replica = &server->replicas[i];
		uint64_t one_ns = replica->server ? next_of(replica, server->process.world->now_ns)
						  : UINT64_MAX;

		next_ns = one_ns < next_ns ? one_ns : next_ns;
	}
	return next_ns;
}

/* --- ROLE */

static void role_of_sentinel(struct fakeredis_command *command)
{
	fakeredis_array(command->conn, 2);
	fakeredis_bulk(command->conn, fakeredis_of("sentinel"));
	fakeredis_array(command->conn, 1);
	fakeredis_bulk(command->conn, fakeredis_of(command->server->sentinel));
}

static void role_of_replica(struct fakeredis_command *command)
{
	const struct fakeredis *primary = command->server->primary;
	int64_t port = 0;

	(void)fakeredis_number(fakeredis_of(primary->port), &port);
	fakeredis_array(command->conn, 5);
	fakeredis_bulk(command->conn, fakeredis_of("slave"));
	fakeredis_bulk(command->conn, fakeredis_of(primary->host));
	fakeredis_integer(command->conn, port);
	fakeredis_bulk(command->conn, fakeredis_of("connected"));
	fakeredis_integer(command->conn, (int64_t)command->server->offset);
}

void fakeredis_role(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;
	unsigned count = 0;

	if (server->sentinel) {
		role_of_sentinel(command);
		return;
	}
	if (server->primary) {
		role_of_replica(command);
		return;
	}
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		count += server->replicas[i].server != NULL;
	fakeredis_array(command->conn, 3);
	fakeredis_bulk(command->conn, fakeredis_of("master"));
	fakeredis_integer(command->conn, (int64_t)server->offset);
	fakeredis_array(command->conn, count);
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++) {
		char offset[24];

		if (server->replicas[i].server == NULL)
			continue;
		(void)snprintf(offset, sizeof(offset), "%llu",
			       (unsigned long long)server->replicas[i].acked);
		fakeredis_array(command->conn, 3);
		fakeredis_bulk(command->conn, fakeredis_of(server->replicas[i].server->host));
		fakeredis_bulk(command->conn, fakeredis_of(server->replicas[i].server->port));
		fakeredis_bulk(command->conn, fakeredis_of(offset));
	}
}

/* --- for tests */

void fakeredis_follow(struct fakeredis *replica, struct fakeredis *primary, uint64_t delay_ns)
{
	struct fakeredis_replica *place = primary->replicas;

	SPOKE_ASSERT(replica != primary && replica->primary == NULL);
	while (place->server) {
		place++;
		SPOKE_ASSERT(place < primary->replicas + FAKEREDIS_REPLICAS);
	}
	*place = (struct fakeredis_replica){ .server = replica,
					     .delay_ns = delay_ns,
					     .applied = primary->offset,
					     .acked = primary->offset };
	fakeredis_forget_replicas(replica);
	fakeredis_wipe(replica);
	for (unsigned i = 0; i < FAKEREDIS_BUCKETS; i++)
		for (struct fakeredis_key *key = primary->keys[i]; key; key = key->next)
			fakeredis_replace(replica, key->db, fakeredis_span(key->name), key);
	replica->primary = primary;
	replica->offset = primary->offset;
}

static struct fakeredis_replica *place_of(struct fakeredis *replica)
{
	struct fakeredis_replica *place = replica->primary->replicas;

	while (place->server != replica)
		place++;
	return place;
}

void fakeredis_cut_off(struct fakeredis *replica, bool cut)
{
	place_of(replica)->cut = cut;
}

void fakeredis_promote(struct fakeredis *replica)
{
	forget(place_of(replica));
	replica->primary = NULL;
}

/* --- the sentinel */

void fakeredis_switch(struct fakeredis *sentinel, struct fakeredis *primary)
{
	const struct fakeredis *old = sentinel->watched;
	char message[256];

	sentinel->watched = primary;
	(void)snprintf(message, sizeof(message), "%s %s %s %s %s", sentinel->sentinel, old->host,
		       old->port, primary->host, primary->port);
	(void)fakeredis_publish(sentinel, "+switch-master", message);
}

void fakeredis_sentinel(struct fakeredis_command *command)
{
	const struct fakeredis *server = command->server;

	if (!fakeredis_is(command->args[1], "GET-MASTER-ADDR-BY-NAME") || command->count != 3) {
		fakeredis_error(command->conn, "ERR unknown subcommand. Try SENTINEL HELP.");
	} else if (fakeredis_same(command->args[2], fakeredis_of(server->sentinel))) {
		fakeredis_array(command->conn, 2);
		fakeredis_bulk(command->conn, fakeredis_of(server->watched->host));
		fakeredis_bulk(command->conn, fakeredis_of(server->watched->port));
	} else {
		fakeredis_raw(command->conn, "*-1\r\n", 5);
	}
}
