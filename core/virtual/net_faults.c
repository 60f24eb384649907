/* SPDX-License-Identifier: Apache-2.0 */
/* The network in memory as loops and tests see it: what is ready and when, and the faults. */
#include "core/virtual/net.h"
#include "core/virtual/net_name.h"
#include "core/virtual/net_wire.h"
#include "timer/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memnet *memnet_new(const struct memnet_options *options)
{
	struct memnet *net = calloc(1, sizeof(*net));

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

void memnet_free(struct memnet *net)
{
	if (net == NULL)
		return;
	memwire_free_unused(net);
	while (net->all.next != &net->all) {
		struct memwire_socket *socket = net->all.next;

		net->all.next = socket->next;
		free(socket->bytes);
		free(socket);
	}
	while (net->routes) {
		struct memwire_route *route = net->routes;

		net->routes = route->next;
		free(route);
	}
	while (net->hosts) {
		struct memwire_host *host = net->hosts;

		net->hosts = host->next;
		free(host);
	}
	free(net->events);
	free(net);
}

void memnet_observe(struct memnet *net, void (*tell)(void *arg, const struct memnet_news *news),
		    void *arg)
{
	net->tell = tell;
	net->tell_arg = arg;
}

unsigned memnet_ready(struct memnet *net, int fd)
{
	const struct memwire_socket *socket;
	unsigned io = 0;

	memwire_settle(net);
	socket = memwire_socket_of(net, fd);
	if (socket->kind == MEMWIRE_LISTENER)
		return socket->queued > 0 ? SPOKE_IO_READ : 0;
	if (socket->kind == MEMWIRE_SPARE)
		return socket->rung ? SPOKE_IO_READ : 0;
	if (socket->kind != MEMWIRE_STREAM)
		return 0;
	if (socket->arrived > 0 || socket->ended || socket->reset)
		io |= SPOKE_IO_READ;
	if (socket->reset || socket->shut || memwire_room(socket) > 0)
		io |= SPOKE_IO_WRITE;
	return io;
}

uint64_t memnet_changes(const struct memnet_user *user)
{
	memwire_settle(user->net);
	return user->changes + user->net->changes;
}

uint64_t memnet_next(struct memnet *net)
{
	memwire_settle(net);
	return net->events_len > 0 ? net->events[0].at_ns : UINT64_MAX;
}

uint64_t memnet_trace(const struct memnet *net)
{
	return net->trace;
}

struct memnet_link *memnet_link(struct memnet *net, int fd)
{
	memwire_settle(net);
	net->linked = true;
	return &memwire_socket_of(net, fd)->out;
}

const struct memnet_guard *memnet_guard(const struct memnet *net, int fd)
{
	return &memwire_socket_of(net, fd)->guard;
}

bool memnet_ring(struct memnet *net, int fd, bool ring)
{
	struct memwire_socket *socket = memwire_socket_of(net, fd);
	bool rung = socket->rung;

	SPOKE_ASSERT(socket->kind == MEMWIRE_SPARE);
	socket->rung = ring;
	memwire_touch(socket);
	return rung;
}

void memnet_set_all(struct memnet *net, const struct memnet_link *link)
{
	memwire_settle(net);
	net->linked = true;
	net->options.link = *link;
	for (struct memwire_socket *one = net->all.next; one != &net->all; one = one->next)
		one->out = *link;
}

void memnet_route(struct memnet *net, const char *address, enum memnet_route route)
{
	struct spoke_address parsed;
	struct memwire_route *one = calloc(1, sizeof(*one));
	int error = memname_parse(address, &parsed);

	SPOKE_ASSERT(one != NULL && error == 0);
	memname_of(&parsed, one->name);
	one->route = route;
	one->next = net->routes;
	net->routes = one;
}

void memnet_fail_accept(struct memnet *net, int fd, int error, unsigned times)
{
	struct memwire_socket *listener = memwire_socket_of(net, fd);

	SPOKE_ASSERT(listener->kind == MEMWIRE_LISTENER && error < 0);
	listener->accept_error = error;
	listener->accept_errors = times;
}

bool memnet_fail_accepts_at(struct memnet *net, const char *address, int error, unsigned times)
{
	struct memwire_socket *listener = memwire_listener(net, address);

	if (listener)
		memnet_fail_accept(net, listener->fd, error, times);
	return listener != NULL;
}

void memnet_name(struct memnet *net, const char *host, const char *digits)
{
	struct memwire_host *one = calloc(1, sizeof(*one));

	SPOKE_ASSERT(one != NULL);
	(void)snprintf(one->name, sizeof(one->name), "%s", host);
	(void)snprintf(one->digits, sizeof(one->digits), "%s", digits);
	one->next = net->hosts;
	net->hosts = one;
}

void memnet_reset(struct memnet *net, int fd)
{
	struct memwire_socket *socket;

	memwire_settle(net);
	socket = memwire_socket_of(net, fd);
	SPOKE_ASSERT(socket->peer != NULL);
	memwire_break(net, socket, ECONNRESET);
	memwire_break(net, socket->peer, ECONNRESET);
}

bool memnet_inject(struct memnet *net, int fd, const void *bytes, size_t len)
{
	struct memwire_socket *socket;

	memwire_settle(net);
	socket = memwire_socket_of(net, fd);
	if (socket->kind != MEMWIRE_STREAM || socket->reset || socket->shut ||
	    memwire_room(socket) < len)
		return false;
	memwire_send(net, socket, bytes, len);
	return true;
}

void memnet_kill(struct memnet_user *user)
{
	for (int fd = 0; fd < MEMWIRE_FDS_MAX && user->fds > 0; fd++) {
		if (user->net->fds[fd] && user->net->fds[fd]->user == user)
			memnet_table.close(user, fd);
	}
}
