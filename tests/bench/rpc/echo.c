/* SPDX-License-Identifier: Apache-2.0 */
/* The raw echo; see echo.h. Needs _GNU_SOURCE (accept4). */
#include "echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define IN_SIZE ((size_t)256 * 1024)
#define BACKLOG 1024

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_un un;
};

static socklen_t make_address(const struct rpc_plan *plan, union address *ret_address)
{
	memset(ret_address, 0, sizeof(*ret_address));
	if (plan->is_unix) {
		ret_address->un.sun_family = AF_UNIX;
		memcpy(ret_address->un.sun_path, plan->address, strlen(plan->address) + 1);
		return sizeof(ret_address->un);
	}
	ret_address->in.sin_family = AF_INET;
	ret_address->in.sin_port = htons(plan->port);
	if (inet_pton(AF_INET, plan->address, &ret_address->in.sin_addr) != 1)
		host_die("invalid address %s", plan->address);
	return sizeof(ret_address->in);
}

int echo_listen(const struct rpc_plan *plan, uint16_t *ret_port)
{
	union address address;
	socklen_t len = make_address(plan, &address);
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, &address.any, len) != 0 || listen(fd, BACKLOG) != 0)
		host_die("cannot listen at %s: error %d", plan->address, errno);
	if (getsockname(fd, &address.any, &len) != 0)
		host_die("getsockname failed");
	*ret_port = plan->is_unix ? 0 : ntohs(address.in.sin_port);
	return fd;
}

static void set_nodelay(const struct rpc_plan *plan, int fd)
{
	int on = 1;

	if (!plan->is_unix && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		host_die("no TCP_NODELAY");
}

static struct echo_link *make_link(const struct rpc_plan *plan, int fd)
{
	struct echo_link *link = host_memory(1, sizeof(*link));
	size_t longer = plan->request_len > plan->reply_len ? plan->request_len : plan->reply_len;

	if (longer > IN_SIZE)
		host_die("frames of %zu bytes are too long", longer);
	link->fd = fd;
	link->plan = plan;
	link->in_size = longer * plan->outstanding < IN_SIZE ? longer * plan->outstanding : IN_SIZE;
	link->in = host_memory(1, link->in_size);
	link->out_size = 2 * longer * plan->outstanding;
	link->out = host_memory(1, link->out_size);
	return link;
}

int echo_accept_socket(int listener, const struct rpc_plan *plan)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		set_nodelay(plan, fd);
	return fd;
}

struct echo_link *echo_accept(int listener, const struct rpc_plan *plan)
{
	int fd = echo_accept_socket(listener, plan);

	return fd < 0 ? NULL : make_link(plan, fd);
}

/* Returns room for one frame of `len` bytes at the end of the output. */
static uint8_t *append(struct echo_link *link, size_t len)
{
	uint8_t *frame;

	if (link->out_size - link->out_to < len) {
		memmove(link->out, link->out + link->out_from, link->out_to - link->out_from);
		link->out_to -= link->out_from;
		link->out_from = 0;
		if (link->out_size - link->out_to < len)
			host_die("more calls in flight than planned");
	}
	frame = link->out + link->out_to;
	link->out_to += len;
	return frame;
}

static void ask(struct echo_link *link, uint32_t call)
{
	size_t head = link->plan->request_len - link->plan->payload;
	uint8_t *frame = append(link, link->plan->request_len);

	if (link->head != NULL)
		memcpy(frame, link->head, head);
	memcpy(frame + head, link->payload, link->plan->payload);
	link->begun_ns[call] = link->meter->now_ns;
}

static void answer(struct echo_link *link, const uint8_t *request)
{
	const struct rpc_plan *plan = link->plan;
	uint8_t *frame = append(link, plan->reply_len);

	memcpy(frame + (plan->reply_len - plan->payload),
	       request + (plan->request_len - plan->payload), plan->payload);
}

static bool flush(struct echo_link *link)
{
	size_t len = link->out_to - link->out_from;
	ssize_t put;

	if (len == 0)
		return true;
	put = write(link->fd, link->out + link->out_from, len);
	if (put < 0 && errno != EAGAIN)
		return false;
	link->out_from += put > 0 ? (size_t)put : 0;
	link->is_blocked = link->out_from < link->out_to;
	if (!link->is_blocked)
		link->out_from = link->out_to = 0;
	return true;
}

static void take_reply(struct echo_link *link, const uint8_t *reply)
{
	const struct rpc_plan *plan = link->plan;

	if (meter_is_new_batch(link->meter) &&
	    memcmp(reply + (plan->reply_len - plan->payload), link->payload, plan->payload) != 0)
		meter_failure(link->meter);
	meter_call(link->meter, link->begun_ns[link->oldest]);
	ask(link, link->oldest);
	link->oldest = link->oldest + 1 == link->plan->outstanding ? 0 : link->oldest + 1;
}

static void take_frames(struct echo_link *link)
{
	size_t len = link->meter != NULL ? link->plan->reply_len : link->plan->request_len;
	size_t at = 0;

	for (; link->in_len - at >= len; at += len) {
		if (link->meter != NULL)
			take_reply(link, link->in + at);
		else
			answer(link, link->in + at);
	}
	link->in_len -= at;
	if (at > 0 && link->in_len > 0)
		memmove(link->in, link->in + at, link->in_len);
}

bool echo_turn(struct echo_link *link, bool is_readable)
{
	if (is_readable) {
		ssize_t got = read(link->fd, link->in + link->in_len, link->in_size - link->in_len);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			return false;
		link->in_len += got > 0 ? (size_t)got : 0;
		take_frames(link);
	}
	return flush(link);
}

static const uint8_t *make_payload(const struct rpc_plan *plan)
{
	uint8_t *payload = host_memory(1, plan->payload);

	memset(payload, 'x', plan->payload);
	return payload;
}

int echo_connect_socket(const struct rpc_plan *plan)
{
	union address address;
	socklen_t len = make_address(plan, &address);
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* Blocking connect; the socket is non-blocking afterwards. */
	if (fd < 0 || connect(fd, &address.any, len) != 0)
		host_die("cannot connect to %s: error %d", plan->address, errno);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		host_die("cannot make a socket non-blocking");
	set_nodelay(plan, fd);
	return fd;
}

struct echo_link *echo_connect(const struct rpc_plan *plan, struct meter *meter,
			       const uint8_t *request)
{
	struct echo_link *link = make_link(plan, echo_connect_socket(plan));

	link->meter = meter;
	link->begun_ns = host_memory(plan->outstanding, sizeof(*link->begun_ns));
	link->head = request;
	link->payload = request == NULL ? make_payload(plan)
					: request + (plan->request_len - plan->payload);
	for (uint32_t i = 0; i < plan->outstanding; i++)
		ask(link, i);
	if (!flush(link))
		host_die("the server has closed the connection");
	return link;
}

void echo_close(struct echo_link *link)
{
	(void)close(link->fd);
	free(link->begun_ns);
	free(link->in);
	free(link->out);
	free(link);
}
