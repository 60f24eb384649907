/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a provider asks for: who is let in, and what the others may do. The callers are peers
 * that write frames as they like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/provider/parts.h"
#include "core/virtual/files.h"
#include "tests/cluster/peer.h"
#include "transport/codec/codec.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/dubbo/dubbo.h"
#include "transport/wire/http/http.h"
#include "transport/wire/mprpc.h"

#include <spoke/config.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define AT "127.0.0.1:20880"
#define FILE_NAME "a.conf"
#define CONNS 4
#define SECRET "correct-horse-1"
#define OTHER "battery-staple-2"

static struct rig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_config *config;
	struct peer peer;
	struct peer_conn conns[CONNS];
	uint64_t id;
	unsigned served;
	unsigned lines; /* of the log, from the room "proof" */
	char line[512]; /* the last of them */
	/* The replies to a connection since it last sent something. */
	struct seen {
		unsigned count;
		unsigned probes; /* answers to heartbeats */
		int error;       /* of the last one */
		int32_t code;
		char text[256];
	} seen[CONNS];
} rig;

static void handle(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.served++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	if (strcmp(line->module, "proof") != 0)
		return;
	rig.lines++;
	(void)snprintf(rig.line, sizeof(rig.line), "%s", line->text);
}

static int set_up(void **state)
{
	struct spoke_engine_options with = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	if (!spokei_world_init(&rig.world, 5))
		return -1;
	spokei_world_process_init(&rig.process, &rig.world);
	rig.process.env.log = note_line;
	peer_init(&rig.peer, &rig.world);
	for (unsigned i = 0; i < CONNS; i++)
		rig.conns[i].fd = -1;
	return spoke_engine_new(&with, &rig.engine);
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(rig.engine);
	spoke_config_free(rig.config);
	assert_int_equal(rig.process.blocks, 0);
	assert_int_equal(rig.process.user.fds, 0);
	for (unsigned i = 0; i < CONNS; i++)
		peer_close(&rig.conns[i]);
	peer_fini(&rig.peer);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

static void pass(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + 20 * MS);
}

static uint64_t stat(enum spoke_stat which)
{
	return spoke_stat_get(rig.engine, which);
}

/* --- the provider */

static void add(const char *name)
{
	const struct spoke_service_options service = { .name = name };
	const struct spoke_handler handler = { .method = "get", .handle = handle };

	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
}

static void start(const struct spoke_provider_options *options)
{
	assert_int_equal(spoke_provider_new(rig.engine, options, &rig.provider), 0);
	add("demo.A");
	add("demo.B");
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://" AT), 0);
}

static void provide(const char *token)
{
	const struct spoke_provider_options options = { .token = token };

	start(&options);
}

static void configure(const char *text)
{
	struct spoke_provider_options options = { 0 };

	spokei_vfiles_put(rig.world.files, FILE_NAME, text);
	assert_int_equal(spoke_config_load(&rig.process.env, FILE_NAME, NULL, NULL, &rig.config),
			 0);
	options.config = rig.config;
	start(&options);
}

static int reconfigure(const char *text)
{
	if (text)
		spokei_vfiles_put(rig.world.files, FILE_NAME, text);
	return spoke_config_reload(rig.config, NULL, NULL);
}

/* --- callers */

static void open_on(unsigned which, const struct spokei_wire *wire)
{
	peer_close(&rig.conns[which]);
	peer_open(&rig.peer, &rig.conns[which], peer_connect(&rig.peer, AT), wire);
	assert_true(rig.conns[which].fd >= 0);
	pass();
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
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

static void flush(unsigned which)
{
	for (unsigned i = 0; i < 100 && peer_write(&rig.conns[which], SIZE_MAX) > 0; i++)
		pass();
	pass();
}

/* Queues a request. `token` NULL: none. `filler`: bytes of an argument. */
static void put(unsigned which, const char *service, const char *method, const char *token,
		size_t filler)
{
	static unsigned char args[131072];
	unsigned char pairs[512];
	struct spoke_builder builder;
	struct spoke_span bytes = { NULL, 0 };
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = ++rig.id,
		.two_way = true,
		.codec = SPOKEI_CODEC_MSGPACK,
		.service = spokei_span(service, strlen(service)),
		.method = spokei_span(method, strlen(method)),
	};

	if (filler > 0) {
		spoke_builder_init_fixed(&builder, args, sizeof(args), NULL);
		spoke_pack_bin(&builder, args, filler);
		assert_int_equal(spoke_builder_finish(&builder, &message.args), 0);
		message.arg_count = 1;
	}
	spoke_builder_init_fixed(&builder, pairs, sizeof(pairs), NULL);
	if (token && rig.conns[which].wire->attachments) {
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
	peer_put(&rig.conns[which], &message);
}

/* Sends what is queued, and reads the replies. Returns the error of the last one; -1: none came. */
static int ask(unsigned which)
{
	rig.seen[which] = (struct seen){ .error = -1 };
	flush(which);
	peer_read(&rig.conns[which], take, &rig.seen[which]);
	assert_false(rig.conns[which].broken);
	return rig.seen[which].error;
}

static int call(unsigned which, const char *service, const char *token)
{
	put(which, service, "get", token, 0);
	return ask(which);
}

static void assert_forbidden(unsigned which, int error, const char *service)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "no or bad credentials for %s", service);
	assert_int_equal(error, SPOKE_EFORBIDDEN);
	assert_int_equal(rig.seen[which].code, SPOKE_FORBIDDEN_UNPROVEN);
	assert_string_equal(rig.seen[which].text, text);
}

/* --- tokens */

static void caller_without_the_token_is_refused_with_code_13(void **state)
{
	static const char *const wrong[] = { NULL,
					     "",
					     "correct-horse-2",
					     "correct-horse-",
					     "correct-horse-11",
					     "Correct-horse-1",
					     OTHER };

	(void)state;
	provide(SECRET);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		open_on(0, &spokei_wire_dubbo);
		assert_forbidden(0, call(0, "demo.A", wrong[i]), "demo.A");
	}
	assert_int_equal(rig.served, 0);
	assert_int_equal(stat(SPOKE_STAT_REFUSED_CREDENTIALS), sizeof(wrong) / sizeof(wrong[0]));
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(rig.served, 1);
}

static void each_request_needs_the_token(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_forbidden(0, call(0, "demo.A", NULL), "demo.A");
	assert_forbidden(0, call(0, "demo.B", "correct-horse-0"), "demo.B");
	assert_int_equal(call(0, "demo.B", SECRET), 0);
	assert_int_equal(rig.served, 2);
}

static void both_tokens_are_good_while_they_are_changed(void **state)
{
	(void)state;
	configure("[provider]\ntoken = " SECRET "\n");
	open_on(0, &spokei_wire_dubbo);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(call(0, "demo.A", OTHER), SPOKE_EFORBIDDEN);
	assert_int_equal(reconfigure("[provider]\ntoken = " OTHER ", " SECRET "\n"), 0);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(call(0, "demo.A", OTHER), 0);
	assert_int_equal(reconfigure("[provider]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(call(0, "demo.A", OTHER), 0);
	assert_int_equal(call(0, "demo.A", SECRET), SPOKE_EFORBIDDEN);
}

static void token_of_one_service_does_not_open_another(void **state)
{
	(void)state;
	configure("[provider]\ntoken = " SECRET "\n[service.demo.B]\ntoken = " OTHER "\n");
	open_on(0, &spokei_wire_dubbo);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(call(0, "demo.B", OTHER), 0);
	assert_forbidden(0, call(0, "demo.A", OTHER), "demo.A");
	assert_forbidden(0, call(0, "demo.B", SECRET), "demo.B");
	assert_int_equal(rig.served, 2);
}

static void service_can_be_open_or_the_only_one_that_is_not(void **state)
{
	(void)state;
	configure("[provider]\ntoken = " SECRET "\n[service.demo.B]\ntoken = false\n");
	open_on(0, &spokei_wire_dubbo);
	assert_int_equal(call(0, "demo.B", NULL), 0);
	assert_int_equal(call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	assert_int_equal(reconfigure("[service.demo.B]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(call(0, "demo.A", NULL), 0);
	assert_int_equal(call(0, "demo.B", NULL), SPOKE_EFORBIDDEN);
	assert_int_equal(call(0, "demo.B", OTHER), 0);
}

static void tokens_come_from_a_file_that_only_its_owner_reads(void **state)
{
	const struct spoke_provider_options options = { .token_file = "tokens" };
	struct spoke_provider *refused;

	(void)state;
	assert_int_equal(spoke_provider_new(rig.engine, &options, &refused), SPOKE_ESYSTEM);
	spokei_vfiles_put(rig.world.files, "tokens", "# of March\n" OTHER "\n" SECRET "\n");
	spokei_vfiles_expose(rig.world.files, "tokens", true);
	assert_int_equal(spoke_provider_new(rig.engine, &options, &refused), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(rig.engine), "chmod 600"));
	assert_null(strstr(spoke_engine_why(rig.engine), "horse"));
	spokei_vfiles_expose(rig.world.files, "tokens", false);
	start(&options);
	open_on(0, &spokei_wire_dubbo);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(call(0, "demo.A", OTHER), 0);
	assert_int_equal(call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
}

static void reload_with_a_bad_file_changes_no_token(void **state)
{
	static const char *const bad[] = { "", "short\n", OTHER "," SECRET "\n" };

	(void)state;
	spokei_vfiles_put(rig.world.files, "tokens", SECRET "\n");
	configure("[provider]\ntoken.file = tokens\n[service.demo.B]\ntoken = " SECRET "\n");
	open_on(0, &spokei_wire_dubbo);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		spokei_vfiles_put(rig.world.files, "tokens", bad[i]);
		assert_int_equal(reconfigure("[provider]\ntoken.file = tokens\n[service.demo.B]\n"
					     "token = " OTHER "\n"),
				 0);
		assert_int_equal(call(0, "demo.A", SECRET), 0);
		assert_int_equal(call(0, "demo.B", SECRET), 0);
	}
	spokei_vfiles_put(rig.world.files, "tokens", OTHER "\n");
	assert_int_equal(reconfigure(NULL), 0);
	assert_int_equal(call(0, "demo.A", OTHER), 0);
	assert_int_equal(call(0, "demo.B", OTHER), 0);
	assert_int_equal(call(0, "demo.A", SECRET), SPOKE_EFORBIDDEN);
}

static void echo_and_heartbeats_need_no_token(void **state)
{
	struct spokei_message probe = {
		.kind = SPOKEI_PROBE,
		.id = 77,
		.two_way = true,
		.codec = SPOKEI_CODEC_MSGPACK,
	};

	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	put(0, "demo.A", "$echo", NULL, 10);
	assert_int_equal(ask(0), 0);
	for (unsigned i = 0; i < 200; i++) {
		peer_put(&rig.conns[0], &probe);
		(void)ask(0);
		assert_int_equal(rig.seen[0].probes, 1);
	}
	assert_false(rig.conns[0].ended);
	put(0, "demo.A", "$methods", NULL, 0);
	assert_int_equal(ask(0), SPOKE_EFORBIDDEN);
}

static void what_is_served_is_told_to_the_proven_only(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	assert_forbidden(0, call(0, "demo.None", NULL), "demo.None");
	put(0, "demo.A", "none", "correct-horse-3", 0);
	assert_forbidden(0, ask(0), "demo.A");
	put(0, "demo.A", "none", SECRET, 0);
	assert_int_equal(ask(0), SPOKE_ENOSERVICE);
	assert_int_equal(call(0, "demo.None", SECRET), SPOKE_ENOSERVICE);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(call(0, "demo.None", NULL), SPOKE_ENOSERVICE);
}

/* --- MessagePack-RPC */

static int show(unsigned which, const char *token)
{
	put(which, "demo.A", "$token", token, 0);
	return ask(which);
}

static void connection_of_messagepack_rpc_shows_its_token_once(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_mprpc);
	assert_int_equal(call(0, "demo.A", NULL), SPOKE_EREMOTE);
	assert_string_equal(rig.seen[0].text, "no or bad credentials for demo.A");
	assert_int_equal(show(0, "correct-horse-"), SPOKE_EREMOTE);
	assert_string_equal(rig.seen[0].text, "no or bad credentials for demo.A");
	assert_int_equal(stat(SPOKE_STAT_REFUSED_CREDENTIALS), 2);
	assert_int_equal(show(0, SECRET), 0);
	assert_int_equal(call(0, "demo.A", NULL), 0);
	assert_int_equal(call(0, "demo.B", NULL), 0);
	assert_int_equal(rig.served, 2);
}

static void shown_token_counts_where_it_is_good(void **state)
{
	(void)state;
	configure("[provider]\ntoken = " SECRET "\n[service.demo.B]\ntoken = " OTHER "\n");
	open_on(0, &spokei_wire_mprpc);
	assert_int_equal(show(0, OTHER), 0);
	assert_int_equal(call(0, "demo.B", NULL), 0);
	assert_int_equal(call(0, "demo.A", NULL), SPOKE_EREMOTE);
	assert_int_equal(show(0, SECRET), 0);
	assert_int_equal(call(0, "demo.A", NULL), 0);
	assert_int_equal(reconfigure("[provider]\ntoken = " OTHER "\n"), 0);
	assert_int_equal(call(0, "demo.A", NULL), SPOKE_EREMOTE);
}

static void token_is_taken_by_providers_that_need_none(void **state)
{
	(void)state;
	provide(NULL);
	open_on(0, &spokei_wire_mprpc);
	assert_int_equal(show(0, SECRET), 0);
	assert_int_equal(call(0, "demo.A", NULL), 0);
}

static void token_that_cannot_be_noted_is_refused(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_mprpc);
	put(0, "demo.A", "$token", NULL, 300);
	assert_int_equal(ask(0), SPOKE_EREMOTE);
	put(0, "demo.A", "$token", NULL, 0);
	assert_int_equal(ask(0), SPOKE_EREMOTE);
}

/* --- HTTP */

/* Sends a request with these header lines. Returns the status. */
static int post(const char *path, const char *lines)
{
	const struct spoke_env *env = &rig.peer.process.env;
	static char text[4096];
	ssize_t len = 0;
	int status = 0;

	(void)snprintf(
		text, sizeof(text),
		"POST /demo.A/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: 2\r\n\r\n[]",
		path, lines);
	peer_put_bytes(&rig.conns[0], spokei_span(text, strlen(text)));
	flush(0);
	len = env->net->read(env->ctx, rig.conns[0].fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	(void)sscanf(text, "HTTP/1.1 %d", &status);
	assert_int_equal(strstr(text, "WWW-Authenticate: Bearer\r\n") != NULL, status == 401);
	assert_null(strstr(text, SECRET));
	return status;
}

static void http_client_bears_its_token_in_a_header(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_http);
	assert_int_equal(post("get", ""), 401);
	assert_int_equal(post("get", "Authorization: Bearer correct-horse-2\r\n"), 401);
	assert_int_equal(post("get", "Authorization: Bearer " SECRET "\r\n"), 200);
	assert_int_equal(post("get", "Spoke-Attachment-token: " SECRET "\r\n"), 200);
	assert_int_equal(post("none", "Authorization: Bearer " SECRET "\r\n"), 404);
	assert_int_equal(post("get", ""), 401);
	assert_int_equal(rig.served, 2);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_AUTH), 1);
}

/* --- bounds */

static void third_refusal_closes_the_connection(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	open_on(1, &spokei_wire_dubbo);
	assert_int_equal(call(1, "demo.A", SECRET), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
		assert_false(rig.conns[0].ended);
	}
	assert_int_equal(call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	assert_true(rig.conns[0].ended);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(rig.lines, 1);
	assert_non_null(strstr(rig.line, "no or bad credentials for demo.A"));
	assert_int_equal(call(1, "demo.A", SECRET), 0);
}

static void limit_of_refusals_is_a_setting(void **state)
{
	(void)state;
	configure("[provider]\ntoken = " SECRET "\nauth.failures.max = 1\n");
	open_on(0, &spokei_wire_dubbo);
	assert_int_equal(call(0, "demo.None", NULL), SPOKE_EFORBIDDEN);
	assert_true(rig.conns[0].ended);
}

static void flood_of_bad_requests_gets_three_answers(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		put(0, "demo.A", "get", "correct-horse-9", 0);
	(void)ask(0);
	assert_true(rig.seen[0].count <= 3);
	assert_true(rig.conns[0].ended);
	assert_int_equal(stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(rig.served, 0);
}

static void log_has_ten_lines_a_second(void **state)
{
	(void)state;
	provide(SECRET);
	for (unsigned i = 0; i < 30; i++) {
		open_on(0, &spokei_wire_dubbo);
		assert_int_equal(call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
		assert_int_equal(call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	}
	assert_int_equal(stat(SPOKE_STAT_REFUSED_CREDENTIALS), 60);
	assert_true(rig.lines >= 10 && rig.lines < 30);
	assert_null(strstr(rig.line, SECRET));
}

static void unproven_peer_sends_short_frames_only(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	put(0, "demo.A", "$echo", NULL, 60000);
	assert_int_equal(ask(0), 0);
	put(0, "demo.A", "get", SECRET, 65536);
	(void)ask(0);
	assert_true(rig.conns[0].ended);
	assert_int_equal(rig.seen[0].count, 0);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_LARGE), 1);
	open_on(0, &spokei_wire_dubbo);
	put(0, "demo.A", "get", SECRET, 60000);
	assert_int_equal(ask(0), 0);
	put(0, "demo.A", "get", SECRET, 120000);
	assert_int_equal(ask(0), 0);
	assert_int_equal(rig.served, 2);
}

static void unproven_peer_of_each_wire_has_the_bound(void **state)
{
	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_mprpc);
	put(0, "demo.A", "get", NULL, 65536);
	(void)ask(0);
	assert_true(rig.conns[0].ended);
	open_on(0, &spokei_wire_mprpc);
	assert_int_equal(show(0, SECRET), 0);
	put(0, "demo.A", "get", NULL, 120000);
	assert_int_equal(ask(0), 0);
}

static void nothing_is_bounded_where_no_proof_is_asked(void **state)
{
	(void)state;
	configure("[service.demo.B]\ntoken = " SECRET "\n");
	open_on(0, &spokei_wire_dubbo);
	put(0, "demo.A", "get", NULL, 120000);
	assert_int_equal(ask(0), 0);
}

/* The network takes 4 KiB in each direction. */
static void unproven_peer_that_does_not_read_is_not_read(void **state)
{
	const struct spokei_vnet_link narrow = { .capacity = 4096 };
	struct spoke_list *node;
	const struct spokei_conn *conn;

	(void)state;
	provide(SECRET);
	spokei_vnet_set_all(rig.world.net, &narrow);
	open_on(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 100; i++)
		put(0, "demo.A", "$echo", NULL, 500);
	flush(0);
	node = rig.provider->link->conns.next;
	conn = spoke_container_of(node, struct spokei_conn, node);
	assert_true(conn->paused & SPOKEI_PAUSED_FULL);
	assert_true(spokei_outlet_len(&conn->out) < 1024 + 600);
	assert_true(spokei_buffer_len(&conn->held) <= 4096);
	assert_true(stat(SPOKE_STAT_BYTES_READ) < 20000);
	assert_true(spokei_buffer_len(&rig.conns[0].out) > 20000);
	for (unsigned i = 0; i < 100; i++) {
		flush(0);
		peer_read(&rig.conns[0], take, &rig.seen[0]);
	}
	assert_int_equal(rig.seen[0].count, 100);
}

static void unproven_peer_gets_no_pushes(void **state)
{
	struct spoke_peer peers[2];

	(void)state;
	provide(SECRET);
	open_on(0, &spokei_wire_dubbo);
	put(0, "demo.A", "$echo", NULL, 1);
	assert_int_equal(ask(0), 0);
	assert_int_equal(spoke_provider_peers(rig.provider, peers, 2), 0);
	assert_int_equal(call(0, "demo.A", SECRET), 0);
	assert_int_equal(spoke_provider_peers(rig.provider, peers, 2), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(caller_without_the_token_is_refused_with_code_13),
		TEST(each_request_needs_the_token),
		TEST(both_tokens_are_good_while_they_are_changed),
		TEST(token_of_one_service_does_not_open_another),
		TEST(service_can_be_open_or_the_only_one_that_is_not),
		TEST(tokens_come_from_a_file_that_only_its_owner_reads),
		TEST(reload_with_a_bad_file_changes_no_token),
		TEST(echo_and_heartbeats_need_no_token),
		TEST(what_is_served_is_told_to_the_proven_only),
		TEST(connection_of_messagepack_rpc_shows_its_token_once),
		TEST(shown_token_counts_where_it_is_good),
		TEST(token_is_taken_by_providers_that_need_none),
		TEST(token_that_cannot_be_noted_is_refused),
		TEST(http_client_bears_its_token_in_a_header),
		TEST(third_refusal_closes_the_connection),
		TEST(limit_of_refusals_is_a_setting),
		TEST(flood_of_bad_requests_gets_three_answers),
		TEST(log_has_ten_lines_a_second),
		TEST(unproven_peer_sends_short_frames_only),
		TEST(unproven_peer_of_each_wire_has_the_bound),
		TEST(nothing_is_bounded_where_no_proof_is_asked),
		TEST(unproven_peer_that_does_not_read_is_not_read),
		TEST(unproven_peer_gets_no_pushes),
	};

	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
