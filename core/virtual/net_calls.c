/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of struct spoke_net on the network in memory, its addresses, and memory that two
 * processes share. */
#include "core/base/address.h"
#include "core/virtual/net.h"
#include "core/virtual/net_parts.h"
#include "timer/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Returns ":PORT" of an IP address, NULL for other names. */
static const char *port_of(const char *name)
{
	return begins(name, "mem:") || begins(name, "unix:") ? NULL : strrchr(name, ':');
}

/* Returns the address of a canonical name. */
static void to_address(const char *name, struct spoke_address *ret_address)
{
	size_t len = strlen(name);

	SPOKE_ASSERT(len < sizeof(ret_address->bytes));
	*ret_address = (struct spoke_address){ .len = (uint32_t)len };
	memcpy(ret_address->bytes, name, len);
}

int spokei_vname_parse(const char *text, struct spoke_address *ret_address)
{
	struct spoke_address real;
	char name[SPOKEI_VNAME_SIZE];
	int error;

	if (begins(text, "mem:")) {
		if (strlen(text) == strlen("mem:") || strlen(text) >= SPOKEI_VNAME_SIZE / 2)
			return -EINVAL;
		to_address(text, ret_address);
		return 0;
	}
	error = spokei_address_parse(text, &real);
	if (error)
		return error;
	spokei_address_print(&real, name, sizeof(name));
	to_address(name, ret_address);
	return 0;
}

void spokei_vname_of(const struct spoke_address *address, char *ret_name)
{
	SPOKE_ASSERT(address->len < SPOKEI_VNAME_SIZE);
	memcpy(ret_name, address->bytes, address->len);
	ret_name[address->len] = '\0';
}

/* Returns whether it is an IP address with a port, which may be 0. */
static bool has_port(const char *name)
{
	return port_of(name) != NULL;
}

/* Returns whether it is an IP address without a port. */
static bool wants_port(const char *name)
{
	const char *port = port_of(name);

	return port && strcmp(port, ":0") == 0;
}

static void set_port(char *name, uint16_t port)
{
	size_t len = strlen(name) - strlen(port_of(name));

	(void)snprintf(name + len, SPOKEI_VNAME_SIZE - len, ":%u", (unsigned)port);
}

/* Returns the name of a socket that connects to `remote`; its port is to be set if it wants one. */
static const char *name_of_client(const char *remote)
{
	if (begins(remote, "unix:"))
		return "unix:";
	if (begins(remote, "["))
		return "[::1]:0";
	return "127.0.0.1:0";
}

bool spokei_vname_covers(const char *listening, const char *name)
{
	const char *port = port_of(name);
	const char *listening_port = port_of(listening);

	if (strcmp(listening, name) == 0)
		return true;
	if (port == NULL || listening_port == NULL || strcmp(listening_port, port) != 0)
		return false;
	return begins(listening, begins(name, "[") ? "[::]:" : "0.0.0.0:");
}

/* --- shared memory */

#define PAGE 4096u

/* Stands in a page of its own before the memory. */
struct share {
	unsigned owners;
	size_t size;
};

static struct share *share_of(void *memory)
{
	return (struct share *)(void *)((unsigned char *)memory - PAGE);
}

/* Makes memory that two processes share, with one owner; takes and gives up another part in it. The
 * last one frees it. */
static void *new_share(size_t size)
{
	size_t pages = (size + PAGE - 1) / PAGE + 1;
	unsigned char *block = aligned_alloc(PAGE, pages * PAGE);

	if (block == NULL)
		return NULL;
	memset(block, 0, pages * PAGE);
	*(struct share *)(void *)block = (struct share){ 1, size };
	return block + PAGE;
}

static void *take_share(void *memory)
{
	share_of(memory)->owners++;
	return memory;
}

void spokei_vshare_drop(void *memory)
{
	struct share *share = share_of(memory);

	SPOKE_ASSERT(share->owners > 0);
	if (--share->owners == 0)
		free(share);
}

static size_t size_of_share(const void *memory)
{
	return ((const struct share *)(const void *)((const unsigned char *)memory - PAGE))->size;
}

/* --- the functions of struct spoke_net */

enum {
	PORT_FIRST = 32768,
	PORT_LAST = 60999,
	FDS_FIRST = 64,
	FDS_MAX = 65536,
};

static void mix(struct spokei_vnet *net, uint64_t number)
{
	net->trace = (net->trace ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	net->trace ^= net->trace >> 32;
}

/* Hashes an event, eight bytes at a time. */
static void trace(struct spokei_vnet *net, const unsigned char *bytes, size_t len)
{
	uint64_t number = 0;

	for (; len >= sizeof(number); len -= sizeof(number), bytes += sizeof(number)) {
		memcpy(&number, bytes, sizeof(number));
		mix(net, number);
	}
	number = len;
	memcpy(&number, bytes, len);
	mix(net, number);
}

/* Hashes a call and returns its result. */
static int traced(struct spokei_vnet *net, char call, int fd, int result)
{
	mix(net, net->now_ns);
	mix(net, (uint64_t)(unsigned char)call << 32 ^ (uint32_t)fd);
	mix(net, (uint64_t)(uint32_t)result);
	return result;
}

static struct spokei_vnet *enter(void *ctx)
{
	struct spokei_vnet *net = ((struct spokei_vnet_user *)ctx)->net;

	spokei_vwire_settle(net);
	return net;
}

static struct spokei_vwire_socket *own_socket(void *ctx, int fd)
{
	struct spokei_vwire_socket *socket = spokei_vwire_socket_of(enter(ctx), fd);
	struct spokei_vnet_user *user = ctx;

	/* Descriptors that the loops of one process hand to each other. */
	if (socket->user != user && user->house != NULL && socket->user->house == user->house) {
		socket->user->fds--;
		socket->user = user;
		user->fds++;
		user->changes++;
	}
	SPOKE_ASSERT(socket->user == user);
	return socket;
}

/* Returns whether the user may have one more descriptor. */
static bool is_full(const struct spokei_vnet_user *user)
{
	return user->fds_max > 0 && user->fds >= user->fds_max;
}

static void grow_fds(struct spokei_vnet *net)
{
	int size = net->fds_size ? 2 * net->fds_size : FDS_FIRST;

	SPOKE_ASSERT(size <= FDS_MAX);
	net->fds = realloc(net->fds, (size_t)size * sizeof(struct spokei_vwire_socket *));
	SPOKE_ASSERT(net->fds != NULL);
	for (int fd = net->fds_size; fd < size; fd++)
		net->fds[fd] = NULL;
	net->fds_size = size;
}

static int give_fd(struct spokei_vnet_user *user, struct spokei_vwire_socket *socket)
{
	struct spokei_vnet *net = user->net;
	int fd = 0;

	while (fd < net->fds_size && net->fds[fd])
		fd++;
	if (fd == net->fds_size)
		grow_fds(net);
	net->fds[fd] = socket;
	socket->user = user;
	socket->fd = fd;
	user->fds++;
	user->changes++;
	return fd;
}

/* --- addresses */

static int net_parse(void *ctx, const char *text, struct spoke_address *ret_address)
{
	(void)ctx;
	return spokei_vname_parse(text, ret_address);
}

static void net_print(void *ctx, const struct spoke_address *address, char *text, size_t size)
{
	char name[SPOKEI_VNAME_SIZE];

	(void)ctx;
	spokei_vname_of(address, name);
	(void)snprintf(text, size, "%s", name);
}

/* Gives a name without a port a free port. */
static void choose_port(struct spokei_vnet *net, char *name)
{
	if (!wants_port(name))
		return;
	do {
		net->port = net->port < PORT_FIRST || net->port == PORT_LAST
				    ? PORT_FIRST
				    : (uint16_t)(net->port + 1);
		set_port(name, net->port);
	} while (spokei_vwire_listener(net, name));
}

static int net_resolve(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
		       int max)
{
	struct spokei_vnet *net = enter(ctx);
	const char *digits = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
	int count = 0;

	for (const struct spokei_vwire_host *one = net->hosts; one; one = one->next) {
		if (strcmp(one->name, host) == 0) {
			digits = one->digits;
			break;
		}
	}
	while (*digits && count < max) {
		char text[SPOKEI_VNAME_SIZE];
		int len = (int)strcspn(digits, " ");
		bool v6 = memchr(digits, ':', (size_t)len) != NULL;

		(void)snprintf(text, sizeof(text), v6 ? "[%.*s]:%u" : "%.*s:%u", len, digits,
			       (unsigned)port);
		if (net_parse(ctx, text, &ret[count]) != 0)
			break;
		count++;
		digits += len;
		digits += strspn(digits, " ");
	}
	return traced(net, 'n', -1, count > 0 ? count : -ENOENT);
}

static int net_local(void *ctx, int fd, struct spoke_address *ret_address)
{
	to_address(own_socket(ctx, fd)->local, ret_address);
	return 0;
}

static int net_peer(void *ctx, int fd, struct spoke_address *ret_address)
{
	const struct spokei_vwire_socket *socket = own_socket(ctx, fd);

	if (socket->kind != SPOKEI_VWIRE_STREAM || socket->reset)
		return -ENOTCONN;
	to_address(socket->remote, ret_address);
	return 0;
}

/* --- connections */

static int net_connect(void *ctx, const struct spoke_address *to, int *ret_fd)
{
	struct spokei_vnet_user *user = ctx;
	struct spokei_vnet *net = enter(ctx);
	struct spokei_vwire_socket *socket;
	bool now;

	if (is_full(user))
		return traced(net, 'c', -1, -EMFILE);
	socket = spokei_vwire_open(net, SPOKEI_VWIRE_CONNECTING);
	spokei_vname_of(to, socket->remote);
	(void)snprintf(socket->local, sizeof(socket->local), "%s",
		       user->from && has_port(socket->remote) ? user->from
							      : name_of_client(socket->remote));
	choose_port(net, socket->local);
	socket->uid = user->uid;
	socket->gid = user->gid;
	socket->pid = user->pid;
	now = spokei_vwire_route_of(net, socket->remote) == SPOKEI_VNET_AT_ONCE;
	spokei_vwire_connect(net, socket, now);
	if (socket->error) {
		int error = -socket->error;

		spokei_vwire_close(net, socket);
		return traced(net, 'c', -1, error);
	}
	*ret_fd = give_fd(user, socket);
	spokei_vwire_tell(net, SPOKEI_VNET_CONNECT, socket, NULL, 0);
	return traced(net, 'c', *ret_fd, socket->kind == SPOKEI_VWIRE_STREAM ? 0 : -EINPROGRESS);
}

/* Returns the pending error, or 0, and clears it. */
static int take_error(struct spokei_vwire_socket *socket)
{
	int error = socket->error;

	socket->error = 0;
	return -error;
}

static int net_finish(void *ctx, int fd)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);
	int error = take_error(socket);

	if (!error && socket->kind == SPOKEI_VWIRE_CONNECTING)
		error = -EINPROGRESS;
	else if (!error && socket->reset)
		error = -ENOTCONN;
	return traced(socket->user->net, 'f', fd, error);
}

static int listen_at(struct spokei_vnet_user *user, const struct spoke_address *at, int backlog,
		     bool shared, int *ret_fd)
{
	struct spokei_vnet *net = enter(user);
	char name[SPOKEI_VNAME_SIZE];
	struct spokei_vwire_socket *socket;
	const struct spokei_vwire_socket *other;

	spokei_vname_of(at, name);
	if (shared && !has_port(name))
		return traced(net, 'l', -1, -EOPNOTSUPP);
	choose_port(net, name);
	other = spokei_vwire_listener(net, name);
	if (other && !(shared && other->shared && strcmp(other->local, name) == 0))
		return traced(net, 'l', -1, -EADDRINUSE);
	if (is_full(user))
		return traced(net, 'l', -1, -EMFILE);
	socket = spokei_vwire_open(net, SPOKEI_VWIRE_LISTENER);
	socket->backlog = backlog > 0 ? (unsigned)backlog : 1;
	socket->shared = shared;
	memcpy(socket->local, name, sizeof(name));
	*ret_fd = give_fd(user, socket);
	return traced(net, 'l', *ret_fd, 0);
}

static int net_listen(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd)
{
	return listen_at(ctx, at, backlog, false, ret_fd);
}

static int net_listen_shared(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd)
{
	return listen_at(ctx, at, backlog, true, ret_fd);
}

/* Notes the mode, which has no effect here. */
static int net_listen_mode(void *ctx, const struct spoke_address *at, int backlog, uint32_t mode,
			   int *ret_fd)
{
	static const char prefix[] = "unix:";
	int error;

	if (at->len <= strlen(prefix) || memcmp(at->bytes, prefix, strlen(prefix)) != 0 ||
	    at->bytes[strlen(prefix)] == '@')
		return -EOPNOTSUPP;
	error = listen_at(ctx, at, backlog, false, ret_fd);
	if (error == 0)
		own_socket(ctx, *ret_fd)->guard.mode = mode;
	return error;
}

static int net_accept(void *ctx, int fd, int *ret_fd, struct spoke_address *ret_peer)
{
	struct spokei_vwire_socket *listener = own_socket(ctx, fd);
	struct spokei_vnet *net = listener->user->net;
	struct spokei_vwire_socket *socket;

	SPOKE_ASSERT(listener->kind == SPOKEI_VWIRE_LISTENER);
	if (listener->queued == 0)
		return traced(net, 'a', fd, -EAGAIN);
	if (listener->accept_errors > 0) {
		listener->accept_errors--;
		if (listener->accept_error == -ECONNABORTED) {
			socket = spokei_vwire_accept(listener);
			spokei_vwire_break(net, socket->peer, ECONNRESET);
			spokei_vwire_close(net, socket);
		}
		return traced(net, 'a', fd, listener->accept_error);
	}
	if (is_full(ctx))
		return traced(net, 'a', fd, -EMFILE);
	socket = spokei_vwire_accept(listener);
	socket->guard = listener->guard;
	socket->guard.calls = 0;
	socket->uid = listener->user->uid;
	socket->gid = listener->user->gid;
	socket->pid = listener->user->pid;
	*ret_fd = give_fd(ctx, socket);
	to_address(socket->remote, ret_peer);
	spokei_vwire_tell(net, SPOKEI_VNET_ACCEPT, socket, NULL, 0);
	return traced(net, 'a', *ret_fd, 0);
}

/* Returns how much of `len` passes a fault of `max`. */
static size_t part_of(struct spokei_vnet *net, size_t len, uint32_t max)
{
	size_t part = max ? 1 + (size_t)(spokei_vwire_dice(net) % max) : len;

	return part < len ? part : len;
}

static ssize_t net_read(void *ctx, int fd, void *bytes, size_t len)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);
	struct spokei_vnet *net = socket->user->net;
	size_t part = len < socket->arrived ? len : socket->arrived;

	if (socket->kind != SPOKEI_VWIRE_STREAM)
		return traced(net, 'r', fd, -EAGAIN);
	if (socket->arrived == 0) {
		if (socket->error)
			return traced(net, 'r', fd, take_error(socket));
		return traced(net, 'r', fd, socket->ended || socket->reset ? 0 : -EAGAIN);
	}
	if (spokei_vwire_chance(net, socket->peer->out.eagain_permille)) {
		spokei_vwire_tell(net, SPOKEI_VNET_AGAIN, socket, NULL, 0);
		return traced(net, 'r', fd, -EAGAIN);
	}
	part = part_of(net, part, socket->peer->out.read_max);
	spokei_vwire_take(socket, bytes, part);
	spokei_vwire_tell(net, SPOKEI_VNET_READ, socket, bytes, part);
	if (!net->veiled)
		trace(net, bytes, part);
	return traced(net, 'r', fd, (int)part);
}

/* 0: go on and write. */
static int check_write(struct spokei_vnet *net, struct spokei_vwire_socket *socket)
{
	if (socket->kind != SPOKEI_VWIRE_STREAM)
		return -EAGAIN;
	if (socket->error)
		return take_error(socket);
	if (socket->reset || socket->shut)
		return -EPIPE;
	if (spokei_vwire_chance(net, socket->out.reset_permille)) {
		spokei_vwire_break(net, socket, 0);
		spokei_vwire_break(net, socket->peer, ECONNRESET);
		return -ECONNRESET;
	}
	if (spokei_vwire_room(socket) == 0)
		return -EAGAIN;
	if (spokei_vwire_chance(net, socket->out.eagain_permille)) {
		spokei_vwire_tell(net, SPOKEI_VNET_AGAIN, socket, NULL, 0);
		return -EAGAIN;
	}
	return 0;
}

static ssize_t net_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);
	struct spokei_vnet *net = socket->user->net;
	int error = check_write(net, socket);
	size_t left = 0;
	size_t written = 0;

	SPOKE_ASSERT(count > 0);
	if (error)
		return traced(net, 'w', fd, error);
	for (int i = 0; i < count; i++)
		left += parts[i].iov_len;
	if (left > spokei_vwire_room(socket))
		left = spokei_vwire_room(socket);
	left = part_of(net, left, socket->out.write_max);
	for (int i = 0; i < count && left > 0; i++) {
		size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;

		if (part > 0) {
			spokei_vwire_send(net, socket, parts[i].iov_base, part);
			spokei_vwire_tell(net, SPOKEI_VNET_WRITE, socket, parts[i].iov_base, part);
		}
		written += part;
		left -= part;
	}
	return traced(net, 'w', fd, (int)written);
}

static int net_shut(void *ctx, int fd)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);

	if (socket->kind != SPOKEI_VWIRE_STREAM || socket->reset)
		return traced(socket->user->net, 's', fd, -ENOTCONN);
	if (!socket->shut) {
		spokei_vwire_end(socket->user->net, socket);
		spokei_vwire_tell(socket->user->net, SPOKEI_VNET_SHUT, socket, NULL, 0);
	}
	return traced(socket->user->net, 's', fd, 0);
}

static void net_close(void *ctx, int fd)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);
	struct spokei_vnet_user *user = socket->user;

	(void)traced(user->net, 'x', fd, 0);
	user->net->fds[fd] = NULL;
	user->fds--;
	spokei_vwire_close(user->net, socket);
}

static int net_spare(void *ctx, int *ret_fd)
{
	struct spokei_vnet *net = enter(ctx);

	if (is_full(ctx))
		return traced(net, 'p', -1, -EMFILE);
	*ret_fd = give_fd(ctx, spokei_vwire_open(net, SPOKEI_VWIRE_SPARE));
	return traced(net, 'p', *ret_fd, 0);
}

static int net_guard(void *ctx, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);

	socket->guard = (struct spokei_vnet_guard){ .calls = socket->guard.calls + 1,
						    .unanswered_ns = unanswered_ns,
						    .keepalive_ns = keepalive_ns,
						    .send_buffer = socket->guard.send_buffer,
						    .mode = socket->guard.mode };
	return traced(socket->user->net, 'g', fd, 0);
}

static int net_send_buffer(void *ctx, int fd, uint32_t bytes)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);

	socket->guard.send_buffer = bytes;
	return traced(socket->user->net, 'b', fd, 0);
}

static int net_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			   int32_t *ret_pid)
{
	const struct spokei_vwire_socket *socket = own_socket(ctx, fd);

	if (strncmp(socket->remote, "unix:", 5) != 0 || socket->peer == NULL)
		return traced(socket->user->net, 'u', fd, -EOPNOTSUPP);
	*ret_uid = socket->peer->uid;
	*ret_gid = socket->peer->gid;
	*ret_pid = socket->peer->pid;
	return traced(socket->user->net, 'u', fd, 0);
}

/* All bytes at once, or none. */
static int net_share(void *ctx, int fd, const struct iovec *bytes, size_t size,
		     struct spoke_shared *ret)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);
	struct spokei_vnet *net = socket->user->net;
	int error = check_write(net, socket);

	/* Where there is room, there is enough: writable sockets take messages as short as this. */
	if (!error)
		ret->memory = new_share(size);
	if (!error && ret->memory == NULL)
		error = -ENOMEM;
	if (error)
		return traced(net, 'h', fd, error);
	ret->size = size;
	socket->user->shares++;
	if (socket->peer->gift == NULL)
		socket->peer->gift = take_share(ret->memory);
	spokei_vwire_send(net, socket, bytes->iov_base, bytes->iov_len);
	spokei_vwire_tell(net, SPOKEI_VNET_WRITE, socket, bytes->iov_base, bytes->iov_len);
	return traced(net, 'h', fd, 0);
}

/* The memory comes with the first bytes, which are not cut here. */
static ssize_t net_shared(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
			  struct spoke_shared *ret)
{
	struct spokei_vwire_socket *socket = own_socket(ctx, fd);
	struct spokei_vnet *net = socket->user->net;
	void *gift = socket->gift;

	*ret = (struct spoke_shared){ NULL, 0 };
	if (gift == NULL || socket->reset || socket->ended)
		return net_read(ctx, fd, bytes->iov_base, bytes->iov_len);
	if (socket->arrived < bytes->iov_len)
		return traced(net, 'H', fd, -EAGAIN);
	socket->gift = NULL;
	spokei_vwire_take(socket, bytes->iov_base, bytes->iov_len);
	spokei_vwire_tell(net, SPOKEI_VNET_READ, socket, bytes->iov_base, bytes->iov_len);
	if (size_of_share(gift) > size_max) {
		spokei_vshare_drop(gift);
		return traced(net, 'H', fd, -EBADMSG);
	}
	*ret = (struct spoke_shared){ gift, size_of_share(gift) };
	socket->user->shares++;
	return traced(net, 'H', fd, (int)bytes->iov_len);
}

static void net_unshare(void *ctx, struct spoke_shared *shared)
{
	struct spokei_vnet_user *user = ctx;

	SPOKE_ASSERT(user->shares > 0);
	user->shares--;
	spokei_vshare_drop(shared->memory);
	*shared = (struct spoke_shared){ NULL, 0 };
}

/* The network in memory does not know this. */
static ssize_t net_unsent(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	return -EOPNOTSUPP;
}

const struct spoke_net spokei_vnet_table = {
	.connect = net_connect,
	.finish = net_finish,
	.listen = net_listen,
	.accept = net_accept,
	.read = net_read,
	.write = net_write,
	.shut = net_shut,
	.close = net_close,
	.spare = net_spare,
	.local = net_local,
	.peer = net_peer,
	.parse = net_parse,
	.print = net_print,
	.resolve = net_resolve,
	.guard = net_guard,
	.unsent = net_unsent,
	.listen_shared = net_listen_shared,
	.send_buffer = net_send_buffer,
	.credentials = net_credentials,
	.listen_mode = net_listen_mode,
	.share = net_share,
	.shared = net_shared,
	.unshare = net_unshare,
};
