/* SPDX-License-Identifier: Apache-2.0 */
/* The network in memory: the sockets, their listeners, and SYN, data, FIN and RST in flight between
 * them as events ordered by time; then the network as loops and tests use it: readiness, times, and
 * faults. */
#include "core/virtual/net.h"
#include "core/virtual/net_parts.h"
#include "timer/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- events in flight: a heap, the earliest first */

static bool earlier(const struct spokei_vwire_event *a, const struct spokei_vwire_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap_events(struct spokei_vwire_event *a, struct spokei_vwire_event *b)
{
	struct spokei_vwire_event swapped = *a;

	*a = *b;
	*b = swapped;
}

/* Puts an event at that time. */
static void put_event(struct spokei_vnet *net, struct spokei_vwire_socket *to,
		      enum spokei_vwire_event_kind kind, uint32_t value, uint64_t at_ns)
{
	size_t at = net->events_len++;

	if (net->events_len > net->events_size) {
		net->events_size = net->events_size ? 2 * net->events_size : 64;
		net->events = realloc(net->events, net->events_size * sizeof(*net->events));
		SPOKE_ASSERT(net->events != NULL);
	}
	net->events[at] = (struct spokei_vwire_event){ at_ns, net->order++, to, kind, value };
	to->coming++;
	for (; at > 0 && earlier(&net->events[at], &net->events[(at - 1) / 2]); at = (at - 1) / 2)
		swap_events(&net->events[at], &net->events[(at - 1) / 2]);
}

/* Takes the earliest event out. */
static struct spokei_vwire_event take_event(struct spokei_vnet *net)
{
	struct spokei_vwire_event first = net->events[0];
	size_t at = 0;

	net->events[0] = net->events[--net->events_len];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < net->events_len &&
		    earlier(&net->events[child + 1], &net->events[child]))
			child++;
		if (child >= net->events_len || !earlier(&net->events[child], &net->events[at]))
			break;
		swap_events(&net->events[at], &net->events[child]);
		at = child;
	}
	first.to->coming--;
	return first;
}

/* --- listeners */

struct spokei_vwire_socket *spokei_vwire_listener(struct spokei_vnet *net, const char *name)
{
	for (struct spokei_vwire_socket *one = net->all.next; one != &net->all; one = one->next) {
		if (one->kind == SPOKEI_VWIRE_LISTENER && !one->gone &&
		    spokei_vname_covers(one->local, name))
			return one;
	}
	return NULL;
}

/* Chooses at random which of the listeners that share an address takes the next connection. NULL:
 * there is none. */
static struct spokei_vwire_socket *next_listener(struct spokei_vnet *net, const char *name)
{
	struct spokei_vwire_socket *first = spokei_vwire_listener(net, name);
	struct spokei_vwire_socket *chosen = first;
	unsigned count = 1;

	if (first == NULL || !first->shared)
		return first;
	for (struct spokei_vwire_socket *one = first->next; one != &net->all; one = one->next) {
		if (one->kind != SPOKEI_VWIRE_LISTENER || one->gone || !one->shared ||
		    strcmp(one->local, first->local) != 0)
			continue;
		count++;
		if (spokei_vwire_dice(net) % count == 0)
			chosen = one;
	}
	return chosen;
}

#define NS_PER_S UINT64_C(1000000000)
#define SYN_TRIES_MAX 7u /* the last wait ends 127 s after the first */
#define CAPACITY 65536u

/* --- sending */

/* Returns when `len` bytes that this socket sends now arrive. */
static uint64_t arrival(struct spokei_vnet *net, struct spokei_vwire_socket *from, size_t len)
{
	const struct spokei_vnet_link *link = &from->out;
	uint64_t at_ns = net->now_ns;

	if (from->user && from->user->leaves_ns > at_ns)
		at_ns = from->user->leaves_ns;
	if (link->bytes_per_s > 0 && len > 0) {
		if (from->line_free_ns > at_ns)
			at_ns = from->line_free_ns;
		at_ns += len * NS_PER_S / link->bytes_per_s;
		from->line_free_ns = at_ns;
	}
	at_ns += link->latency_ns;
	if (link->jitter_ns > 0)
		at_ns += spokei_vwire_dice(net) % (link->jitter_ns + 1);
	if (at_ns < from->last_ns)
		at_ns = from->last_ns;
	from->last_ns = at_ns;
	return at_ns;
}

static void send_event(struct spokei_vnet *net, struct spokei_vwire_socket *from,
		       enum spokei_vwire_event_kind kind, size_t value)
{
	put_event(net, from->peer, kind, (uint32_t)value,
		  arrival(net, from, kind == SPOKEI_VWIRE_DATA ? value : 0));
}

/* --- sockets */

struct spokei_vwire_socket *spokei_vwire_open(struct spokei_vnet *net, enum spokei_vwire_kind kind)
{
	struct spokei_vwire_socket *socket = calloc(1, sizeof(*socket));

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

struct spokei_vwire_socket *spokei_vwire_socket_of(const struct spokei_vnet *net, int fd)
{
	SPOKE_ASSERT(fd >= 0 && fd < net->fds_size);
	SPOKE_ASSERT(net->fds[fd] != NULL);
	return net->fds[fd];
}

/* Puts aside a socket that nothing leads to any more; spokei_vwire_settle() frees it. */
static void put_aside(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	socket->prev->next = socket->next;
	socket->next->prev = socket->prev;
	socket->next = net->unused;
	net->unused = socket;
}

static void put_aside_if_unused(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	struct spokei_vwire_socket *peer = socket->peer;

	if (!socket->gone || socket->coming > 0 || (peer && (!peer->gone || peer->coming > 0)))
		return;
	if (peer && peer != socket)
		put_aside(net, peer);
	put_aside(net, socket);
}

/* Frees closed sockets that are needed no more; every settle does it. */
static void free_unused(struct spokei_vnet *net)
{
	while (net->unused) {
		struct spokei_vwire_socket *socket = net->unused;

		net->unused = socket->next;
		if (socket->gift)
			spokei_vshare_drop(socket->gift);
		free(socket->bytes);
		free(socket);
	}
}

static void drop_held(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	if (socket->held > 0 || socket->held_end)
		net->holding--;
	socket->held = 0;
	socket->held_end = false;
}

static void close_stream(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	if (socket->peer && !socket->reset) {
		if (socket->arrived > 0 || socket->kind == SPOKEI_VWIRE_CONNECTING)
			send_event(net, socket, SPOKEI_VWIRE_RST, 0);
		else if (!socket->shut)
			send_event(net, socket, SPOKEI_VWIRE_FIN, 0);
	}
	drop_held(net, socket);
	socket->len = 0;
	socket->arrived = 0;
}

void spokei_vwire_close(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	SPOKE_ASSERT(!socket->gone);
	spokei_vwire_touch(socket->peer);
	spokei_vwire_tell(net, SPOKEI_VNET_CLOSE, socket, NULL, 0);
	socket->gone = true;
	while (socket->queued > 0) {
		struct spokei_vwire_socket *waiting = spokei_vwire_accept(socket);

		waiting->gone = true;
		if (!waiting->reset)
			send_event(net, waiting, SPOKEI_VWIRE_RST, 0);
		drop_held(net, waiting);
		put_aside_if_unused(net, waiting);
	}
	close_stream(net, socket);
	put_aside_if_unused(net, socket);
}

enum spokei_vnet_route spokei_vwire_route_of(struct spokei_vnet *net, const char *name)
{
	SPOKE_ASSERT(name != NULL);
	for (const struct spokei_vwire_route *one = net->routes; one; one = one->next) {
		if (strcmp(one->name, name) == 0)
			return one->route;
	}
	return SPOKEI_VNET_NORMAL;
}

void spokei_vwire_break(struct spokei_vnet *net, struct spokei_vwire_socket *socket, int error)
{
	if (socket->gone || socket->reset)
		return;
	socket->kind = SPOKEI_VWIRE_STREAM;
	socket->reset = true;
	socket->error = error;
	spokei_vwire_touch(socket);
	spokei_vwire_tell(net, SPOKEI_VNET_END, socket, NULL, 0);
}

void spokei_vwire_tell_observer(struct spokei_vnet *net, enum spokei_vnet_act act,
				struct spokei_vwire_socket *socket, const unsigned char *bytes,
				size_t len)
{
	struct spokei_vnet_news news = {
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

static void make_peer(struct spokei_vnet *net, struct spokei_vwire_socket *client,
		      struct spokei_vwire_socket *listener)
{
	struct spokei_vwire_socket *server = spokei_vwire_open(net, SPOKEI_VWIRE_STREAM);
	struct spokei_vwire_socket **last = &listener->queue;

	server->peer = client;
	client->peer = server;
	memcpy(server->local, client->remote, sizeof(server->local));
	memcpy(server->remote, client->local, sizeof(server->remote));
	while (*last)
		last = &(*last)->queue;
	*last = server;
	listener->queued++;
	spokei_vwire_touch(listener);
}

struct spokei_vwire_socket *spokei_vwire_accept(struct spokei_vwire_socket *listener)
{
	struct spokei_vwire_socket *socket = listener->queue;

	listener->queue = socket->queue;
	socket->queue = NULL;
	listener->queued--;
	spokei_vwire_touch(listener);
	return socket;
}

static void answer(struct spokei_vnet *net, struct spokei_vwire_socket *client, int error, bool now)
{
	if (now && error)
		spokei_vwire_break(net, client, error);
	else if (now)
		client->kind = SPOKEI_VWIRE_STREAM;
	else
		put_event(net, client, SPOKEI_VWIRE_ANSWER, (uint32_t)error,
			  arrival(net, client, 0));
}

static void try_again(struct spokei_vnet *net, struct spokei_vwire_socket *client)
{
	put_event(net, client, SPOKEI_VWIRE_SYN, 0,
		  net->now_ns + (NS_PER_S << (client->tries - 1)));
}

/* The SYN arrives at its destination, or is lost. */
static void handle_syn(struct spokei_vnet *net, struct spokei_vwire_socket *client, bool now)
{
	enum spokei_vnet_route route = spokei_vwire_route_of(net, client->remote);
	struct spokei_vwire_socket *listener = next_listener(net, client->remote);
	bool lost;

	if (client->gone || client->kind != SPOKEI_VWIRE_CONNECTING)
		return;
	if (client->tries == SYN_TRIES_MAX) {
		spokei_vwire_break(net, client, ETIMEDOUT);
		return;
	}
	client->tries++;
	lost = route == SPOKEI_VNET_SILENT || client->out.blackhole ||
	       (route != SPOKEI_VNET_UNREACHABLE && route != SPOKEI_VNET_SELF &&
		route != SPOKEI_VNET_REFUSE && listener && listener->queued >= listener->backlog);
	if (lost) {
		try_again(net, client);
	} else if (route == SPOKEI_VNET_UNREACHABLE) {
		answer(net, client, EHOSTUNREACH, now);
	} else if (route == SPOKEI_VNET_SELF) {
		memcpy(client->local, client->remote, sizeof(client->local));
		client->peer = client;
		answer(net, client, 0, now);
	} else if (listener == NULL || route == SPOKEI_VNET_REFUSE) {
		answer(net, client, ECONNREFUSED, now);
	} else {
		make_peer(net, client, listener);
		answer(net, client, 0, now);
	}
}

void spokei_vwire_connect(struct spokei_vnet *net, struct spokei_vwire_socket *socket, bool now)
{
	if (now)
		handle_syn(net, socket, true);
	else
		put_event(net, socket, SPOKEI_VWIRE_SYN, 0, arrival(net, socket, 0));
}

/* --- streams */

static size_t capacity_of(const struct spokei_vwire_socket *socket)
{
	return socket->out.capacity ? socket->out.capacity : CAPACITY;
}

size_t spokei_vwire_room(const struct spokei_vwire_socket *socket)
{
	size_t capacity = capacity_of(socket);
	size_t used = socket->peer->len;

	return used < capacity ? capacity - used : 0;
}

/* Makes the ring large enough, with its content at the front. */
static void grow(struct spokei_vwire_socket *socket, size_t size)
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

void spokei_vwire_send(struct spokei_vnet *net, struct spokei_vwire_socket *socket,
		       const unsigned char *bytes, size_t len)
{
	struct spokei_vwire_socket *to = socket->peer;
	uint64_t flipped = UINT64_MAX;

	if (spokei_vwire_chance(net, socket->out.corrupt_permille))
		flipped = spokei_vwire_dice(net) % (len * 8);
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
	spokei_vwire_touch(socket);
	send_event(net, socket, SPOKEI_VWIRE_DATA, len);
}

void spokei_vwire_end(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	socket->shut = true;
	spokei_vwire_touch(socket);
	send_event(net, socket, SPOKEI_VWIRE_FIN, 0);
}

void spokei_vwire_take(struct spokei_vwire_socket *socket, unsigned char *bytes, size_t len)
{
	size_t part = len < socket->size - socket->head ? len : socket->size - socket->head;

	SPOKE_ASSERT(len <= socket->arrived);
	memcpy(bytes, socket->bytes + socket->head, part);
	memcpy(bytes + part, socket->bytes, len - part);
	socket->head = (socket->head + len) % socket->size;
	socket->len -= len;
	socket->arrived -= len;
	spokei_vwire_touch(socket);
	spokei_vwire_touch(socket->peer);
}

/* --- arrival */

static void handle_segment(struct spokei_vnet *net, const struct spokei_vwire_event *event)
{
	struct spokei_vwire_socket *to = event->to;
	bool holds = to->held > 0 || to->held_end;

	if (to->gone) {
		/* The peer is gone: answer with RST, unless the sender only ends as well. */
		if (event->kind == SPOKEI_VWIRE_DATA && !to->reset && !to->peer->gone) {
			to->reset = true;
			send_event(net, to, SPOKEI_VWIRE_RST, 0);
		}
		return;
	}
	if (to->peer->out.blackhole || holds) {
		net->holding += holds ? 0 : 1;
		to->held += event->kind == SPOKEI_VWIRE_DATA ? event->value : 0;
		to->held_end = to->held_end || event->kind == SPOKEI_VWIRE_FIN;
	} else if (event->kind == SPOKEI_VWIRE_DATA) {
		to->arrived += event->value;
		spokei_vwire_tell(net, SPOKEI_VNET_ARRIVE, to, NULL, event->value);
	} else {
		to->ended = true;
		spokei_vwire_tell(net, SPOKEI_VNET_END, to, NULL, 0);
	}
}

static void handle_event(struct spokei_vnet *net, const struct spokei_vwire_event *event)
{
	struct spokei_vwire_socket *to = event->to;

	spokei_vwire_touch(to);
	switch (event->kind) {
	case SPOKEI_VWIRE_SYN:
		handle_syn(net, to, false);
		break;
	case SPOKEI_VWIRE_ANSWER:
		if (event->value)
			spokei_vwire_break(net, to, (int)event->value);
		else if (!to->gone && to->kind == SPOKEI_VWIRE_CONNECTING)
			to->kind = SPOKEI_VWIRE_STREAM;
		break;
	case SPOKEI_VWIRE_DATA:
	case SPOKEI_VWIRE_FIN:
		handle_segment(net, event);
		break;
	case SPOKEI_VWIRE_RST:
		if (!to->peer->out.blackhole)
			spokei_vwire_break(net, to, ECONNRESET);
		else if (to->peer->gone) /* further bytes get an RST */
			to->peer->reset = false;
		break;
	}
	put_aside_if_unused(net, to);
}

static void release_held(struct spokei_vnet *net)
{
	for (struct spokei_vwire_socket *one = net->all.next; one != &net->all; one = one->next) {
		size_t held = one->held;
		bool end = one->held_end;

		if ((held == 0 && !end) || one->peer->out.blackhole)
			continue;
		drop_held(net, one);
		spokei_vwire_touch(one);
		one->arrived += held;
		one->ended = one->ended || end;
		if (held > 0)
			spokei_vwire_tell(net, SPOKEI_VNET_ARRIVE, one, NULL, held);
		if (end)
			spokei_vwire_tell(net, SPOKEI_VNET_END, one, NULL, 0);
	}
}

void spokei_vwire_settle(struct spokei_vnet *net)
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
		struct spokei_vwire_event event = take_event(net);

		if (event.at_ns > net->now_ns)
			net->now_ns = event.at_ns;
		handle_event(net, &event);
	}
	net->now_ns = target;
	free_unused(net);
}

/* --- for loops and tests */

struct spokei_vnet *spokei_vnet_new(const struct spokei_vnet_options *options)
{
	struct spokei_vnet *net = calloc(1, sizeof(*net));

	if (net == NULL)
		return NULL;
	net->options = *options;
	net->now_ns = options->now(options->arg);
	net->dice = options->seed;
	net->trace = UINT64_C(0xcbf29ce484222325);
	net->all.next = &net->all;
	net->all.prev = &net->all;
	return net;
}

void spokei_vnet_free(struct spokei_vnet *net)
{
	if (net == NULL)
		return;
	free_unused(net);
	while (net->all.next != &net->all) {
		struct spokei_vwire_socket *socket = net->all.next;

		net->all.next = socket->next;
		if (socket->gift)
			spokei_vshare_drop(socket->gift);
		free(socket->bytes);
		free(socket);
	}
	while (net->routes) {
		struct spokei_vwire_route *route = net->routes;

		net->routes = route->next;
		free(route);
	}
	while (net->hosts) {
		struct spokei_vwire_host *host = net->hosts;

		net->hosts = host->next;
		free(host);
	}
	free(net->events);
	free(net->fds);
	free(net);
}

void spokei_vnet_observe(struct spokei_vnet *net,
			 void (*tell)(void *arg, const struct spokei_vnet_news *news), void *arg)
{
	net->tell = tell;
	net->tell_arg = arg;
}

unsigned spokei_vnet_ready(struct spokei_vnet *net, int fd)
{
	const struct spokei_vwire_socket *socket;
	unsigned io = 0;

	spokei_vwire_settle(net);
	socket = spokei_vwire_socket_of(net, fd);
	if (socket->kind == SPOKEI_VWIRE_LISTENER)
		return socket->queued > 0 ? SPOKE_IO_READ : 0;
	if (socket->kind == SPOKEI_VWIRE_SPARE)
		return socket->rung ? SPOKE_IO_READ : 0;
	if (socket->kind != SPOKEI_VWIRE_STREAM)
		return 0;
	if (socket->arrived > 0 || socket->ended || socket->reset)
		io |= SPOKE_IO_READ;
	if (socket->reset || socket->shut || spokei_vwire_room(socket) > 0)
		io |= SPOKE_IO_WRITE;
	return io;
}

uint64_t spokei_vnet_changes(const struct spokei_vnet_user *user)
{
	spokei_vwire_settle(user->net);
	return user->changes + user->net->changes;
}

uint64_t spokei_vnet_next(struct spokei_vnet *net)
{
	spokei_vwire_settle(net);
	return net->events_len > 0 ? net->events[0].at_ns : UINT64_MAX;
}

void spokei_vnet_veil(struct spokei_vnet *net)
{
	net->veiled = true;
}

uint64_t spokei_vnet_trace(const struct spokei_vnet *net)
{
	return net->trace;
}

struct spokei_vnet_link *spokei_vnet_link(struct spokei_vnet *net, int fd)
{
	spokei_vwire_settle(net);
	net->linked = true;
	return &spokei_vwire_socket_of(net, fd)->out;
}

const struct spokei_vnet_guard *spokei_vnet_guard(const struct spokei_vnet *net, int fd)
{
	return &spokei_vwire_socket_of(net, fd)->guard;
}

bool spokei_vnet_ring(struct spokei_vnet *net, int fd, bool ring)
{
	struct spokei_vwire_socket *socket = spokei_vwire_socket_of(net, fd);
	bool rung = socket->rung;

	SPOKE_ASSERT(socket->kind == SPOKEI_VWIRE_SPARE);
	socket->rung = ring;
	spokei_vwire_touch(socket);
	return rung;
}

void spokei_vnet_set_all(struct spokei_vnet *net, const struct spokei_vnet_link *link)
{
	spokei_vwire_settle(net);
	net->linked = true;
	net->options.link = *link;
	for (struct spokei_vwire_socket *one = net->all.next; one != &net->all; one = one->next)
		one->out = *link;
}

void spokei_vnet_route(struct spokei_vnet *net, const char *address, enum spokei_vnet_route route)
{
	struct spoke_address parsed;
	struct spokei_vwire_route *one = calloc(1, sizeof(*one));
	int error = spokei_vname_parse(address, &parsed);

	SPOKE_ASSERT(one != NULL && error == 0);
	spokei_vname_of(&parsed, one->name);
	one->route = route;
	one->next = net->routes;
	net->routes = one;
}

void spokei_vnet_fail_accept(struct spokei_vnet *net, int fd, int error, unsigned times)
{
	struct spokei_vwire_socket *listener = spokei_vwire_socket_of(net, fd);

	SPOKE_ASSERT(listener->kind == SPOKEI_VWIRE_LISTENER && error < 0);
	listener->accept_error = error;
	listener->accept_errors = times;
}

bool spokei_vnet_fail_accepts_at(struct spokei_vnet *net, const char *address, int error,
				 unsigned times)
{
	struct spokei_vwire_socket *listener = spokei_vwire_listener(net, address);

	if (listener)
		spokei_vnet_fail_accept(net, listener->fd, error, times);
	return listener != NULL;
}

void spokei_vnet_name(struct spokei_vnet *net, const char *host, const char *digits)
{
	struct spokei_vwire_host *one = calloc(1, sizeof(*one));

	SPOKE_ASSERT(one != NULL);
	(void)snprintf(one->name, sizeof(one->name), "%s", host);
	(void)snprintf(one->digits, sizeof(one->digits), "%s", digits);
	one->next = net->hosts;
	net->hosts = one;
}

void spokei_vnet_reset(struct spokei_vnet *net, int fd)
{
	struct spokei_vwire_socket *socket;

	spokei_vwire_settle(net);
	socket = spokei_vwire_socket_of(net, fd);
	SPOKE_ASSERT(socket->peer != NULL);
	spokei_vwire_break(net, socket, ECONNRESET);
	spokei_vwire_break(net, socket->peer, ECONNRESET);
}

bool spokei_vnet_inject(struct spokei_vnet *net, int fd, const void *bytes, size_t len)
{
	struct spokei_vwire_socket *socket;

	spokei_vwire_settle(net);
	socket = spokei_vwire_socket_of(net, fd);
	if (socket->kind != SPOKEI_VWIRE_STREAM || socket->reset || socket->shut ||
	    spokei_vwire_room(socket) < len)
		return false;
	spokei_vwire_send(net, socket, bytes, len);
	return true;
}

void spokei_vnet_kill(struct spokei_vnet_user *user)
{
	for (int fd = 0; fd < user->net->fds_size && user->fds > 0; fd++) {
		if (user->net->fds[fd] && user->net->fds[fd]->user == user)
			spokei_vnet_table.close(user, fd);
	}
}
