/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls from three threads; the engine runs on a thread of its own.
 *
 *     blocking_consumer [url]
 */
#include <spoke/future.h>

#include <pthread.h>
#include <stdio.h>

struct caller {
	struct spoke_method *echo;
	const char *text;
	char answer[64];
	int error;
};

/* Makes one call, waits for its answer, and frees the future. */
static void *call(void *arg)
{
	struct caller *caller = arg;
	struct spoke_future *future = NULL;

	caller->error = spoke_call_wait_with(caller->echo, SPOKE_ARGS(caller->text), &future);
	if (!caller->error)
		(void)spoke_value_print(spoke_future_result(future)->value, caller->answer,
					sizeof(caller->answer));
	spoke_future_free(future);
	return NULL;
}

static int call_from_three_threads(struct spoke_method *echo)
{
	struct caller callers[] = {
		{ .echo = echo, .text = "one" },
		{ .echo = echo, .text = "two" },
		{ .echo = echo, .text = "three" },
	};
	pthread_t threads[2];
	int started = 0;
	int error = 0;

	while (started < 2 && !pthread_create(&threads[started], NULL, call, &callers[started]))
		started++;
	call(&callers[2]);
	while (started > 0)
		(void)pthread_join(threads[--started], NULL);
	for (int i = 0; i < 3; i++) {
		printf("%s: %s\n", callers[i].text,
		       callers[i].error ? spoke_strerror(callers[i].error) : callers[i].answer);
		error = error ? error : callers[i].error;
	}
	return error;
}

int main(int argc, char **argv)
{
	struct spoke_consumer_options options = {
		.url = argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880/demo.EchoService",
	};
	struct spoke_engine *engine = NULL;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	int error = spoke_engine_new(NULL, &engine);

	if (!error)
		error = spoke_consumer_new(engine, &options, &consumer);
	if (!error)
		error = spoke_consumer_method(consumer, "echo", NULL, &echo);
	if (!error)
		error = spoke_engine_start(engine);
	if (!error)
		error = call_from_three_threads(echo);
	if (error)
		(void)fprintf(stderr, "blocking_consumer: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	return error != 0;
}
