/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer: calls demo.EchoService once, and prints what comes back.
 *
 *     echo_consumer [url [text]]
 */
#include <spoke/consumer.h>

#include <stdio.h>

struct call {
	struct spoke_engine *engine;
	int error;
};

static void done(void *arg, const struct spoke_result *result)
{
	struct call *call = arg;
	char text[256];

	call->error = result->error;
	if (result->error)
		(void)spoke_result_print(result, text, sizeof(text));
	else
		(void)spoke_value_print(result->value, text, sizeof(text));
	printf("%s\n", text);
	spoke_engine_stop(call->engine);
}

int main(int argc, char **argv)
{
	struct spoke_consumer_options options = {
		.url = argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880/demo.EchoService?timeout=1s",
	};
	struct call call = { NULL, SPOKE_OK };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct spoke_builder builder;
	unsigned char memory[1024];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, argc > 2 ? argv[2] : "hello");
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_engine_new(NULL, &call.engine);
	if (!error)
		error = spoke_consumer_new(call.engine, &options, &consumer);
	if (!error)
		error = spoke_consumer_method(consumer, "echo", NULL, &echo);
	if (!error)
		error = spoke_call(echo, args, NULL, done, &call, NULL);
	if (!error)
		error = spoke_engine_run(call.engine);
	if (error)
		(void)fprintf(stderr, "echo_consumer: %s\n", spoke_strerror(error));
	spoke_engine_free(call.engine);
	return error || call.error;
}
