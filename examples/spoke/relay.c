/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP relay between accepted clients and a target. */
#include "examples/spoke/relay.h"

#include <errno.h>
#include <stdlib.h>

#define BACKLOG 128
#define LATE_NS UINT64_C(10000000000) /* idle timeout once one side has ended */
#define REST_NS UINT64_C(200000000)

static struct relay_end *other_of(struct relay_end *end)
{
	return &end->pair->ends[end->way == RELAY_TO ? 1 : 0];
}

/* --- watching sockets */

static void watch_end(struct relay_end *end)
{
	bool reads = !end->connecting && !end->ended && end->at + end->len < RELAY_ROOM;
	bool writes = end->connecting || other_of(end)->len > 0;
	unsigned io = (reads ? SPOKE_IO_READ : 0u) | (writes ? SPOKE_IO_WRITE : 0u);

	if (end->open)
		spoke_engine_watch(end->pair->relay->engine, &end->watch, io);
}

static void close_end(struct relay_end *end)
{
	const struct spoke_env *env = end->pair->relay->env;

	if (!end->open)
		return;
	spoke_engine_watch(end->pair->relay->engine, &end->watch, 0);
	env->net->close(env->ctx, end->watch.fd);
	end->open = false;
}

static void listen_again(struct relay *relay)
{
	if (relay->pair_count < RELAY_PAIRS_MAX)
		spoke_engine_watch(relay->engine, &relay->listener, SPOKE_IO_READ);
}

static void close_pair(struct relay_pair *pair)
{
	struct relay *relay = pair->relay;

	(void)spoke_alarm_cancel(&pair->late);
	relay->looks->closed(pair);
	for (unsigned i = 0; i < RELAY_PAIRS_MAX; i++)
		if (relay->pairs[i] == pair)
			relay->pairs[i] = NULL;
	relay->pair_count--;
	for (int i = 0; i < 2; i++) {
		close_end(&pair->ends[i]);
		free(pair->ends[i].room);
	}
	free(pair);
	listen_again(relay);
}

/* --- bytes */

/* Marks the socket as failed; input that was read before is still forwarded. */
static void break_end(struct relay_end *end, int error)
{
	struct relay_end *other = other_of(end);

	if (end->pair->error == 0)
		end->pair->error = error;
	end->ended = true;
	other->ended = true;
	other->len = 0;
}

static void read_end(struct relay_end *end)
{
	struct relay *relay = end->pair->relay;
	const struct spoke_env *env = relay->env;
	size_t used = end->at + end->len;
	ssize_t got;

	if (end->ended || used == RELAY_ROOM)
		return;
	got = env->net->read(env->ctx, end->watch.fd, end->room + used, RELAY_ROOM - used);
	if (got > 0) {
		relay->looks->bytes(end->pair, end->way, end->room + used, (size_t)got);
		end->len += (size_t)got;
	} else if (got == 0) {
		end->ended = true;
		relay->looks->ended(end->pair, end->way);
	} else if (got != -EAGAIN && got != -EINTR) {
		break_end(end, (int)got);
	}
}

/* Writes the input of this end to the other end. */
static void pass_on(struct relay_end *end)
{
	struct relay_end *other = other_of(end);
	const struct spoke_env *env = end->pair->relay->env;
	struct iovec part = { end->room + end->at, end->len };
	ssize_t taken;

	if (end->len == 0 || !other->open || other->connecting)
		return;
	taken = env->net->write(env->ctx, other->watch.fd, &part, 1);
	if (taken > 0) {
		end->at += (size_t)taken;
		end->len -= (size_t)taken;
	} else if (taken < 0 && taken != -EAGAIN && taken != -EINTR) {
		break_end(other, (int)taken);
	}
	if (end->len == 0)
		end->at = 0;
}

/* Forwards end of file after all input before it. */
static void pass_end(struct relay_end *end)
{
	struct relay_end *other = other_of(end);
	const struct spoke_env *env = end->pair->relay->env;

	if (!end->ended || end->len > 0 || end->forwarded || !other->open || other->connecting)
		return;
	(void)env->net->shut(env->ctx, other->watch.fd);
	end->forwarded = true;
}

static void too_late(struct spoke_alarm *alarm)
{
	struct relay_pair *pair = spoke_container_of(alarm, struct relay_pair, late);

	if (pair->error == 0)
		pair->error = -ETIMEDOUT;
	close_pair(pair);
}

/* Starts the idle timeout once one side has ended: a frozen peer might never close its side.
 * Returns false if no timer could be set. */
static bool watch_rest(struct relay_pair *pair)
{
	if (!pair->ends[0].ended && !pair->ends[1].ended)
		return true;
	return spoke_alarm_after(pair->relay->engine, &pair->late, LATE_NS, too_late) == 0;
}

/* Handles pending input and ends of both sides; may free the pair. */
static void settle(struct relay_pair *pair)
{
	for (int i = 0; i < 2; i++)
		pass_on(&pair->ends[i]);
	for (int i = 0; i < 2; i++)
		pass_end(&pair->ends[i]);
	if ((pair->ends[0].forwarded && pair->ends[1].forwarded) || !watch_rest(pair)) {
		close_pair(pair);
		return;
	}
	for (int i = 0; i < 2; i++)
		watch_end(&pair->ends[i]);
}

/* --- connecting */

static void end_ready(struct spoke_watch *watch, unsigned io);

static void open_end(struct relay_end *end, int fd)
{
	end->watch = (struct spoke_watch){ .ready = end_ready, .fd = fd };
	end->open = true;
}

/* Connects to the next address of the target. Returns 0, or a negative errno if none is left. */
static int connect_next(struct relay_pair *pair)
{
	struct relay *relay = pair->relay;
	struct relay_end *end = &pair->ends[1];
	int result = pair->error ? pair->error : -EINVAL;

	close_end(end);
	while (pair->tried < relay->target_count) {
		int fd;

		result = relay->env->net->connect(relay->env->ctx, &relay->targets[pair->tried++],
						  &fd);
		if (result == 0 || result == -EINPROGRESS) {
			end->connecting = result < 0;
			open_end(end, fd);
			return 0;
		}
	}
	return result;
}

/* Returns true if connected or connecting to the next address; false if the pair was closed. */
static bool connected(struct relay_end *end)
{
	struct relay_pair *pair = end->pair;
	const struct spoke_env *env = pair->relay->env;
	int result = env->net->finish(env->ctx, end->watch.fd);

	end->connecting = false;
	if (result == 0)
		return true;
	pair->error = result;
	result = connect_next(pair);
	if (result == 0) {
		pair->error = 0;
		return true;
	}
	pair->error = result;
	close_pair(pair);
	return false;
}

static void end_ready(struct spoke_watch *watch, unsigned io)
{
	struct relay_end *end = spoke_container_of(watch, struct relay_end, watch);

	if (end->connecting) {
		if (!connected(end))
			return;
	} else if (io & SPOKE_IO_READ) {
		read_end(end);
	}
	settle(end->pair);
}

/* --- accepting */

static struct relay_pair *make_pair(struct relay *relay, int fd)
{
	struct relay_pair *pair = calloc(1, sizeof(*pair));
	unsigned at = 0;

	if (!pair)
		return NULL;
	pair->relay = relay;
	for (int i = 0; i < 2; i++) {
		pair->ends[i].pair = pair;
		pair->ends[i].way = i == 0 ? RELAY_TO : RELAY_FROM;
		pair->ends[i].room = malloc(RELAY_ROOM);
	}
	if (!pair->ends[0].room || !pair->ends[1].room) {
		free(pair->ends[0].room);
		free(pair->ends[1].room);
		free(pair);
		return NULL;
	}
	open_end(&pair->ends[0], fd);
	while (relay->pairs[at])
		at++;
	relay->pairs[at] = pair;
	relay->pair_count++;
	pair->number = ++relay->made;
	return pair;
}

static void take(struct relay *relay, int fd, const struct spoke_address *peer)
{
	struct relay_pair *pair = make_pair(relay, fd);

	if (!pair) {
		relay->env->net->close(relay->env->ctx, fd);
		relay->looks->refused(relay, -ENOMEM);
		return;
	}
	pair->error = relay->looks->opened(pair, peer) ? connect_next(pair) : -ENOMEM;
	if (pair->error)
		close_pair(pair);
	else
		settle(pair);
}

static void rested(struct spoke_alarm *alarm)
{
	listen_again(spoke_container_of(alarm, struct relay, rest));
}

static void listener_ready(struct spoke_watch *watch, unsigned io)
{
	struct relay *relay = spoke_container_of(watch, struct relay, listener);
	struct spoke_address peer;
	int fd;
	int result = relay->env->net->accept(relay->env->ctx, watch->fd, &fd, &peer);

	(void)io;
	if (result == 0)
		take(relay, fd, &peer);
	else if (result != -EAGAIN && result != -EINTR && result != -ECONNABORTED)
		relay->looks->refused(relay, result);
	else
		return;
	if (relay->pair_count == RELAY_PAIRS_MAX) {
		spoke_engine_watch(relay->engine, watch, 0);
		relay->looks->refused(relay, -EUSERS);
	}
	if (result < 0 && spoke_alarm_after(relay->engine, &relay->rest, REST_NS, rested) == 0)
		spoke_engine_watch(relay->engine, watch, 0);
}

int relay_begin(struct relay *relay, const struct spoke_address *at)
{
	int result = relay->env->net->listen(relay->env->ctx, at, BACKLOG, &relay->listener.fd);

	if (result < 0)
		return result;
	relay->listener.ready = listener_ready;
	listen_again(relay);
	return 0;
}

void relay_end(struct relay *relay)
{
	for (unsigned i = 0; i < RELAY_PAIRS_MAX; i++)
		if (relay->pairs[i])
			close_pair(relay->pairs[i]);
	(void)spoke_alarm_cancel(&relay->rest);
	spoke_engine_watch(relay->engine, &relay->listener, 0);
	relay->env->net->close(relay->env->ctx, relay->listener.fd);
}
