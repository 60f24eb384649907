/* SPDX-License-Identifier: Apache-2.0 */
/* Raw peers and the frames that they send. */
#define _GNU_SOURCE
#include "tests/integration/harness.h"

#include "tests/transport/wires.h"
#include "transport/codec/codec.h"
#include "transport/wire/dubbo/dubbo.h"
#include "transport/wire/dubbo/head.h"

#include <spoke/host.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CHUNK 65536
#define LIVES_ID UINT64_C(0x11fe000000000000)

static const struct spokei_wire_limits generous = {
	.frame_max = 64 << 20,
	.name_max = 1 << 20,
	.event_max = 1 << 20,
	.value = { .depth_max = SPOKE_VALUE_DEPTH_MAX,
		   .items_max = SPOKE_VALUE_ITEMS_MAX,
		   .object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX,
		   .bytes_max = 64 << 20 },
};

static const struct spoke_env *env_of(const struct raw *raw)
{
	return raw->stage->peer_env;
}

static struct raw *new_raw(struct stage *stage, int fd)
{
	struct raw *raw = calloc(1, sizeof(*raw));

	assert_non_null(raw);
	raw->stage = stage;
	raw->fd = fd;
	raw->wire = &spokei_wire_dubbo;
	spokei_buffer_init(&raw->in, spoke_host_env(), SIZE_MAX);
	spokei_buffer_init(&raw->scratch, spoke_host_env(), SPOKE_VALUE_BYTES_MAX);
	raw->next = stage->raws;
	stage->raws = raw;
	return raw;
}

/* --- connecting */

struct raw *raw_start(struct stage *stage)
{
	const struct spoke_env *env = stage->peer_env;
	struct spoke_address address;
	int fd = -1;
	int status;

	assert_int_equal(env->net->parse(env->ctx, stage->provider_at, &address), 0);
	status = env->net->connect(env->ctx, &address, &fd);
	assert_true(status == 0 || status == -EINPROGRESS);
	return new_raw(stage, fd);
}

struct raw *raw_start_from(struct stage *stage, const char *digits)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct spoke_address address;
	union {
		struct sockaddr any;
		unsigned char bytes[sizeof(address.bytes)];
	} to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, digits, &from.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(stage->peer_env->net->parse(stage->peer_env->ctx, stage->provider_at,
						     &address),
			 0);
	memcpy(to.bytes, address.bytes, sizeof(to.bytes));
	assert_int_equal(connect(fd, &to.any, address.len), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return new_raw(stage, fd);
}

struct raw *raw_connect(struct stage *stage)
{
	uint64_t accepted = stage_stat(stage, SPOKE_STAT_ACCEPTED);
	struct raw *raw = raw_start(stage);

	while (stage_stat(stage, SPOKE_STAT_ACCEPTED) == accepted)
		stage_turn(stage);
	while (env_of(raw)->net->finish(env_of(raw)->ctx, raw->fd) != 0)
		stage_turn(stage);
	return raw;
}

struct accepting {
	struct stage *stage;
	int fd;
};

static bool has_come(void *arg)
{
	struct accepting *accepting = arg;
	const struct spoke_env *env = accepting->stage->peer_env;
	struct spoke_address peer;

	return env->net->accept(env->ctx, accepting->stage->raw_listener, &accepting->fd, &peer) ==
	       0;
}

struct raw *raw_accept(struct stage *stage)
{
	struct accepting accepting = { stage, -1 };

	stage_until(stage, has_come, &accepting);
	return new_raw(stage, accepting.fd);
}

void raw_close(struct raw *raw)
{
	if (raw->fd >= 0)
		env_of(raw)->net->close(env_of(raw)->ctx, raw->fd);
	raw->fd = -1;
	raw->given = 0;
	spokei_buffer_fini(&raw->scratch);
	spokei_buffer_fini(&raw->in); /* a row may use thousands of peers */
}

void raw_reset(struct raw *raw)
{
	static const struct linger at_once = { .l_onoff = 1 };

	if (stage_is_virtual(raw->stage))
		spokei_vnet_reset(raw->stage->world.net, raw->fd);
	else /* a unix socket can only be closed */
		(void)setsockopt(raw->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	raw_close(raw);
}

void raw_shut(struct raw *raw)
{
	(void)env_of(raw)->net->shut(env_of(raw)->ctx, raw->fd); /* may be closed already */
}

/* --- writing */

bool raw_try_send(struct raw *raw, const void *bytes, size_t len)
{
	const struct spoke_env *env = env_of(raw);
	union {
		const void *given;
		void *taken;
	} cast = { .given = bytes };
	unsigned char *at = cast.taken;

	while (len > 0) {
		ssize_t put = env->net->write(env->ctx, raw->fd, &(struct iovec){ at, len }, 1);

		if (put == -EAGAIN) {
			stage_turn(raw->stage);
			continue;
		}
		if (put == -EPIPE || put == -ECONNRESET)
			return false;
		assert_true(put > 0);
		at += put;
		len -= (size_t)put;
	}
	return true;
}

void raw_send(struct raw *raw, const void *bytes, size_t len)
{
	assert_true(raw_try_send(raw, bytes, len));
}

void raw_send_buffer(struct raw *raw, struct spokei_buffer *buffer)
{
	raw_send(raw, spokei_buffer_data(buffer), spokei_buffer_len(buffer));
	spokei_buffer_fini(buffer);
}

/* --- reading */

static void take_given(struct raw *raw)
{
	spokei_buffer_consume(&raw->in, raw->given);
	raw->given = 0;
}

static void note_ended(struct raw *raw, bool reset)
{
	raw->ended = true;
	raw->reset = reset;
	raw->ended_ns = stage_now(raw->stage);
}

size_t raw_pull(struct raw *raw)
{
	const struct spoke_env *env = env_of(raw);

	take_given(raw);
	while (!raw->ended) {
		unsigned char *room = spokei_buffer_reserve(&raw->in, CHUNK);
		ssize_t got;

		assert_non_null(room);
		got = env->net->read(env->ctx, raw->fd, room, CHUNK);
		if (got == -EAGAIN || got == -EINTR)
			break;
		assert_true(got >= 0 || got == -ECONNRESET || got == -EPIPE);
		if (got <= 0)
			note_ended(raw, got < 0);
		else
			spokei_buffer_commit(&raw->in, (size_t)got);
	}
	return spokei_buffer_len(&raw->in);
}

struct need {
	struct raw *raw;
	size_t len;
};

static bool is_there(void *arg)
{
	struct need *need = arg;

	return raw_pull(need->raw) >= need->len || need->raw->ended;
}

void raw_need(struct raw *raw, size_t len)
{
	take_given(raw);
	if (spokei_buffer_len(&raw->in) >= len)
		return;
	stage_until(raw->stage, is_there, &(struct need){ raw, len });
	if (spokei_buffer_len(&raw->in) < len)
		fail_msg("the connection was closed instead of an answer");
}

void raw_frame(struct raw *raw, struct spokei_message *ret_message)
{
	struct spokei_cut cut = { 0 };
	size_t need = 1;
	int status = SPOKEI_NEXT_MORE;
	int result;

	while (status == SPOKEI_NEXT_MORE) {
		raw_need(raw, need);
		status = wire_cut(raw->wire, &generous, &cut,
				  spokei_span(spokei_buffer_data(&raw->in),
					      spokei_buffer_len(&raw->in)),
				  &need);
	}
	assert_int_equal(status, 0);
	raw->given = need;
	result = wire_read(raw->wire, &generous, NULL,
			   spokei_span(spokei_buffer_data(&raw->in), need), &raw->scratch,
			   ret_message);
	/* For other serializations only the header is read. */
	assert_true(result == 0 || result == SPOKE_EUNSUPPORTED);
}

static bool is_over(void *arg)
{
	struct raw *raw = arg;

	(void)raw_pull(raw);
	return raw->ended;
}

size_t raw_wait_end(struct raw *raw)
{
	stage_until(raw->stage, is_over, raw);
	return spokei_buffer_len(&raw->in);
}

void assert_closed_mutely(struct raw *raw)
{
	assert_int_equal(raw_wait_end(raw), 0);
}

void stage_assert_refused(struct raw *raw, enum spoke_stat stat, const char *file, int line)
{
	assert_closed_mutely(raw);
	stage_assert_closed(raw->stage, stat, 1, file, line);
}

void assert_reply(struct raw *raw, uint64_t id, unsigned status, struct spokei_message *ret_message)
{
	struct spokei_message message;

	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_REPLY);
	assert_int_equal(message.id, id);
	assert_int_equal(message.status, status);
	if (ret_message)
		*ret_message = message;
}

void assert_not_found(struct raw *raw, uint64_t id)
{
	assert_reply(raw, id, 60, NULL);
	assert_counter_up_by(raw->stage, SPOKE_STAT_REQUESTS_NO_SERVICE, 1);
	assert_nothing_closed(raw->stage);
}

void assert_raw_lives(struct raw *raw)
{
	uint64_t id = LIVES_ID + ++raw->stage->names;
	struct spokei_message message;
	struct spoke_span text;

	say_request(raw, id, "echo", "alive");
	assert_reply(raw, id, SPOKEI_DUBBO_OK, &message);
	assert_int_equal(message.error, 0);
	assert_int_equal(spoke_value_str(message.value, &text), 0);
	assert_true(spokei_span_is(text, "alive"));
}

void assert_consumer_lives(struct raw *raw)
{
	uint64_t id = LIVES_ID + ++raw->stage->names;
	struct spokei_message message;

	say_heartbeat(raw, id);
	raw_frame(raw, &message);
	assert_int_equal(message.kind, SPOKEI_PROBE_ANSWER);
	assert_int_equal(message.id, id);
}

/* --- frames */

void frames_init(struct spokei_buffer *frames)
{
	spokei_buffer_init(frames, spoke_host_env(), SIZE_MAX);
}

void frames_head(struct spokei_buffer *frames, unsigned flags, unsigned status, uint64_t id,
		 uint32_t body_len)
{
	struct spokei_dubbo_head head = { (uint8_t)flags, (uint8_t)status, id, body_len };
	unsigned char bytes[SPOKEI_DUBBO_HEAD_LEN];

	spokei_dubbo_head_write(head, bytes);
	assert_int_equal(spokei_buffer_append(frames, bytes, sizeof(bytes)), 0);
}

void frames_raw(struct spokei_buffer *frames, unsigned flags, unsigned status, uint64_t id,
		const void *body, size_t len)
{
	frames_head(frames, flags, status, id, (uint32_t)len);
	assert_int_equal(spokei_buffer_append(frames, body, len), 0);
}

void frames_request_with(struct spokei_buffer *frames, uint64_t id, const char *service,
			 const char *method, struct spoke_span args)
{
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = id,
		.two_way = true,
		.codec = SPOKEI_CODEC_MSGPACK,
		.service = spokei_span(service, strlen(service)),
		.method = spokei_span(method, strlen(method)),
		.types = spokei_span("Ljava/lang/Object;", 18),
		.args = args,
	};
	struct spoke_cursor cursor;

	assert_int_equal(spoke_values_check(args.data, args.len, &generous.value, &cursor,
					    &message.arg_count),
			 0);
	assert_int_equal(spokei_wire_dubbo.write(&generous, &message, frames), 0);
}

void frames_request(struct spokei_buffer *frames, uint64_t id, const char *method, const char *text)
{
	struct spoke_builder builder;
	struct spoke_span args;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish(&builder, &args), 0);
	frames_request_with(frames, id, STAGE_SERVICE, method, args);
	spoke_builder_fini(&builder);
}

void frames_reply(struct spokei_buffer *frames, uint64_t id, unsigned status, const char *text)
{
	struct spoke_builder builder;
	struct spoke_span body;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	if (status == SPOKEI_DUBBO_OK)
		spoke_pack_u64(&builder, 1);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish(&builder, &body), 0);
	frames_raw(frames, SPOKEI_CODEC_MSGPACK, status, id, body.data, body.len);
	spoke_builder_fini(&builder);
}

void frames_heartbeat(struct spokei_buffer *frames, uint64_t id)
{
	frames_raw(frames,
		   SPOKEI_DUBBO_REQUEST | SPOKEI_DUBBO_TWO_WAY | SPOKEI_DUBBO_EVENT |
			   SPOKEI_CODEC_MSGPACK,
		   0, id, "\xc0", 1);
}

void say_head(struct raw *raw, unsigned flags, unsigned status, uint64_t id, uint32_t body_len)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_head(&frames, flags, status, id, body_len);
	raw_send_buffer(raw, &frames);
}

void say_raw(struct raw *raw, unsigned flags, unsigned status, uint64_t id, const void *body,
	     size_t len)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_raw(&frames, flags, status, id, body, len);
	raw_send_buffer(raw, &frames);
}

void say_request(struct raw *raw, uint64_t id, const char *method, const char *text)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_request(&frames, id, method, text);
	raw_send_buffer(raw, &frames);
}

void say_request_with(struct raw *raw, uint64_t id, const char *service, const char *method,
		      struct spoke_span args)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_request_with(&frames, id, service, method, args);
	raw_send_buffer(raw, &frames);
}

void say_reply(struct raw *raw, uint64_t id, unsigned status, const char *text)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_reply(&frames, id, status, text);
	raw_send_buffer(raw, &frames);
}

void say_heartbeat(struct raw *raw, uint64_t id)
{
	struct spokei_buffer frames;

	frames_init(&frames);
	frames_heartbeat(&frames, id);
	raw_send_buffer(raw, &frames);
}

/* --- calls of a consumer, answered by hand */

uint64_t begin_call(struct stage *stage, struct spoke_method *method, struct raw *raw,
		    struct ending *ending)
{
	struct spokei_message request;

	stage_call(stage, method, "x", ending, NULL);
	raw_frame(raw, &request);
	assert_int_equal(request.kind, SPOKEI_REQUEST);
	return request.id;
}

void assert_answered(struct stage *stage, struct ending *ending, const char *value)
{
	assert_ends(stage, ending, SPOKE_OK);
	assert_string_equal(ending->value, value);
}
