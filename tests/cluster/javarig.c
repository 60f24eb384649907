/* SPDX-License-Identifier: Apache-2.0 */
/* A program of spoke and the bytes of a Java program: see javarig.h. */
#include "tests/cluster/javarig.h"
#include "tests/support/scene.h"
#include "tests/transport/wires.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:20880"
#define BYTES_MAX ((size_t)1 << 22)

struct javarig javarig;

static struct javarig *const rig = &javarig;

/* --- set-up */

RIG_STEP(javarig_set_up)
{
	memset(rig, 0, sizeof(*rig));
	rig->listener = -1;
	rig->conn.fd = -1;
	scene_open(&rig->world, 5);
	rig->engine = scene_engine(&rig->world, &rig->process, NULL, NULL);
	peer_init(&rig->peer, &rig->world);
	spokei_buffer_init(&rig->in, &rig->peer.process.env, BYTES_MAX);
	spokei_buffer_init(&rig->scratch, &rig->peer.process.env, BYTES_MAX);
}

RIG_STEP(javarig_tear_down)
{
	spoke_engine_free(rig->engine);
	scene_leave(&rig->process, NULL, NULL);
	peer_close(&rig->conn);
	spokei_buffer_fini(&rig->in);
	spokei_buffer_fini(&rig->scratch);
	peer_fini(&rig->peer);
	spokei_world_fini(&rig->world);
}

static void pass(void)
{
	spokei_world_run(&rig->world, rig->world.now_ns + 20 * MS);
}

static void provide(const struct spoke_provider_options *options,
		    const struct spoke_handler *handlers, size_t count)
{
	static const struct spoke_service_options service = { .name = "it.Api" };

	assert_int_equal(spoke_provider_new(rig->engine, options, &rig->provider), 0);
	assert_int_equal(spoke_provider_add(rig->provider, &service, handlers, count), 0);
	assert_int_equal(spoke_provider_listen(rig->provider, "dubbo://" AT), 0);
	peer_open(&rig->peer, &rig->conn, peer_connect(&rig->peer, AT), &spokei_wire_dubbo);
	assert_true(rig->conn.fd >= 0);
	pass();
}

void javarig_provide(const struct spoke_handler *handlers, size_t count)
{
	provide(NULL, handlers, count);
}

static struct spoke_filter_verdict let_pass(void *arg, const struct spoke_request *request)
{
	(void)arg;
	(void)request;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

void javarig_provide_filtered(const struct spoke_handler *handlers, size_t count)
{
	static const struct spoke_filter filter = { .name = "pass", .before_request = let_pass };
	static const struct spoke_filter *const filters[] = { &filter };
	const struct spoke_provider_options options = { .filters = filters, .filter_count = 1 };

	provide(&options, handlers, count);
}

void javarig_consume(const char *query)
{
	struct spoke_consumer_options with = { 0 };
	char url[256];

	rig->listener = peer_listen(&rig->peer, AT);
	assert_true(rig->listener >= 0);
	(void)snprintf(url, sizeof(url), "dubbo://" AT "/it.Api?timeout=1000%s", query);
	with.url = url;
	assert_int_equal(spoke_consumer_new(rig->engine, &with, &rig->consumer), 0);
	pass();
	peer_open(&rig->peer, &rig->conn, peer_accept(&rig->peer, rig->listener),
		  &spokei_wire_dubbo);
	assert_true(rig->conn.fd >= 0);
	pass();
}

/* --- calls */

static void print(struct spoke_value value, char text[JAVA_TEXT])
{
	text[0] = '\0';
	if (value.len > 0)
		(void)spoke_value_print(value, text, JAVA_TEXT);
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig->ends++;
	rig->error = result->error;
	rig->code = result->error_code;
	print(result->value, rig->value);
	print(result->attachments, rig->attached);
	(void)spoke_result_print(result, rig->printed, sizeof(rig->printed));
	(void)spoke_result_print_exception(result, 3, rig->exception, sizeof(rig->exception));
}

void javarig_call(const char *name, const struct spoke_method_options *options,
		  struct spoke_span args, const struct spoke_call_options *with)
{
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(rig->consumer, name, options, &method), 0);
	assert_int_equal(spoke_call(method, args, with, done, NULL, NULL), 0);
	pass();
}

/* --- bytes */

void javarig_send(struct spoke_span bytes)
{
	peer_put_bytes(&rig->conn, bytes);
	for (unsigned i = 0; i < 100 && peer_write(&rig->conn, SIZE_MAX) > 0; i++)
		pass();
	pass();
}

void javarig_frame(unsigned flags, unsigned status, uint64_t id, struct spoke_span body)
{
	unsigned char head[JAVA_HEAD] = { 0xda, 0xbb, (unsigned char)flags, (unsigned char)status };

	for (unsigned i = 0; i < 8; i++)
		head[4 + i] = (unsigned char)(id >> (56 - 8 * i));
	for (unsigned i = 0; i < 4; i++)
		head[12 + i] = (unsigned char)(body.len >> (24 - 8 * i));
	peer_put_bytes(&rig->conn, spokei_span(head, sizeof(head)));
	javarig_send(body);
}

static void receive(void)
{
	const struct spoke_env *env = &rig->peer.process.env;
	unsigned char bytes[4096];
	ssize_t got;

	while ((got = env->net->read(env->ctx, rig->conn.fd, bytes, sizeof(bytes))) > 0)
		assert_int_equal(spokei_buffer_append(&rig->in, bytes, (size_t)got), 0);
	assert_int_equal(got, -EAGAIN);
}

struct spoke_span javarig_next(struct spokei_message *ret_message)
{
	const struct spokei_wire_limits *limits = &rig->peer.limits;
	struct spokei_cut cut = { 0 };
	struct spoke_span frame;

	pass();
	receive();
	for (;;) {
		spokei_buffer_consume(&rig->in, rig->taken);
		rig->taken = 0;
		frame = spokei_span(spokei_buffer_data(&rig->in), spokei_buffer_len(&rig->in));
		if (frame.len == 0 ||
		    wire_cut(&spokei_wire_dubbo, limits, &cut, frame, &frame.len) != 0)
			return spokei_span(NULL, 0);
		rig->taken = frame.len;
		assert_int_equal(wire_read(&spokei_wire_dubbo, limits, NULL, frame, &rig->scratch,
					   ret_message),
				 0);
		if (ret_message->kind == SPOKEI_REQUEST)
			rig->asked = ret_message->id;
		if (ret_message->kind == SPOKEI_REQUEST || ret_message->kind == SPOKEI_REPLY)
			return frame;
	}
}

static unsigned digit(int letter)
{
	return (unsigned)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

struct spoke_span javarig_recorded(unsigned number)
{
	static unsigned char bytes[1 << 16];
	FILE *file = fopen(SPOKE_GOLDEN "/dubbo-2.7.23-hessian2.frames", "r");
	size_t len = 0;
	int letter;

	assert_non_null(file);
	while (number > 0 && (letter = fgetc(file)) != EOF)
		number -= letter == '\n';
	assert_int_equal(fseek(file, 3, SEEK_CUR), 0); /* the direction */
	for (; len < sizeof(bytes) && (letter = fgetc(file)) != EOF && letter != '\n'; len++)
		bytes[len] = (unsigned char)(digit(letter) << 4 | digit(fgetc(file)));
	assert_true(len > JAVA_HEAD);
	(void)fclose(file);
	for (unsigned i = 0; i < 8 && !(bytes[2] & 0x80); i++)
		bytes[4 + i] = (unsigned char)(rig->asked >> (56 - 8 * i));
	return spokei_span(bytes, len);
}

void javarig_expect_body(struct spoke_span body)
{
	struct spokei_message message;
	struct spoke_span frame = javarig_next(&message);

	assert_non_null(frame.data);
	assert_int_equal(frame.len, JAVA_HEAD + body.len);
	assert_memory_equal((const char *)frame.data + JAVA_HEAD, body.data, body.len);
}

void javarig_expect_text(unsigned status, const char *text)
{
	struct spokei_message message;

	assert_non_null(javarig_next(&message).data);
	assert_int_equal(message.status, status);
	assert_int_equal(message.error_text.len, strlen(text));
	assert_memory_equal(message.error_text.data, text, strlen(text));
}
