/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the Redis in memory: its loop, its connections and its faults. */
#include "tests/support/redis/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BACKLOG = 64,
	READ_SIZE = 16384
};

/* --- connections */

static const struct spoke_env *env_of(const struct fakeredis *server)
{
	return &server->process.env;
}

static void watch(struct fakeredis *server, struct spoke_watch *one, unsigned io)
{
	if (one->io != io)
		env_of(server)->loop->watch(server->loop, one, io);
}

static void conn_free(struct fakeredis_conn *conn)
{
	struct fakeredis *server = conn->server;
	const struct spoke_env *env = env_of(server);

	watch(server, &conn->watch, 0);
	if (conn->resets)
		spokei_vnet_reset(server->process.world->net, conn->watch.fd);
	env->net->close(env->ctx, conn->watch.fd);
	while (conn->sub_count > 0)
		free(conn->subs[--conn->sub_count]);
	spokei_buffer_fini(&conn->in);
	spokei_buffer_fini(&conn->out);
	server->conns[conn->index] = NULL;
	free(conn);
}

/* Runs the commands in the input of a connection. */
static void fakeredis_take(struct fakeredis_conn *conn)
{
	static struct spoke_span args[FAKEREDIS_ARGS];
	struct fakeredis *server = conn->server;
	unsigned count;
	size_t used;

	while (!conn->ended && !conn->closing) {
		switch (fakeredis_parse(spokei_buffer_data(&conn->in), spokei_buffer_len(&conn->in),
					args, &count, &used)) {
		case FAKEREDIS_PARSE_MORE:
			return;
		case FAKEREDIS_PARSE_BROKEN:
			server->protocol_errors++;
			used = spokei_buffer_len(&conn->out);
			fakeredis_error(conn, "ERR Protocol error: not an array of bulk strings");
			fakeredis_mark(conn, used);
			conn->closing = true;
			return;
		case FAKEREDIS_PARSE_COMMAND:
			fakeredis_run(conn, args, count);
			spokei_buffer_consume(&conn->in, used);
		}
	}
}

static void conn_read(struct fakeredis_conn *conn)
{
	static unsigned char bytes[READ_SIZE];
	const struct spoke_env *env = env_of(conn->server);
	ssize_t got = env->net->read(env->ctx, conn->watch.fd, bytes, sizeof(bytes));

	if (got == -EAGAIN)
		return;
	if (got <= 0 || spokei_buffer_append(&conn->in, bytes, (size_t)got)) {
		conn->ended = true;
		return;
	}
	fakeredis_take(conn);
}

static void conn_write(struct fakeredis_conn *conn)
{
	const struct spoke_env *env = env_of(conn->server);

	while (conn->free > 0 && !conn->ended) {
		struct iovec part = { spokei_buffer_data(&conn->out), conn->free };
		ssize_t took = env->net->write(env->ctx, conn->watch.fd, &part, 1);

		if (took == -EAGAIN)
			return;
		if (took < 0) {
			conn->ended = true;
			return;
		}
		spokei_buffer_consume(&conn->out, (size_t)took);
		conn->free -= (size_t)took;
	}
}

static void conn_ready(struct spoke_watch *one, unsigned io)
{
	struct fakeredis_conn *conn = spoke_container_of(one, struct fakeredis_conn, watch);

	if (io & SPOKE_IO_READ && !conn->ended && !conn->closing)
		conn_read(conn);
}

static void conn_new(struct fakeredis *server, unsigned index, int fd,
		     const struct spoke_address *from)
{
	struct fakeredis_conn *conn = calloc(1, sizeof(*conn));

	SPOKE_ASSERT(conn != NULL);
	conn->watch.ready = conn_ready;
	conn->watch.fd = fd;
	conn->server = server;
	conn->index = index;
	conn->id = ++server->clients;
	env_of(server)->net->print(env_of(server)->ctx, from, conn->peer, sizeof(conn->peer));
	spokei_buffer_init(&conn->in, env_of(server), FAKEREDIS_BUFFER);
	spokei_buffer_init(&conn->out, env_of(server), FAKEREDIS_BUFFER);
	server->conns[index] = conn;
	watch(server, &conn->watch, SPOKE_IO_READ);
}

static void listener_ready(struct spoke_watch *one, unsigned io)
{
	struct fakeredis *server = spoke_container_of(one, struct fakeredis, listener);
	const struct spoke_env *env = env_of(server);
	struct spoke_address from;
	unsigned index = 0;
	int fd;

	(void)io;
	if (env->net->accept(env->ctx, one->fd, &fd, &from))
		return;
	while (index < FAKEREDIS_CONNS && server->conns[index])
		index++;
	if (index < FAKEREDIS_CONNS)
		conn_new(server, index, fd, &from);
	else
		env->net->close(env->ctx, fd);
}

/* --- the loop */

/* Lets delayed answers go that are due. Returns when the next one is. */
static uint64_t free_answers(struct fakeredis_conn *conn, uint64_t now_ns)
{
	unsigned done = 0;

	while (done < conn->mark_count && conn->marks[done].due_ns <= now_ns)
		conn->free += conn->marks[done++].len;
	conn->mark_count -= done;
	if (done > 0)
		memmove(conn->marks, conn->marks + done, conn->mark_count * sizeof(conn->marks[0]));
	return conn->mark_count > 0 ? conn->marks[0].due_ns : UINT64_MAX;
}

/* Before each wait: writes, closes what has ended, and sets the time to wake up. */
static void settle(void *arg)
{
	struct fakeredis *server = arg;
	uint64_t wake_ns;

	fakeredis_replicate(server);
	wake_ns = fakeredis_replicate_next(server);
	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++) {
		struct fakeredis_conn *conn = server->conns[i];
		uint64_t due_ns;

		if (conn == NULL)
			continue;
		due_ns = free_answers(conn, server->process.world->now_ns);
		wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
		conn_write(conn);
		if (conn->ended || (conn->closing && spokei_buffer_len(&conn->out) == 0)) {
			conn_free(conn);
			continue;
		}
		watch(server, &conn->watch,
		      (conn->closing ? 0u : SPOKE_IO_READ) | (conn->free ? SPOKE_IO_WRITE : 0u));
	}
	env_of(server)->loop->wake_at(server->loop, wake_ns);
}

static uint64_t begin(void *arg)
{
	(void)arg;
	return 0;
}

static void turn(void *arg, unsigned ready)
{
	(void)arg;
	(void)ready;
}

/* --- life */

static const struct spoke_loop_up up = { .settle = settle, .begin = begin, .turn = turn };

static void keep_address(struct fakeredis *server, const char *at)
{
	const char *colon = strrchr(at, ':');

	(void)snprintf(server->host, sizeof(server->host), "%.*s", (int)(colon - at), at);
	(void)snprintf(server->port, sizeof(server->port), "%s", colon + 1);
}

void fakeredis_start(struct fakeredis *server, struct spokei_world *world, const char *at)
{
	const struct spoke_env *env = env_of(server);
	struct spoke_address address;
	int error;

	SPOKE_ASSERT(!server->running);
	if (server->process.world == NULL) {
		spokei_world_process_init(&server->process, world);
		fakeredis_know_all(server);
	}
	keep_address(server, at);
	error = env->loop->open(env->ctx, NULL, &up, server, &server->loop);
	if (error == 0)
		error = env->net->parse(env->ctx, at, &address);
	if (error == 0)
		error = env->net->listen(env->ctx, &address, BACKLOG, &server->listener.fd);
	SPOKE_ASSERT(error == 0);
	server->listener.ready = listener_ready;
	watch(server, &server->listener, SPOKE_IO_READ);
	server->clients = 0;
	server->running = true;
}

void fakeredis_kill(struct fakeredis *server)
{
	const struct spoke_env *env = env_of(server);

	if (!server->running)
		return;
	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++)
		if (server->conns[i])
			conn_free(server->conns[i]);
	watch(server, &server->listener, 0);
	env->net->close(env->ctx, server->listener.fd);
	env->loop->retire(server->loop);
	env->loop->close(server->loop);
	fakeredis_flush_scripts(server);
	server->running = false;
}

void fakeredis_stop(struct fakeredis *server)
{
	if (server->process.world == NULL)
		return;
	fakeredis_kill(server);
	if (server->primary)
		fakeredis_promote(server);
	for (unsigned i = 0; i < FAKEREDIS_REPLICAS; i++)
		if (server->replicas[i].server)
			server->replicas[i].server->primary = NULL;
	fakeredis_forget_replicas(server);
	fakeredis_wipe(server);
	SPOKE_ASSERT(server->process.blocks == 0 && server->process.user.fds == 0);
	spokei_world_process_fini(&server->process);
	server->process.world = NULL;
}

/* --- faults */

void fakeredis_cut(struct fakeredis *server, enum fakeredis_cut how, const char *command,
		   enum fakeredis_script script, unsigned skip)
{
	server->cut_how = how;
	server->cut_command = command;
	server->cut_script = script;
	server->cut_skip = skip;
}

static bool is_of_kind(const struct fakeredis_conn *conn, bool subscribers)
{
	return conn && !conn->ended && (conn->sub_count > 0) == subscribers;
}

void fakeredis_reset(struct fakeredis *server, bool subscribers)
{
	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++) {
		if (!is_of_kind(server->conns[i], subscribers))
			continue;
		server->conns[i]->resets = true;
		conn_free(server->conns[i]);
	}
}

void fakeredis_reset_all(struct fakeredis *server)
{
	fakeredis_reset(server, false);
	fakeredis_reset(server, true);
}

unsigned fakeredis_conns(const struct fakeredis *server)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++)
		count += server->conns[i] != NULL;
	return count;
}

unsigned fakeredis_subscribers(const struct fakeredis *server)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FAKEREDIS_CONNS; i++)
		count += server->conns[i] && server->conns[i]->sub_count > 0;
	return count;
}
