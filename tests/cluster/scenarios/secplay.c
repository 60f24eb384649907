/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and consumers with TLS in the virtual world: see secplay.h. */
#include "tests/cluster/scenarios/secplay.h"
#include "tests/support/scene.h"

#include <openssl/ssl.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct secplay secplay;

RIG_STEP(secplay_set_up)
{
	memset(&secplay, 0, sizeof(secplay));
	scene_open(&secplay.world, 9);
	for (unsigned i = 0; i < SECPLAY_PROCESSES; i++)
		secplay.engines[i] = scene_engine(&secplay.world, &secplay.processes[i],
						  &secplay.faulty[i], NULL);
	assert_true(secure_begin(&secplay.secure, &secplay.world, "tls"));
}

void secplay_pass(uint64_t ns)
{
	spokei_world_run(&secplay.world, secplay.world.now_ns + ns);
}

RIG_STEP(secplay_tear_down)
{
	for (unsigned i = 0; i < SECPLAY_PROCESSES; i++)
		scene_leave(&secplay.processes[i], &secplay.faulty[i], &secplay.engines[i]);
	spokei_world_fini(&secplay.world);
}

uint64_t secplay_stat_of(unsigned side, enum spoke_stat stat)
{
	return spoke_stat_get(secplay.engines[side], stat);
}

/* --- the sides */

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

void secplay_hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_int_equal(spoke_request_keep(request), 0);
	secplay.held = request;
	secplay.held_count++;
}

void secplay_provide(const char *at, const struct spoke_provider_options *options)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };

	assert_int_equal(spoke_provider_new(secplay.engines[SERVER], options, &secplay.provider),
			 0);
	assert_int_equal(spoke_provider_add(secplay.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(secplay.provider, at), 0);
}

void secplay_provide_tls(const char *at)
{
	const struct spoke_provider_options options = { .tls = &secplay.secure.provider };

	secplay_provide(at, &options);
}

void secplay_consume(const char *url, const struct spoke_tls_options *tls)
{
	const struct spoke_consumer_options options = { .url = url, .tls = tls };

	assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &secplay.consumer),
			 0);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	secplay.ended++;
	secplay.error = result->error;
	(void)snprintf(secplay.error_text, sizeof(secplay.error_text), "%.*s",
		       (int)result->error_text.len,
		       result->error_text.len ? (const char *)result->error_text.data : "");
}

void secplay_call(uint64_t timeout_ns)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns };
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_method(secplay.consumer, "echo", NULL, &method), 0);
	assert_int_equal(spoke_call(method, (struct spoke_span){ "\xa4text", 5 }, &options,
				    note_end, NULL, NULL),
			 0);
}

/* Returns what an engine's events have said. */
const char *secplay_told(unsigned side)
{
	static char text[SPOKE_EVENTS * SPOKE_EVENT_TEXT];
	struct spoke_event event = { .number = 0 };
	size_t len = 0;

	text[0] = '\0';
	while (spoke_event_get(secplay.engines[side], event.number + 1, &event) == 0)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", event.text);
	return text;
}

/* --- raw connections */

const struct spoke_env *secplay_raw_env(void)
{
	return &secplay.processes[STRANGER].env;
}

int secplay_raw_connect(const char *at)
{
	const struct spoke_env *env = secplay_raw_env();
	int fd = scene_connect(env, at);

	secplay_pass(MS);
	assert_int_equal(env->net->finish(env->ctx, fd), 0);
	return fd;
}

void secplay_raw_send(int fd, const void *bytes, size_t len)
{
	scene_write(secplay_raw_env(), fd, bytes, len);
	secplay_pass(MS);
}

/* Reads all that has come. Returns its length; *ret_ended: the other side has ended. */
size_t secplay_raw_read(int fd, unsigned char *bytes, size_t size, bool *ret_ended)
{
	return scene_read(secplay_raw_env(), fd, bytes, size, ret_ended);
}

bool secplay_is_closed(int fd)
{
	unsigned char bytes[4096];
	bool ended;

	while (secplay_raw_read(fd, bytes, sizeof(bytes), &ended) > 0)
		continue;
	return ended;
}

void secplay_raw_close(int fd)
{
	scene_hang_up(secplay_raw_env(), fd);
}

/* Writes a ClientHello. Returns its length. */
size_t secplay_make_hello(unsigned char *bytes, size_t size)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(context);
	BIO *out = BIO_new(BIO_s_mem());
	int len;

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_set_connect_state(ssl);
	(void)SSL_do_handshake(ssl);
	len = BIO_read(out, bytes, (int)size);
	assert_in_range(len, 100, size - 1);
	SSL_free(ssl);
	SSL_CTX_free(context);
	return (size_t)len;
}
