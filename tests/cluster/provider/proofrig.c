/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests about tokens: see proofrig.h. */
#include "tests/cluster/provider/proofrig.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

struct proofrig proofrig;

static void handle(struct spoke_request *request, void *arg)
{
	(void)arg;
	proofrig.served++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	if (strcmp(line->module, "proof") != 0)
		return;
	proofrig.lines++;
	(void)snprintf(proofrig.line, sizeof(proofrig.line), "%s", line->text);
}

int proofrig_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &proofrig.process.env };

	(void)state;
	memset(&proofrig, 0, sizeof(proofrig));
	scene_open(&proofrig.world, 5);
	spokei_world_process_init(&proofrig.process, &proofrig.world);
	proofrig.process.env.log = note_line;
	peer_init(&proofrig.peer, &proofrig.world);
	for (unsigned i = 0; i < CONNS; i++)
		proofrig.conns[i].fd = -1;
	return spoke_engine_new(&with, &proofrig.engine);
}

RIG_STEP(proofrig_tear_down)
{
	spoke_engine_free(proofrig.engine);
	spoke_config_free(proofrig.config);
	scene_leave(&proofrig.process, NULL, NULL);
	for (unsigned i = 0; i < CONNS; i++)
		peer_close(&proofrig.conns[i]);
	peer_fini(&proofrig.peer);
	spokei_world_fini(&proofrig.world);
}

void proofrig_pass(void)
{
	spokei_world_run(&proofrig.world, proofrig.world.now_ns + 20 * MS);
}

uint64_t proofrig_stat(enum spoke_stat which)
{
	return spoke_stat_get(proofrig.engine, which);
}

/* --- the provider */

static void add(const char *name)
{
	const struct spoke_service_options service = { .name = name };
	const struct spoke_handler handler = { .method = "get", .handle = handle };

	assert_int_equal(spoke_provider_add(proofrig.provider, &service, &handler, 1), 0);
}

void proofrig_start(const struct spoke_provider_options *options)
{
	assert_int_equal(spoke_provider_new(proofrig.engine, options, &proofrig.provider), 0);
	add("demo.A");
	add("demo.B");
	assert_int_equal(spoke_provider_listen(proofrig.provider, "dubbo://" AT), 0);
}

void proofrig_provide(const char *token)
{
	const struct spoke_provider_options options = { .token = token };

	proofrig_start(&options);
}

void proofrig_configure(const char *text)
{
	struct spoke_provider_options options = { 0 };

	spokei_vfiles_put(proofrig.world.files, FILE_NAME, text);
	assert_int_equal(spoke_config_load(&proofrig.process.env, FILE_NAME, NULL, NULL,
					   &proofrig.config),
			 0);
	options.config = proofrig.config;
	proofrig_start(&options);
}

int proofrig_reconfigure(const char *text)
{
	if (text)
		spokei_vfiles_put(proofrig.world.files, FILE_NAME, text);
	return spoke_config_reload(proofrig.config, NULL, NULL);
}

/* --- callers */

void proofrig_open(unsigned which, const struct spokei_wire *wire)
{
	peer_close(&proofrig.conns[which]);
	peer_open(&proofrig.peer, &proofrig.conns[which], peer_connect(&proofrig.peer, AT), wire);
	assert_true(proofrig.conns[which].fd >= 0);
	proofrig_pass();
}

void proofrig_take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	struct seen *seen = arg;

	(void)conn;
	seen->probes += message->kind == SPOKEI_PROBE_ANSWER;
	if (message->kind != SPOKEI_REPLY)
		return;
	seen->count++;
	seen->error = message->error;
	seen->code = message->error_code;
	(void)snprintf(seen->text, sizeof(seen->text), "%.*s", (int)message->error_text.len,
		       (const char *)message->error_text.data);
}

void proofrig_flush(unsigned which)
{
	for (unsigned i = 0; i < 100 && peer_write(&proofrig.conns[which], SIZE_MAX) > 0; i++)
		proofrig_pass();
	proofrig_pass();
}

void proofrig_put(unsigned which, const char *service, const char *method, const char *token,
		  size_t filler)
{
	static const unsigned char filling[131072];
	static unsigned char args[sizeof(filling) + 16];
	unsigned char pairs[512];
	struct spoke_builder builder;
	struct spoke_span bytes = { NULL, 0 };
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = ++proofrig.id,
		.two_way = true,
		.codec = SPOKEI_CODEC_MSGPACK,
		.service = spokei_span(service, strlen(service)),
		.method = spokei_span(method, strlen(method)),
	};

	if (filler > 0) {
		spoke_builder_init_fixed(&builder, args, sizeof(args), NULL);
		spoke_pack_bin(&builder, filling, filler);
		assert_int_equal(spoke_builder_finish(&builder, &message.args), 0);
		message.arg_count = 1;
	}
	spoke_builder_init_fixed(&builder, pairs, sizeof(pairs), NULL);
	if (token && proofrig.conns[which].wire->attachments) {
		spoke_pack_map(&builder, 1);
		spoke_pack_text(&builder, "token");
		spoke_pack_text(&builder, token);
		assert_int_equal(spoke_builder_finish_value(&builder, &message.attachments), 0);
	} else if (token) {
		spoke_pack_text(&builder, token);
		assert_int_equal(spoke_builder_finish(&builder, &bytes), 0);
		message.args = bytes;
		message.arg_count = 1;
	}
	peer_put(&proofrig.conns[which], &message);
}

int proofrig_ask(unsigned which)
{
	proofrig.seen[which] = (struct seen){ .error = -1 };
	proofrig_flush(which);
	peer_read(&proofrig.conns[which], proofrig_take, &proofrig.seen[which]);
	assert_false(proofrig.conns[which].broken);
	return proofrig.seen[which].error;
}

int proofrig_call(unsigned which, const char *service, const char *token)
{
	proofrig_put(which, service, "get", token, 0);
	return proofrig_ask(which);
}

void proofrig_forbidden(unsigned which, int error, const char *service)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "no or bad credentials for %s", service);
	assert_int_equal(error, SPOKE_EFORBIDDEN);
	assert_int_equal(proofrig.seen[which].code, SPOKE_FORBIDDEN_UNPROVEN);
	assert_string_equal(proofrig.seen[which].text, text);
}

int proofrig_show(unsigned which, const char *token)
{
	proofrig_put(which, "demo.A", "$token", token, 0);
	return proofrig_ask(which);
}
