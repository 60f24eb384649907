/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a gateway: the things that it keeps are counted again after its turns, and the times by
 * which it has to act are compared with the bytes on the network.
 */
#include "tests/sim/gateway.h"

#include "cluster/comet/comet.h"

#include <inttypes.h>
#include <stdlib.h>

#define SLACK_NS (4 * MS) /* ticks of the wheel, and times in whole ms */
#define LINGER_NS (SPOKEI_COMET_LINGER_MS * MS)
#define COUNT_EVERY 32u /* turns */
#define MESSAGES_MAX 4096u
#define IDLE_TURNS 60u /* in a row */
#define SPREAD_MIN 8u  /* connections that do not end in the same tenth by chance */
#define HTTP_BYTES UINT64_C(131072)
#define SPARE_BYTES UINT64_C(1048576) /* of the engine, slabs and lists */

/* --- the network */

void sim_gateway_observe(void *arg, const struct spokei_vnet_news *news)
{
	struct sim_gateway *gateway = arg;
	struct sim_gate *gate;

	if (news->user == &gateway->browser.user && news->act == SPOKEI_VNET_CONNECT)
		*news->note = &gateway->fds[news->fd];
	if (news->user != &gateway->virt.user || news->fd < 0)
		return;
	if (news->fd >= SIM_FDS)
		abort();
	gate = &gateway->gates[news->fd];
	gateway->progress += news->act != SPOKEI_VNET_ARRIVE;
	if (news->act == SPOKEI_VNET_ACCEPT)
		*gate = (struct sim_gate){
			.open = true,
			.page_fd = (int)((const char *)*news->peer_note - gateway->fds),
			.wrote_ns = sim_gateway_now(gateway),
		};
	else if (news->act == SPOKEI_VNET_WRITE)
		gate->wrote_ns = sim_gateway_now(gateway);
	else if (news->act == SPOKEI_VNET_CLOSE)
		gate->open = false;
}

/* --- one connection in time */

/* Is it over since that time, although the gateway was not held up? */
static bool is_over(const struct sim_gateway *gateway, uint64_t due_ns)
{
	const uint64_t now_ns = sim_gateway_now(gateway);

	return now_ns > due_ns + SLACK_NS && now_ns > gateway->calm_ns + SLACK_NS &&
	       gateway->virt.held_until_ns <= now_ns;
}

static void check_life(struct sim_gateway *gateway, const struct spokei_comet_conn *conn,
		       const struct sim_gate *gate)
{
	uint64_t life_ns = conn->kind == SPOKE_COMET_POLL ? gateway->with.poll_ns
							  : gateway->with.life_ns / 10 * 11;

	if (is_over(gateway, gate->since_ns + life_ns))
		sim_violation(&gateway->world, SIM_S46,
			      "connection %d, kind %u, is open for %" PRIu64 " us", conn->watch.fd,
			      conn->kind, (sim_gateway_now(gateway) - gate->since_ns) / 1000);
	if (gateway->drain_ns && is_over(gateway, gateway->drain_ns + gateway->with.drain_ns))
		sim_violation(&gateway->world, SIM_L10,
			      "connection %d was not told of the drain in its time",
			      conn->watch.fd);
}

static void check_silence(struct sim_gateway *gateway, const struct spokei_comet_conn *conn,
			  const struct sim_gate *gate)
{
	if (spokei_comet_behind(conn)) {
		if (is_over(gateway, gate->waits_ns + gateway->with.slow_ns))
			sim_violation(&gateway->world, SIM_S49,
				      "output of connection %d waits for %" PRIu64 " us",
				      conn->watch.fd,
				      (sim_gateway_now(gateway) - gate->waits_ns) / 1000);
	} else if (conn->kind != SPOKE_COMET_POLL &&
		   is_over(gateway, gate->wrote_ns + gateway->with.keepalive_ns)) {
		sim_violation(&gateway->world, SIM_S47,
			      "nothing was written to connection %d for %" PRIu64 " us",
			      conn->watch.fd, (sim_gateway_now(gateway) - gate->wrote_ns) / 1000);
	}
}

/* A connection begins to end. During a drain the time is noted, except of long polls, which a
 * message may end before, and of connections whose life may be over: they began together. */
static void note_end(struct sim_gateway *gateway, const struct spokei_comet_conn *conn,
		     struct sim_gate *gate)
{
	const uint64_t now_ns = sim_gateway_now(gateway);
	uint64_t tenth;

	gate->ends_ns = now_ns;
	if (gateway->drain_ns == 0 || !conn->drains || conn->kind == SPOKE_COMET_POLL ||
	    now_ns >= gate->since_ns + gateway->with.life_ns / 10 * 9)
		return;
	tenth = (now_ns - gateway->drain_ns) * SIM_TENTHS / gateway->with.drain_ns;
	gateway->ended[tenth < SIM_TENTHS ? tenth : SIM_TENTHS - 1]++;
	gateway->drain_count++;
}

static void check_conn(struct sim_gateway *gateway, const struct spokei_comet_conn *conn)
{
	struct sim_gate *gate = &gateway->gates[conn->watch.fd];
	const bool waited = gate->waits;

	if (!spoke_timer_armed(&conn->timer))
		sim_violation(&gateway->world, SIM_S44, "connection %d has no timer",
			      conn->watch.fd);
	if (!gate->seen)
		gate->since_ns = sim_gateway_now(gateway);
	gate->seen = true;
	if (!gate->waits || gate->wrote_ns > gate->waits_ns)
		gate->waits_ns = sim_gateway_now(gateway);
	gate->waits = spokei_comet_behind(conn);
	if (conn->state == SPOKEI_COMET_ENDING) {
		if (gate->ends_ns == 0)
			note_end(gateway, conn, gate);
		/* The rest of its output has the time of any output. The client has its own time
		 * from the turn on that has written the last of it. */
		if (gate->waits || waited)
			gate->ends_ns = sim_gateway_now(gateway);
		if (gate->waits) {
			check_silence(gateway, conn, gate);
		} else if (is_over(gateway, gate->ends_ns + LINGER_NS)) {
			sim_violation(&gateway->world, SIM_S46,
				      "connection %d ends, and is not closed", conn->watch.fd);
		}
		return;
	}
	check_life(gateway, conn, gate);
	check_silence(gateway, conn, gate);
}

/* --- timers and requests */

static uint32_t check_conns(struct sim_gateway *gateway)
{
	const struct spoke_comet *comet = gateway->comet;
	struct spoke_wheel_counts counts = { 0 };
	uint32_t conns = 0;

	for (uint32_t i = 0; i < comet->used; i++) {
		const struct spokei_comet_conn *conn = spokei_comet_cell(comet, i);

		if (conn->state == SPOKEI_COMET_FREE)
			continue;
		conns++;
		check_conn(gateway, conn);
	}
	if (spoke_wheel_class_counts(gateway->engine->wheel, comet->timer_class, &counts, NULL) ||
	    counts.pending != conns)
		sim_violation(&gateway->world, SIM_S44, "%u connections have %" PRIu64 " timers",
			      conns, (uint64_t)counts.pending);
	return conns;
}

static void check_asking(struct sim_gateway *gateway)
{
	const uint64_t asking = gateway->comet->figures[SPOKE_COMET_FIGURE_ASKING];
	uint64_t waiting = 0;

	if (asking == 0)
		return;
	for (unsigned i = 0; i < gateway->waiting_count; i++) {
		const struct sim_asked *asked = &gateway->asked[gateway->waiting[i]];

		waiting += !asked->answered &&
			   !is_over(gateway, asked->since_ns + gateway->with.authorize_ns);
	}
	if (asking > waiting)
		sim_violation(&gateway->world, SIM_S48,
			      "%" PRIu64 " requests wait, but only %" PRIu64
			      " may wait for the authorizer",
			      asking, waiting);
}

/* --- messages */

/* All references to messages, by rings and by connections. */
struct holders {
	struct spokei_comet_message *of[MESSAGES_MAX];
	unsigned count;
	uint64_t bytes;
};

static void hold(struct holders *holders, struct spokei_comet_message *message)
{
	if (holders->count == MESSAGES_MAX)
		abort();
	holders->of[holders->count++] = message;
}

static void hold_conns(const struct spoke_comet *comet, struct holders *holders)
{
	for (uint32_t i = 0; i < comet->used; i++) {
		const struct spokei_comet_conn *conn = spokei_comet_cell(comet, i);
		const struct spokei_comet_more *more = conn->more;

		if (conn->state == SPOKEI_COMET_FREE || more == NULL)
			continue;
		holders->bytes += sizeof(*more) + more->in_room;
		if (more->out && more->message)
			hold(holders, more->message);
		else if (more->out)
			holders->bytes += more->out_len;
	}
}

static void check_ring(struct sim_gateway *gateway, const struct spokei_comet_ring *ring,
		       struct holders *holders)
{
	const struct spoke_comet_options *with = &gateway->comet->with;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ring->count; i++) {
		struct spokei_comet_message *message = spokei_comet_ring_at(ring, i);

		hold(holders, message);
		bytes += message->data_len;
		if (is_over(gateway, message->born_ns + 2 * with->ring_ns))
			sim_violation(&gateway->world, SIM_S43, "message %" PRIu64 " is too old",
				      message->number);
	}
	if (bytes != ring->bytes ||
	    ring->count > (ring->user ? with->ring_messages : with->all_messages) ||
	    (ring->count > 1 && bytes > (ring->user ? with->ring_bytes : with->all_bytes)))
		sim_violation(&gateway->world, SIM_S45,
			      "a ring has %u messages with %" PRIu64 " bytes, and counts %u",
			      ring->count, bytes, ring->bytes);
}

static int by_address(const void *a, const void *b)
{
	const uintptr_t left = (uintptr_t) * (struct spokei_comet_message *const *)a;
	const uintptr_t right = (uintptr_t) * (struct spokei_comet_message *const *)b;

	return (left > right) - (left < right);
}

/* Compares the references of each message with those that there are. */
static void check_references(struct sim_gateway *gateway, struct holders *holders)
{
	const uint64_t *figures = gateway->comet->figures;
	uint64_t messages = 0;
	unsigned end;

	qsort(holders->of, holders->count, sizeof(holders->of[0]), by_address);
	for (unsigned i = 0; i < holders->count; i = end) {
		const struct spokei_comet_message *message = holders->of[i];

		for (end = i; end < holders->count && holders->of[end] == message; end++)
			continue;
		messages++;
		holders->bytes += sizeof(*message) + message->event_len + message->data_len;
		for (unsigned k = 0; k < SPOKEI_COMET_FORMS; k++)
			holders->bytes += message->form_len[k];
		if (message->refs != end - i)
			sim_violation(&gateway->world, SIM_S43,
				      "message %" PRIu64 " has %u references, and counts %u",
				      message->number, end - i, message->refs);
	}
	if (messages != figures[SPOKE_COMET_FIGURE_MESSAGES] ||
	    holders->bytes != figures[SPOKE_COMET_FIGURE_BYTES])
		sim_violation(&gateway->world, SIM_S43,
			      "%" PRIu64 " messages and %" PRIu64 " bytes are held, but %" PRIu64
			      " and %" PRIu64 " are counted",
			      messages, holders->bytes, figures[SPOKE_COMET_FIGURE_MESSAGES],
			      figures[SPOKE_COMET_FIGURE_BYTES]);
}

static void check_messages(struct sim_gateway *gateway)
{
	static struct holders holders;
	const struct spoke_comet *comet = gateway->comet;

	holders.count = 0;
	holders.bytes = 0;
	for (struct spoke_list *at = comet->rings.next; at != &comet->rings; at = at->next)
		check_ring(gateway, spoke_container_of(at, struct spokei_comet_ring, node),
			   &holders);
	hold_conns(comet, &holders);
	check_references(gateway, &holders);
}

/* Returns the number of connections that still speak HTTP. */
static uint32_t count_https(const struct spoke_comet *comet)
{
	uint32_t count = 0;

	for (const struct spoke_list *node = comet->http.conns.next; node != &comet->http.conns;
	     node = node->next)
		count++;
	return count;
}

/* --- limits */

static void check_limits(struct sim_gateway *gateway, uint32_t conns)
{
	const struct spoke_comet *comet = gateway->comet;
	const struct spoke_comet_options *with = &comet->with;
	const uint64_t *figures = comet->figures;
	const uint64_t ring_bytes = sizeof(struct spokei_comet_ring) +
				    2 * sizeof(void *) * (uint64_t)with->ring_messages;
	const uint32_t https = count_https(comet);
	uint64_t users = 0;
	uint64_t most;

	for (uint32_t i = 0; i < comet->bucket_count; i++) {
		for (const struct spokei_comet_user *user = comet->buckets[i]; user;
		     user = user->chain) {
			users++;
			if (user->count > with->connections_per_user_max)
				sim_violation(&gateway->world, SIM_S45, "a user has %u connections",
					      user->count);
		}
	}
	if (users > with->users_max || conns + https > with->connections_max ||
	    figures[SPOKE_COMET_FIGURE_BYTES] > with->bytes_max)
		sim_violation(&gateway->world, SIM_S45,
			      "%" PRIu64 " users, %u connections, %" PRIu64 " bytes", users,
			      conns + https, figures[SPOKE_COMET_FIGURE_BYTES]);
	most = gateway->base_bytes + figures[SPOKE_COMET_FIGURE_BYTES] +
	       comet->chunk_count * SPOKEI_COMET_CHUNK * sizeof(struct spokei_comet_conn) +
	       users * (sizeof(struct spokei_comet_user) + 16 + ring_bytes) + https * HTTP_BYTES +
	       2 * sizeof(void *) * (uint64_t)with->all_messages + SPARE_BYTES;
	if (gateway->virt.bytes > most)
		sim_violation(&gateway->world, SIM_S45, "the gateway uses %" PRIu64 " bytes",
			      gateway->virt.bytes);
}

/* --- at its turns, and in between */

static bool exists(const struct sim_gateway *gateway)
{
	return gateway->engine && gateway->comet && !gateway->comet->closed;
}

static void check_all(struct sim_gateway *gateway)
{
	uint32_t conns = check_conns(gateway);

	check_asking(gateway);
	check_messages(gateway);
	check_limits(gateway, conns);
}

/* Timers that only look, and find nothing to do, are rare. */
static void check_spin(struct sim_gateway *gateway)
{
	gateway->idle_turns = gateway->progress == gateway->seen_progress ? gateway->idle_turns + 1
									  : 0;
	gateway->seen_progress = gateway->progress;
	if (gateway->idle_turns > IDLE_TURNS)
		sim_violation(&gateway->world, SIM_L3, "the gateway turns without progress");
}

void sim_gateway_turned(struct spokei_world_process *virt)
{
	struct sim_gateway *gateway = spoke_container_of(virt, struct sim_gateway, virt);

	check_spin(gateway);
	if (!exists(gateway))
		return;
	if (++gateway->turns % COUNT_EVERY == 0)
		check_all(gateway);
	else
		(void)check_conns(gateway);
}

/* Checks that a drain ends in time, and that its reconnects were spread. Kicks end connections at
 * one time. */
static void check_drain(struct sim_gateway *gateway)
{
	if (gateway->drain_ns == 0)
		return;
	if (!gateway->engine->drained) {
		if (is_over(gateway, gateway->drained_ns))
			sim_violation(&gateway->world, SIM_L10,
				      "the gateway is not drained: %u connections, %u requests, "
				      "closed: %u",
				      gateway->comet->quota.count, count_https(gateway->comet),
				      gateway->comet->closed);
		return;
	}
	for (unsigned i = 0; i < SIM_TENTHS; i++)
		if (gateway->drain_count >= SPREAD_MIN &&
		    gateway->ended[i] == gateway->drain_count &&
		    gateway->calm_ns < gateway->drain_ns && gateway->kicked_ns < gateway->drain_ns)
			sim_violation(&gateway->world, SIM_L10,
				      "%u connections end in the same tenth of the drain",
				      gateway->drain_count);
}

void sim_gateway_check(struct sim_gateway *gateway)
{
	if (gateway->engine == NULL)
		return;
	check_drain(gateway);
	if (exists(gateway) && gateway->virt.held_until_ns <= sim_gateway_now(gateway))
		check_all(gateway);
}

void sim_gateway_check_end(struct sim_gateway *gateway)
{
	if (gateway->virt.blocks || gateway->virt.bytes || gateway->virt.user.fds)
		sim_violation(&gateway->world, SIM_S18,
			      "the gateway leaks %" PRIu64 " blocks and %u descriptors",
			      gateway->virt.blocks, gateway->virt.user.fds);
}

void sim_gateway_check_quiet(struct sim_gateway *gateway)
{
	const uint64_t *figures = gateway->comet->figures;

	if (figures[SPOKE_COMET_FIGURE_MESSAGES] || figures[SPOKE_COMET_FIGURE_BYTES])
		sim_violation(&gateway->world, SIM_S43,
			      "%" PRIu64 " messages with %" PRIu64 " bytes are left",
			      figures[SPOKE_COMET_FIGURE_MESSAGES],
			      figures[SPOKE_COMET_FIGURE_BYTES]);
}
