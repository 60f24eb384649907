/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output buffer against a model, which knows the frame of each byte, and against the input
 * buffer, which must read whole frames in the order of the model.
 */
#include "core/virtual/faults.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dice.h"
#include "tests/transport/stream.h"
#include "transport/wire/catalog.h"
#include "transport/wire/intake.h"
#include "transport/wire/outlet.h"

#include <stdlib.h>

enum {
	QUEUE_ROOM = 4096, /* frames of each kind in a run */
	ARG_MAX = 100000,  /* bytes */
	CONTROL_MAX = 4096,
};

static unsigned char arg_bytes[ARG_MAX + 5];

/* A frame in a queue. */
struct frame {
	uint64_t id;
	uint64_t mark;
	size_t len;
};

struct queue {
	struct frame frames[QUEUE_ROOM];
	size_t put;
	size_t begun; /* frames whose first byte was taken */
	size_t bytes; /* waiting */
};

struct run {
	struct memory memory;
	struct spokei_faults faulty;
	struct spokei_wire_limits limits;
	const struct spokei_wire *wire;
	struct spokei_outlet outlet;
	struct spokei_intake intake;
	struct queue out;
	struct queue control;
	bool in_control; /* the frame of which `rest` bytes remain is a control frame */
	size_t rest;
	struct frame whole[2 * QUEUE_ROOM]; /* in the order in which taking began */
	size_t begun;
	size_t read; /* frames read by the input buffer */
	uint64_t dice;
	uint64_t id;
	bool took_within_control; /* cases that the run has covered */
	bool took_within_out;
	bool overtook;
	bool met_limit;
};

static void start(struct run *run, const char *wire, size_t max)
{
	memset(run, 0, sizeof(*run));
	memory_init(&run->memory);
	spokei_faults_init(&run->faulty, &run->memory.env);
	run->limits = stream_limits;
	run->wire = spokei_catalog_wire(wire);
	spokei_outlet_init(&run->outlet, &run->faulty.env, max);
	spokei_intake_init(&run->intake, &run->memory.env, &run->limits);
}

static void stop(struct run *run)
{
	spokei_outlet_fini(&run->outlet);
	assert_int_equal(run->faulty.bytes, 0);
	spokei_intake_fini(&run->intake);
	assert_int_equal(run->memory.bytes, 0);
}

/* Makes a request with one bin of this length. It is valid until the next one is made. */
static struct spokei_message make_request(uint64_t id, size_t len)
{
	arg_bytes[0] = 0xc6;
	for (unsigned i = 0; i < 4; i++)
		arg_bytes[1 + i] = (unsigned char)(len >> (24 - 8 * i));
	return (struct spokei_message){
		.kind = SPOKEI_REQUEST,
		.id = id,
		.two_way = true,
		.codec = 27,
		.service = { "demo.Echo", 9 },
		.method = { "echo", 4 },
		.args = { arg_bytes, 5 + len },
		.arg_count = 1,
	};
}

static struct spokei_message make_probe(uint64_t id)
{
	return (struct spokei_message){
		.kind = SPOKEI_PROBE, .id = id, .two_way = true, .codec = 27
	};
}

/* Computes the length of the message's frame without limits. Returns 0 or an error. */
static int measure(struct run *run, const struct spokei_message *message, size_t *ret_len)
{
	struct spokei_buffer buffer;
	int error;

	spokei_buffer_init(&buffer, &run->memory.env, SIZE_MAX);
	error = run->wire->write(&run->limits, message, &buffer);
	*ret_len = spokei_buffer_len(&buffer);
	spokei_buffer_fini(&buffer);
	return error;
}

/* Copies all waiting bytes in sending order. Returns their number. */
static size_t copy_front(const struct run *run, unsigned char **ret_bytes)
{
	struct iovec parts[SPOKEI_OUTLET_PARTS];
	int count = spokei_outlet_front(&run->outlet, parts);
	size_t len = spokei_outlet_len(&run->outlet);
	size_t at = 0;

	assert_in_range(count, 0, SPOKEI_OUTLET_PARTS);
	*ret_bytes = malloc(len + 1);
	assert_non_null(*ret_bytes);
	for (int i = 0; i < count; i++) {
		assert_true(parts[i].iov_len > 0 && parts[i].iov_len <= len - at);
		memcpy(*ret_bytes + at, parts[i].iov_base, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	assert_int_equal(at, len);
	return len;
}

/* Puts a message. If that fails, asserts that the output buffer is unchanged. */
static int put_message(struct run *run, const struct spokei_message *message)
{
	unsigned char *before;
	unsigned char *after;
	uint64_t mark = spokei_outlet_mark(&run->outlet);
	size_t len = copy_front(run, &before);
	int error = message->kind == SPOKEI_PROBE
			    ? spokei_outlet_put_control(&run->outlet, run->wire, &run->limits,
							message)
			    : spokei_outlet_put(&run->outlet, run->wire, &run->limits, message);

	if (error != 0) {
		assert_int_equal(copy_front(run, &after), len);
		assert_memory_equal(after, before, len);
		assert_int_equal(spokei_outlet_mark(&run->outlet), mark);
		free(after);
	}
	free(before);
	return error;
}

static void note_put(struct run *run, struct queue *queue, uint64_t id, uint64_t mark, size_t len)
{
	assert_true(queue->put < QUEUE_ROOM);
	queue->frames[queue->put++] = (struct frame){ id, mark, len };
	queue->bytes += len;
	run->overtook |= queue == &run->control && run->out.begun < run->out.put;
}

/* Puts a frame of either kind and compares the result with the expected one. */
static void put_some(struct run *run, bool control, size_t arg_len)
{
	struct queue *queue = control ? &run->control : &run->out;
	uint64_t id = ++run->id;
	struct spokei_message message = control ? make_probe(id) : make_request(id, arg_len);
	uint64_t mark = spokei_outlet_mark(&run->outlet);
	size_t len;
	int expected = measure(run, &message, &len);

	if (expected == 0 &&
	    len > (control ? (size_t)CONTROL_MAX : run->outlet.out.max) - queue->bytes)
		expected = SPOKE_ELIMIT;
	run->met_limit |= expected == SPOKE_ELIMIT;
	assert_int_equal(put_message(run, &message), expected);
	if (expected == 0)
		note_put(run, queue, id, mark, len);
	assert_int_equal(spokei_outlet_len(&run->outlet), run->out.bytes + run->control.bytes);
}

/* Updates the model after bytes were taken. */
static void note_taken(struct run *run, size_t len)
{
	while (len > 0) {
		struct queue *queue;
		size_t some;

		if (run->rest == 0) {
			run->in_control = run->control.begun < run->control.put;
			queue = run->in_control ? &run->control : &run->out;
			assert_true(queue->begun < queue->put);
			run->whole[run->begun++] = queue->frames[queue->begun];
			run->rest = queue->frames[queue->begun++].len;
		}
		queue = run->in_control ? &run->control : &run->out;
		some = len < run->rest ? len : run->rest;
		run->rest -= some;
		queue->bytes -= some;
		len -= some;
	}
	run->took_within_control |= run->rest > 0 && run->in_control;
	run->took_within_out |= run->rest > 0 && !run->in_control;
}

/* Feeds the taken bytes to the input buffer, which must read the frames complete in the model. */
static void read_taken(struct run *run, const unsigned char *bytes, size_t len)
{
	struct spoke_span rest = { bytes, len };
	struct spokei_message message;

	while (spokei_intake_next(&run->intake, &rest, &message) == SPOKEI_INTAKE_MESSAGE) {
		assert_true(run->read < run->begun);
		assert_int_equal(message.id, run->whole[run->read++].id);
	}
	assert_false(run->intake.broken);
	assert_int_equal(run->read, run->begun - (run->rest > 0));
	assert_int_equal(spokei_intake_begun(&run->intake), run->rest > 0);
}

static void take(struct run *run, size_t len)
{
	unsigned char *front;

	assert_in_range(len, 0, copy_front(run, &front));
	spokei_outlet_took(&run->outlet, run->wire, len);
	note_taken(run, len);
	read_taken(run, front, len);
	free(front);
	assert_int_equal(spokei_outlet_len(&run->outlet), run->out.bytes + run->control.bytes);
	for (size_t i = 0; i < run->out.put; i++)
		assert_int_equal(spokei_outlet_passed(&run->outlet, run->out.frames[i].mark),
				 i < run->out.begun);
}

static size_t some_arg_len(struct run *run)
{
	static const size_t most[] = { 1, 30, 300, 300, 2000, 70000 };

	return dice_below(&run->dice, most[dice_below(&run->dice, 6)]);
}

/* Picks a length: often a byte, everything, or close to the end of a frame. */
static size_t some_len(struct run *run)
{
	size_t len = spokei_outlet_len(&run->outlet);
	size_t some[] = { 1, len, run->rest + dice_below(&run->dice, 3),
			  dice_below(&run->dice, 100), dice_below(&run->dice, len + 1) };
	size_t chosen = some[dice_below(&run->dice, 5)];

	return chosen < len ? chosen : len;
}

/* Puts and takes at random until the queues of the model are full, then takes the rest. */
static void run_dice(struct run *run, uint64_t seed, unsigned steps)
{
	run->dice = seed;
	while (steps-- > 0) {
		uint64_t dice = dice_throw(&run->dice) % 8;

		if (dice < 3)
			put_some(run, false, some_arg_len(run));
		else if (dice < 5 && run->wire->probes)
			put_some(run, true, 0);
		else
			take(run, some_len(run));
	}
	while (spokei_outlet_len(&run->outlet) > 0)
		take(run, some_len(run));
	assert_int_equal(run->read, run->out.put + run->control.put);
}

static struct run run;

TEST(partial_writes_keep_frames_whole_and_in_order)
{
	unsigned within_control = 0;
	unsigned within_out = 0;
	unsigned overtook = 0;

	for (uint64_t seed = 1; seed <= 120; seed++) {
		start(&run, seed % 4 ? "dubbo" : "msgpack-rpc", 1u << 24);
		run_dice(&run, seed, 300);
		within_control += run.took_within_control;
		within_out += run.took_within_out;
		overtook += run.overtook;
		stop(&run);
	}
	assert_int_equal(within_control, 90);
	assert_int_equal(within_out, 120);
	assert_int_equal(overtook, 90);
}

TEST(full_outlet_accepts_only_fitting_frames)
{
	unsigned met_limit = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		start(&run, seed % 4 ? "dubbo" : "msgpack-rpc", (size_t)(500 + seed * 20));
		run.limits.frame_max = 1500;
		run_dice(&run, seed, 300);
		met_limit += run.met_limit;
		stop(&run);
	}
	assert_true(met_limit > 50);
}

TEST(outlet_maximum_is_exact)
{
	struct spokei_message message = make_request(7, 200);
	size_t len;

	for (size_t w = 0; w < 2; w++) {
		for (size_t lack = 0; lack < 2; lack++) {
			start(&run, w ? "dubbo" : "msgpack-rpc", 0);
			assert_int_equal(measure(&run, &message, &len), 0);
			spokei_outlet_init(&run.outlet, &run.faulty.env, 3 * len - lack);
			run.limits.frame_max = len;
			assert_int_equal(put_message(&run, &message), 0);
			assert_int_equal(put_message(&run, &message), 0);
			assert_int_equal(put_message(&run, &message), lack ? SPOKE_ELIMIT : 0);
			assert_int_equal(put_message(&run, &message), SPOKE_ELIMIT);
			/* A message that can never be sent has its own error, also when there is no
			 * room. */
			run.limits.frame_max = len - 1;
			assert_int_equal(put_message(&run, &message), SPOKE_ETOOLARGE);
			stop(&run);
		}
	}
}

TEST(outlet_returns_unsupported_of_wire)
{
	struct spokei_message message = make_probe(1);

	start(&run, "dubbo", 1000);
	message.codec = 0xff;
	assert_int_equal(put_message(&run, &message), SPOKE_EUNSUPPORTED);
	message = make_request(1, 0);
	message.method.len = 0;
	run.wire = spokei_catalog_wire("msgpack-rpc");
	assert_int_equal(put_message(&run, &message), SPOKE_EUNSUPPORTED);
	/* No frame precedes others on a wire whose frames took() does not find. */
	message = make_request(1, 0);
	assert_int_equal(spokei_outlet_put_control(&run.outlet, run.wire, &run.limits, &message),
			 SPOKE_EUNSUPPORTED);
	stop(&run);
}

TEST(waiting_control_frames_are_bounded)
{
	struct spokei_message message = make_probe(1);
	size_t count = 0;

	start(&run, "dubbo", 1u << 24);
	/* With this event a frame has 32 bytes, a fraction of 4 KiB. */
	message.event = spokei_span("\xaf"
				    "fifteen letters",
				    16);
	while (put_message(&run, &message) == 0)
		count++;
	assert_int_equal(count, CONTROL_MAX / 32);
	assert_int_equal(put_message(&run, &message), SPOKE_ELIMIT);
	message = make_request(1, 0);
	assert_int_equal(put_message(&run, &message), 0);
	/* Once the frames are taken, their memory is freed. */
	spokei_outlet_took(&run.outlet, run.wire, CONTROL_MAX);
	assert_null(run.outlet.control.bytes);
	assert_false(spokei_outlet_passed(&run.outlet, 0));
	spokei_outlet_took(&run.outlet, run.wire, 1);
	assert_true(spokei_outlet_passed(&run.outlet, 0));
	stop(&run);
}

/* Puts a message, and once more if there was no memory. Returns the number of failures. */
static unsigned put_again(const struct spokei_message *message, int expected)
{
	int error = put_message(&run, message);
	unsigned failed = error == SPOKE_ENOMEM;

	if (failed)
		error = put_message(&run, message);
	assert_int_equal(error, expected);
	return failed;
}

/* Fills an output buffer while the `nth` allocation fails. Returns the number of failed puts. */
static unsigned fill_with_want(const char *wire, uint64_t nth)
{
	struct spokei_message message;
	unsigned failed = 0;
	size_t len;

	start(&run, wire, 9000);
	spokei_faults_fail(&run.faulty, SPOKEI_FAULTS_MEMORY, nth, -12, false);
	for (unsigned i = 0; i < 20; i++) {
		message = make_request(2, 100);
		failed += put_again(&message, 0);
		message = make_probe(1);
		if (run.wire->probes)
			failed += put_again(&message, 0);
		if (i % 7 == 3)
			spokei_outlet_took(&run.outlet, run.wire, 50);
	}
	/* Frames made in a buffer of their own: one that just fits, and one that does not. */
	message = make_request(3, 2000);
	assert_int_equal(measure(&run, &message, &len), 0);
	message = make_request(3, 2000 + 9000 - spokei_buffer_len(&run.outlet.out) - len);
	failed += put_again(&message, 0);
	assert_int_equal(spokei_buffer_len(&run.outlet.out), 9000);
	message = make_request(4, 100);
	failed += put_again(&message, SPOKE_ELIMIT);
	assert_true(failed <= run.faulty.failed[SPOKEI_FAULTS_MEMORY]);
	stop(&run);
	return failed;
}

TEST(outlet_is_unchanged_after_enomem)
{
	for (size_t w = 0; w < 2; w++) {
		unsigned failed = 0;
		uint64_t nth = 0;

		do
			failed += fill_with_want(w ? "dubbo" : "msgpack-rpc", ++nth);
		while (run.faulty.failed[SPOKEI_FAULTS_MEMORY] > 0);
		/* A failed allocation does no harm if the queue need not grow at once. */
		assert_in_range(failed, nth - 3, nth - 1);
	}
}

TEST(emptied_outlet_is_reused)
{
	start(&run, "dubbo", 1u << 24);
	put_some(&run, false, 50000);
	take(&run, 20);
	assert_true(run.outlet.cut > 50000 - 20);
	/* The connection is lost: the bytes that were not taken were never written. */
	spokei_outlet_fini(&run.outlet);
	assert_int_equal(run.outlet.cut, 0);
	assert_true(spokei_outlet_passed(&run.outlet, 19));
	assert_false(spokei_outlet_passed(&run.outlet, 20));
	stop(&run);
}
