/* SPDX-License-Identifier: Apache-2.0 */
#include "core/virtual/net_wire.h"

#include "timer/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define SYN_TRIES_MAX 7u /* the last wait ends 127 s after the first */
#define CAPACITY 65536u

uint64_t memwire_dice(struct memnet *net)
{
	uint64_t z = (net->dice += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

bool memwire_chance(struct memnet *net, uint32_t permille)
{
	return permille > 0 && memwire_dice(net) % 1000 < permille;
}

/* --- sending */

/* When `len` bytes that this socket sends now arrive. */
static uint64_t arrival(struct memnet *net, struct memwire_socket *from, size_t len)
{
	const struct memnet_link *link = &from->out;
	uint64_t at_ns = net->now_ns;

	if (link->bytes_per_s > 0 && len > 0) {
		if (from->line_free_ns > at_ns)
			at_ns = from->line_free_ns;
		at_ns += len * NS_PER_S / link->bytes_per_s;
		from->line_free_ns = at_ns;
	}
	at_ns += link->latency_ns;
	if (link->jitter_ns > 0)
		at_ns += memwire_dice(net) % (link->jitter_ns + 1);
	if (at_ns < from->last_ns)
		at_ns = from->last_ns;
	from->last_ns = at_ns;
	return at_ns;
}

static void send_event(struct memnet *net, struct memwire_socket *from,
		       enum memwire_event_kind kind, size_t value)
{
	memwire_put_event(net, from->peer, kind, (uint32_t)value,
			  arrival(net, from, kind == MEMWIRE_DATA ? value : 0));
}

/* --- sockets */

struct memwire_socket *memwire_open(struct memnet *net, enum memwire_kind kind)
{
	struct memwire_socket *socket = calloc(1, sizeof(*socket));

	SPOKE_ASSERT(socket != NULL);
	socket->kind = kind;
	socket->fd = -1;
	socket->out = net->options.link;
	socket->prev = net->all.prev;
	socket->next = &net->all;
	socket->prev->next = socket;
	net->all.prev = socket;
	return socket;
}

struct memwire_socket *memwire_socket_of(const struct memnet *net, int fd)
{
	SPOKE_ASSERT(fd >= 0 && fd < MEMWIRE_FDS_MAX);
	SPOKE_ASSERT(net->fds[fd] != NULL);
	return net->fds[fd];
}

/* Puts a socket aside that nothing leads to any more; memwire_settle() frees it. */
static void put_aside(struct memnet *net, struct memwire_socket *socket)
{
	socket->prev->next = socket->next;
	socket->next->prev = socket->prev;
	socket->next = net->unused;
	net->unused = socket;
}

static void put_aside_if_unused(struct memnet *net, struct memwire_socket *socket)
{
	struct memwire_socket *peer = socket->peer;

	if (!socket->gone || socket->coming > 0 || (peer && (!peer->gone || peer->coming > 0)))
		return;
	if (peer && peer != socket)
		put_aside(net, peer);
	put_aside(net, socket);
}

void memwire_free_unused(struct memnet *net)
{
	while (net->unused) {
		struct memwire_socket *socket = net->unused;

		net->unused = socket->next;
		free(socket->bytes);
		free(socket);
	}
}

static void drop_held(struct memnet *net, struct memwire_socket *socket)
{
	if (socket->held > 0 || socket->held_end)
		net->holding--;
	socket->held = 0;
	socket->held_end = false;
}

static void close_stream(struct memnet *net, struct memwire_socket *socket)
{
	if (socket->peer && !socket->reset) {
		if (socket->arrived > 0 || socket->kind == MEMWIRE_CONNECTING)
			send_event(net, socket, MEMWIRE_RST, 0);
		else if (!socket->shut)
			send_event(net, socket, MEMWIRE_FIN, 0);
	}
	drop_held(net, socket);
	socket->len = 0;
	socket->arrived = 0;
}

void memwire_close(struct memnet *net, struct memwire_socket *socket)
{
	SPOKE_ASSERT(!socket->gone);
	memwire_touch(socket->peer);
	memwire_tell(net, MEMNET_CLOSE, socket, NULL, 0);
	socket->gone = true;
	while (socket->queued > 0) {
		struct memwire_socket *waiting = memwire_accept(socket);

		waiting->gone = true;
		if (!waiting->reset)
			send_event(net, waiting, MEMWIRE_RST, 0);
		drop_held(net, waiting);
		put_aside_if_unused(net, waiting);
	}
	close_stream(net, socket);
	put_aside_if_unused(net, socket);
}

enum memnet_route memwire_route_of(struct memnet *net, const char *name)
{
	SPOKE_ASSERT(name != NULL);
	for (const struct memwire_route *one = net->routes; one; one = one->next) {
		if (strcmp(one->name, name) == 0)
			return one->route;
	}
	return MEMNET_NORMAL;
}

void memwire_break(struct memnet *net, struct memwire_socket *socket, int error)
{
	if (socket->gone || socket->reset)
		return;
	socket->kind = MEMWIRE_STREAM;
	socket->reset = true;
	socket->error = error;
	memwire_touch(socket);
	memwire_tell(net, MEMNET_END, socket, NULL, 0);
}

void memwire_tell_observer(struct memnet *net, enum memnet_act act, struct memwire_socket *socket,
			   const unsigned char *bytes, size_t len)
{
	struct memnet_news news = {
		.act = act,
		.user = socket->user,
		.fd = socket->fd,
		.name = socket->remote,
		.bytes = bytes,
		.len = len,
		.note = &socket->note,
		.peer_note = socket->peer ? &socket->peer->note : NULL,
	};

	net->tell(net->tell_arg, &news);
}

/* --- connecting */

static void make_peer(struct memnet *net, struct memwire_socket *client,
		      struct memwire_socket *listener)
{
	struct memwire_socket *server = memwire_open(net, MEMWIRE_STREAM);
	struct memwire_socket **last = &listener->queue;

	server->peer = client;
	client->peer = server;
	memcpy(server->local, client->remote, sizeof(server->local));
	memcpy(server->remote, client->local, sizeof(server->remote));
	while (*last)
		last = &(*last)->queue;
	*last = server;
	listener->queued++;
	memwire_touch(listener);
}

struct memwire_socket *memwire_accept(struct memwire_socket *listener)
{
	struct memwire_socket *socket = listener->queue;

	listener->queue = socket->queue;
	socket->queue = NULL;
	listener->queued--;
	memwire_touch(listener);
	return socket;
}

static void answer(struct memnet *net, struct memwire_socket *client, int error, bool now)
{
	if (now && error)
		memwire_break(net, client, error);
	else if (now)
		client->kind = MEMWIRE_STREAM;
	else
		memwire_put_event(net, client, MEMWIRE_ANSWER, (uint32_t)error,
				  arrival(net, client, 0));
}

static void try_again(struct memnet *net, struct memwire_socket *client)
{
	memwire_put_event(net, client, MEMWIRE_SYN, 0,
			  net->now_ns + (NS_PER_S << (client->tries - 1)));
}

/* The SYN comes to where it leads, or is lost. */
static void handle_syn(struct memnet *net, struct memwire_socket *client, bool now)
{
	enum memnet_route route = memwire_route_of(net, client->remote);
	struct memwire_socket *listener = memwire_listener_next(net, client->remote);
	bool lost;

	if (client->gone || client->kind != MEMWIRE_CONNECTING)
		return;
	if (client->tries == SYN_TRIES_MAX) {
		memwire_break(net, client, ETIMEDOUT);
		return;
	}
	client->tries++;
	lost = route == MEMNET_SILENT || client->out.blackhole ||
	       (route != MEMNET_UNREACHABLE && route != MEMNET_SELF && route != MEMNET_REFUSE &&
		listener && listener->queued >= listener->backlog);
	if (lost) {
		try_again(net, client);
	} else if (route == MEMNET_UNREACHABLE) {
		answer(net, client, EHOSTUNREACH, now);
	} else if (route == MEMNET_SELF) {
		memcpy(client->local, client->remote, sizeof(client->local));
		client->peer = client;
		answer(net, client, 0, now);
	} else if (listener == NULL || route == MEMNET_REFUSE) {
		answer(net, client, ECONNREFUSED, now);
	} else {
		make_peer(net, client, listener);
		answer(net, client, 0, now);
	}
}

void memwire_connect(struct memnet *net, struct memwire_socket *socket, bool now)
{
	if (now)
		handle_syn(net, socket, true);
	else
		memwire_put_event(net, socket, MEMWIRE_SYN, 0, arrival(net, socket, 0));
}

/* --- streams */

static size_t capacity_of(const struct memwire_socket *socket)
{
	return socket->out.capacity ? socket->out.capacity : CAPACITY;
}

size_t memwire_room(const struct memwire_socket *socket)
{
	size_t capacity = capacity_of(socket);
	size_t used = socket->peer->len;

	return used < capacity ? capacity - used : 0;
}

/* Makes the ring large enough, with its content at the front. */
static void grow(struct memwire_socket *socket, size_t size)
{
	unsigned char *bytes = malloc(size);
	size_t end = socket->size - socket->head;

	SPOKE_ASSERT(bytes != NULL);
	if (socket->len > 0 && socket->len <= end) {
		memcpy(bytes, socket->bytes + socket->head, socket->len);
	} else if (socket->len > 0) {
		memcpy(bytes, socket->bytes + socket->head, end);
		memcpy(bytes + end, socket->bytes, socket->len - end);
	}
	free(socket->bytes);
	socket->bytes = bytes;
	socket->size = size;
	socket->head = 0;
}

void memwire_send(struct memnet *net, struct memwire_socket *socket, const unsigned char *bytes,
		  size_t len)
{
	struct memwire_socket *to = socket->peer;
	uint64_t flipped = UINT64_MAX;

	if (memwire_chance(net, socket->out.corrupt_permille))
		flipped = memwire_dice(net) % (len * 8);
	if (!to->gone && to->len + len > to->size)
		grow(to, 2 * (to->len + len));
	if (!to->gone) {
		size_t at = (to->head + to->len) % to->size;
		size_t part = len < to->size - at ? len : to->size - at;

		memcpy(to->bytes + at, bytes, part);
		memcpy(to->bytes, bytes + part, len - part);
		if (flipped != UINT64_MAX)
			to->bytes[(at + flipped / 8) % to->size] ^= (unsigned char)(1u << (flipped %
											   8));
		to->len += len;
	}
	memwire_touch(socket);
	send_event(net, socket, MEMWIRE_DATA, len);
}

void memwire_end(struct memnet *net, struct memwire_socket *socket)
{
	socket->shut = true;
	memwire_touch(socket);
	send_event(net, socket, MEMWIRE_FIN, 0);
}

void memwire_take(struct memwire_socket *socket, unsigned char *bytes, size_t len)
{
	size_t part = len < socket->size - socket->head ? len : socket->size - socket->head;

	SPOKE_ASSERT(len <= socket->arrived);
	memcpy(bytes, socket->bytes + socket->head, part);
	memcpy(bytes + part, socket->bytes, len - part);
	socket->head = (socket->head + len) % socket->size;
	socket->len -= len;
	socket->arrived -= len;
	memwire_touch(socket);
	memwire_touch(socket->peer);
}

/* --- what arrives */

static void handle_segment(struct memnet *net, const struct memwire_event *event)
{
	struct memwire_socket *to = event->to;
	bool holds = to->held > 0 || to->held_end;

	if (to->gone) {
		/* Nobody there: says so, unless the other one only ends as well. */
		if (event->kind == MEMWIRE_DATA && !to->reset && !to->peer->gone) {
			to->reset = true;
			send_event(net, to, MEMWIRE_RST, 0);
		}
		return;
	}
	if (to->peer->out.blackhole || holds) {
		net->holding += holds ? 0 : 1;
		to->held += event->kind == MEMWIRE_DATA ? event->value : 0;
		to->held_end = to->held_end || event->kind == MEMWIRE_FIN;
	} else if (event->kind == MEMWIRE_DATA) {
		to->arrived += event->value;
		memwire_tell(net, MEMNET_ARRIVE, to, NULL, event->value);
	} else {
		to->ended = true;
		memwire_tell(net, MEMNET_END, to, NULL, 0);
	}
}

static void handle_event(struct memnet *net, const struct memwire_event *event)
{
	struct memwire_socket *to = event->to;

	memwire_touch(to);
	switch (event->kind) {
	case MEMWIRE_SYN:
		handle_syn(net, to, false);
		break;
	case MEMWIRE_ANSWER:
		if (event->value)
			memwire_break(net, to, (int)event->value);
		else if (!to->gone && to->kind == MEMWIRE_CONNECTING)
			to->kind = MEMWIRE_STREAM;
		break;
	case MEMWIRE_DATA:
	case MEMWIRE_FIN:
		handle_segment(net, event);
		break;
	case MEMWIRE_RST:
		if (!to->peer->out.blackhole)
			memwire_break(net, to, ECONNRESET);
		else if (to->peer->gone) /* what comes next is answered by another one */
			to->peer->reset = false;
		break;
	}
	put_aside_if_unused(net, to);
}

static void release_held(struct memnet *net)
{
	for (struct memwire_socket *one = net->all.next; one != &net->all; one = one->next) {
		size_t held = one->held;
		bool end = one->held_end;

		if ((held == 0 && !end) || one->peer->out.blackhole)
			continue;
		drop_held(net, one);
		memwire_touch(one);
		one->arrived += held;
		one->ended = one->ended || end;
		if (held > 0)
			memwire_tell(net, MEMNET_ARRIVE, one, NULL, held);
		if (end)
			memwire_tell(net, MEMNET_END, one, NULL, 0);
	}
}

void memwire_settle(struct memnet *net)
{
	uint64_t target = net->options.now(net->options.arg);

	SPOKE_ASSERT(target >= net->now_ns);
	if (target == net->now_ns && !net->linked && net->unused == NULL &&
	    (net->events_len == 0 || net->events[0].at_ns > target))
		return;
	if (net->linked)
		net->changes++;
	if (net->holding > 0)
		release_held(net);
	net->linked = false;
	while (net->events_len > 0 && net->events[0].at_ns <= target) {
		struct memwire_event event = memwire_take_event(net);

		if (event.at_ns > net->now_ns)
			net->now_ns = event.at_ns;
		handle_event(net, &event);
	}
	net->now_ns = target;
	memwire_free_unused(net);
}
