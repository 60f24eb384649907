/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer of demo.sh: one call, and all that is known of its end.
 *
 *     demo_consumer <url> <method> <text>
 *
 * Ends with 0 for an answer, 1 for a call that failed, 2 for one that could not be made.
 */
#include <spoke/future.h>

#include <stdio.h>

static int call(struct spoke_engine *engine, char **argv, struct spoke_future **ret_future)
{
	struct spoke_consumer_options options = { .url = argv[1] };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_builder builder;
	unsigned char memory[1024];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, argv[3]);
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_consumer_new(engine, &options, &consumer);
	if (!error)
		error = spoke_consumer_method(consumer, argv[2], NULL, &method);
	if (!error)
		error = spoke_engine_start(engine);
	return error ? error : spoke_call_wait(method, args, NULL, ret_future);
}

int main(int argc, char **argv)
{
	struct spoke_engine *engine = NULL;
	struct spoke_future *future = NULL;
	char text[512];
	int error;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: demo_consumer <url> <method> <text>\n");
		return 2;
	}
	error = spoke_engine_new(NULL, &engine);
	if (!error)
		error = call(engine, argv, &future);
	if (future && error)
		(void)spoke_result_print(spoke_future_result(future), text, sizeof(text));
	else if (future)
		(void)spoke_value_print(spoke_future_result(future)->value, text, sizeof(text));
	else
		(void)snprintf(text, sizeof(text), "no call: %s", spoke_strerror(error));
	printf("%s\n", text);
	error = future ? error != 0 : 2;
	spoke_future_free(future);
	spoke_engine_free(engine);
	return error;
}
