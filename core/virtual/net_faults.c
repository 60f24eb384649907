/* SPDX-License-Identifier: Apache-2.0 */
/* The network in memory as loops and tests use it: readiness, times, and the faults. */
#include "core/virtual/net.h"
#include "core/virtual/net_name.h"
#include "core/virtual/net_parts.h"
#include "timer/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	spokei_vwire_free_unused(net);
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
