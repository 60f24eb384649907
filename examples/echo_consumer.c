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

	(void)spoke_result_print(result, text, sizeof(text));
	printf("%s\n", text);
	outcome = result->error;
	spoke_engine_stop(engine);
}

static int call(struct spoke_engine *engine, const char *url, const char *text)
{
	struct spoke_consumer_options options = { .url = url };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	int error = spoke_consumer_new(engine, &options, &consumer);

	if (!error)
		error = spoke_consumer_method(consumer, "echo", NULL, &echo);
	return error ? error : spoke_call_with(echo, SPOKE_ARGS(text), done, engine);
}

int main(int argc, char **argv)
{
	const char *url = "dubbo://127.0.0.1:20880/demo.EchoService?timeout=1s";
	struct spoke_engine *engine = NULL;
	int error = spoke_engine_new(NULL, &engine);

	if (!error)
		error = call(engine, argc > 1 ? argv[1] : url, argc > 2 ? argv[2] : "hello");
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "echo_consumer: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	return error || outcome;
}
