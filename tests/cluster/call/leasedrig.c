/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of calls under a lease: see leasedrig.h. */
#include "tests/cluster/call/leasedrig.h"

#include "transport/wire/catalog.h"

#include <stdio.h>
#include <string.h>

struct leasedrig rig;

static unsigned char large[2 * MIB];

void leasedrig_pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

/* --- set-up */

int leasedrig_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.conn.fd = -1;
	assert_true(spokei_world_init(&rig.world, 3));
	spokei_world_process_init(&rig.process, &rig.world);
	peer_init(&rig.peer, &rig.world);
	rig.listener = peer_listen(&rig.peer, RIG_AT);
	assert_int_equal(spoke_engine_new(&with, &rig.engine), 0);
	leasing_begin(&rig.world, rig.engine);
	leasing_count("reports", "41");
	return 0;
}

int leasedrig_tear_down(void **state)
{
	(void)state;
	leasing_leave();
	spoke_engine_free(rig.engine);
	leasing_end();
	for (unsigned i = 0; i < rig.begun; i++)
		assert_int_equal(rig.calls[i].ends, 1);
	assert_int_equal(rig.process.blocks, 0);
	assert_int_equal(rig.process.user.fds, 0);
	peer_close(&rig.conn);
	peer_fini(&rig.peer);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

void leasedrig_consume(const char *scheme, enum spoke_serialization serialization)
{
	struct spoke_consumer_options options = { .serialization = serialization };
	char url[128];

	(void)snprintf(url, sizeof(url), "%s://" RIG_AT "/demo.Echo?timeout=60s&retries=0", scheme);
	options.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

void leasedrig_accept(const char *wire)
{
	int fd;

	leasedrig_pass(10 * MS);
	fd = peer_accept(&rig.peer, rig.listener);
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, spokei_catalog_wire(wire));
	leasedrig_pass(10 * MS);
}

/* Makes a consumer that is connected, and a lease that is valid for a second. */
void leasedrig_begin(void)
{
	leasedrig_consume("dubbo", SPOKE_SERIALIZATION_MSGPACK);
	leasedrig_accept("dubbo");
	rig.lease = leasing_grant("reports", SECOND);
}

/* --- the peer */

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST)
		return;
	rig.came++;
	rig.last_id = message->id;
	rig.timeout_ms = message->timeout_ms;
	rig.attached[0] = '\0';
	if (message->attachments.len)
		(void)spoke_value_print(message->attachments, rig.attached, RIG_TEXT);
}

void leasedrig_look(void)
{
	peer_read(&rig.conn, take, NULL);
}

void leasedrig_read(void)
{
	for (unsigned i = 0; i < 300; i++) {
		peer_read(&rig.conn, take, NULL);
		leasedrig_pass(MS);
	}
	assert_false(rig.conn.broken);
}

void leasedrig_answer(void)
{
	static const unsigned char nil[] = { 0xc0 };
	const struct spokei_message reply = {
		.kind = SPOKEI_REPLY,
		.id = rig.last_id,
		.codec = 27,
		.status = 20,
		.value = { nil, 1 },
	};

	peer_put(&rig.conn, &reply);
	(void)peer_write(&rig.conn, SIZE_MAX);
	leasedrig_pass(10 * MS);
}

/* --- calls */

static void done(void *arg, const struct spoke_result *result)
{
	struct leasedrig_call *made = arg;

	made->ends++;
	made->error = result->error;
	made->written = result->written;
	made->fallback = result->fallback;
	made->attempts = result->attempts;
	made->took_ns = rig.world.now_ns - made->begun_ns;
	if (rig.in_done)
		rig.in_done(made);
}

struct spoke_span leasedrig_args(size_t len)
{
	large[0] = 0xc6;
	for (unsigned i = 0; i < 4; i++)
		large[1 + i] = (unsigned char)(len >> (24 - 8 * i));
	return (struct spoke_span){ large, len + 5 };
}

int leasedrig_try(struct spoke_method *method, size_t len, const struct spoke_call_options *options)
{
	struct leasedrig_call *made = &rig.calls[rig.begun];
	int error;

	assert_in_range(rig.begun, 0, RIG_CALLS - 1);
	made->begun_ns = rig.world.now_ns;
	error = spoke_call(method, leasedrig_args(len), options, done, made, &made->name);
	rig.begun += error == 0;
	return error;
}

struct leasedrig_call *leasedrig_call_with(size_t len, const struct spoke_call_options *options)
{
	assert_int_equal(leasedrig_try(rig.echo, len, options), 0);
	return &rig.calls[rig.begun - 1];
}

struct leasedrig_call *leasedrig_call(size_t len)
{
	const struct spoke_call_options options = { .lease = rig.lease };

	return leasedrig_call_with(len, &options);
}

struct leasedrig_call *leasedrig_call_without(size_t len)
{
	const struct spoke_call_options options = { 0 };

	return leasedrig_call_with(len, &options);
}

/* A callback that calls, and then takes long. */
static struct {
	struct spoke_alarm alarm;
	struct spoke_call_options options;
	size_t len;
	uint64_t stall_ns;
} late;

static void call_late(struct spoke_alarm *alarm)
{
	(void)alarm;
	(void)leasedrig_call_with(late.len, &late.options);
	spokei_world_hold(&rig.process, late.stall_ns);
}

/* Makes a call in a callback, which returns after `stall_ns`. */
struct leasedrig_call *leasedrig_stall(size_t len, const struct spoke_call_options *options,
				       uint64_t stall_ns)
{
	struct leasedrig_call *made = &rig.calls[rig.begun];

	memset(&late, 0, sizeof(late));
	late.options = *options;
	late.options.lease = rig.lease;
	late.len = len;
	late.stall_ns = stall_ns;
	assert_int_equal(spoke_alarm_after(rig.engine, &late.alarm, MS, call_late), 0);
	leasedrig_pass(2 * MS);
	leasedrig_pass(stall_ns);
	return made;
}

void leasedrig_never_came(const struct leasedrig_call *call, unsigned others)
{
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ELEASE);
	assert_false(call->written);
	leasedrig_read();
	assert_int_equal(rig.came, others);
}
