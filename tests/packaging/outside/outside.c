/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of somebody who has installed spoke: a provider and a consumer in one process, and one
 * call between them over loopback. C11 and C++17 at once. Prints what was answered.
 */
#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text;

	(void)arg;
	if (spoke_cursor_next(&args, &text))
		spoke_reply(request, text);
	else
		spoke_reply_error(request, 1, "echo: argument missing");
}

struct answer {
	struct spoke_engine *engine;
	char text[64];
};

static void done(void *arg, const struct spoke_result *result)
{
	struct answer *answer = (struct answer *)arg;

	if (result->error)
		(void)spoke_result_print(result, answer->text, sizeof(answer->text));
	else
		(void)spoke_value_print(result->value, answer->text, sizeof(answer->text));
	spoke_engine_stop(answer->engine);
}

/* Writes the URL at which the service is reached. */
static int serve(struct spoke_engine *engine, char *url, size_t size)
{
	struct spoke_service_options service;
	struct spoke_handler handler;
	struct spoke_provider *provider;
	char address[128];
	int error;

	memset(&service, 0, sizeof(service));
	memset(&handler, 0, sizeof(handler));
	service.name = "outside.Echo";
	handler.method = "echo";
	handler.handle = echo;
	error = spoke_provider_new(engine, NULL, &provider);
	if (!error)
		error = spoke_provider_add(provider, &service, &handler, 1);
	if (!error)
		error = spoke_provider_listen(provider, "dubbo://127.0.0.1:0");
	if (error)
		return error;
	(void)spoke_provider_address(provider, 0, address, sizeof(address));
	(void)snprintf(url, size, "dubbo://%s/outside.Echo?timeout=10s", address);
	return 0;
}

static int call(struct answer *answer, const char *url)
{
	struct spoke_consumer_options options;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_builder builder;
	unsigned char memory[64];
	struct spoke_span args;
	int error;

	memset(&options, 0, sizeof(options));
	options.url = url;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "hello");
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_consumer_new(answer->engine, &options, &consumer);
	if (!error)
		error = spoke_consumer_method(consumer, "echo", NULL, &method);
	return error ? error : spoke_call(method, args, NULL, done, answer, NULL);
}

int main(void)
{
	struct answer answer;
	char url[256];
	int error;

	memset(&answer, 0, sizeof(answer));
	error = spoke_engine_new(NULL, &answer.engine);
	if (!error)
		error = serve(answer.engine, url, sizeof(url));
	if (!error)
		error = call(&answer, url);
	if (!error)
		error = spoke_engine_run(answer.engine);
	spoke_engine_free(answer.engine);
	if (error)
		(void)fprintf(stderr, "outside: %s\n", spoke_strerror(error));
	else
		printf("%d.%d.%d answered %s\n", SPOKE_VERSION_MAJOR, SPOKE_VERSION_MINOR,
		       SPOKE_VERSION_PATCH, answer.text);
	return error != 0;
}
