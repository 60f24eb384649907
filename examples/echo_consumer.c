/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer: calls demo.EchoService once and prints the answer.
 *
 *     echo_consumer [url [text]]
 */
#include <spoke/consumer.h>

#include <stdio.h>

static int outcome;

static void done(void *engine, const struct spoke_result *result)
{
	char text[256];

	if (result->error)
		(void)spoke_result_print(result, text, sizeof(text));
	else
		(void)spoke_value_print(result->value, text, sizeof(text));
	printf("%s\n", text);
	outcome = result->error;
	spoke_engine_stop(engine);
}

static int call(struct spoke_engine *engine, const char *url, struct spoke_span args)
{
	struct spoke_consumer_options options = { .url = url };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	int error = spoke_consumer_new(engine, &options, &consumer);

	if (!error)
		error = spoke_consumer_method(consumer, "echo", NULL, &echo);
	return error ? error : spoke_call(echo, args, NULL, done, engine, NULL);
}

int main(int argc, char **argv)
{
	const char *url = "dubbo://127.0.0.1:20880/demo.EchoService?timeout=1s";
	struct spoke_engine *engine = NULL;
	struct spoke_builder builder;
	unsigned char memory[1024];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, argc > 2 ? argv[2] : "hello");
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_engine_new(NULL, &engine);
	if (!error)
		error = call(engine, argc > 1 ? argv[1] : url, args);
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "echo_consumer: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	return error || outcome;
}
