/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of demo.sh that goes on: calls "echo" every 50 ms, and says what becomes of its
 * connection, and when calls begin to fail or to be answered again.
 *
 *     demo_steady <url> [<url of a registry>]
 *
 * Ends after SIGTERM, when all calls have; with 0 if every call has ended exactly once.
 */
#include "examples/demo/story.h"

#include <spoke/consumer.h>
#include <spoke/signals.h>

#include <stdio.h>

#define CALL_EVERY_NS UINT64_C(50000000)
#define DRAIN_NS UINT64_C(5000000000)

static struct {
	struct story story;
	struct spoke_alarm alarm;
	struct spoke_method *echo;
	struct spoke_span args;
	unsigned long taken;
	unsigned long ok;
	unsigned long failed;
	unsigned long refused;
	int last; /* how the last call went */
} steady;

static void note(int error)
{
	if (error == steady.last)
		return;
	steady.last = error;
	if (error)
		story_say(&steady.story, "a call ends: %s", spoke_strerror(error));
	else
		story_say(&steady.story, "calls are answered");
}

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error)
		steady.failed++;
	else
		steady.ok++;
	note(result->error);
}

static void call(struct spoke_alarm *alarm)
{
	int error = spoke_call(steady.echo, steady.args, NULL, done, NULL, NULL);

	(void)alarm;
	if (error == SPOKE_ECLOSED)
		return;
	if (error) {
		steady.refused++;
		note(error);
	} else {
		steady.taken++;
	}
}

static int run(struct spoke_engine *engine, const char *url, const char *registry)
{
	struct spoke_consumer_options options = {
		.url = url,
		.registry = registry,
		.changed = story_changed,
		.changed_arg = &steady.story,
	};
	struct spoke_consumer *consumer;
	struct spoke_builder builder;
	unsigned char memory[64];
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "steady");
	error = spoke_builder_finish(&builder, &steady.args);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error)
		error = spoke_consumer_new(engine, &options, &consumer);
	if (!error)
		error = spoke_consumer_method(consumer, "echo", NULL, &steady.echo);
	if (!error)
		error = spoke_alarm_every(engine, &steady.alarm, CALL_EVERY_NS, call);
	return error ? error : spoke_engine_run(engine);
}

int main(int argc, char **argv)
{
	struct spoke_engine *engine = NULL;
	int error;

	if (argc != 2 && argc != 3) {
		(void)fprintf(stderr, "usage: demo_steady <url> [<registry>]\n");
		return 2;
	}
	steady.last = 1;
	error = spoke_engine_new(NULL, &engine);
	if (!error) {
		story_begin(&steady.story, "consumer", engine);
		error = run(engine, argv[1], argv[2]);
	}
	if (error) {
		(void)fprintf(stderr, "demo_steady: %s\n", spoke_strerror(error));
	} else {
		story_say(&steady.story,
			  "%lu calls: %lu answered, %lu failed, %lu lost; %lu not taken",
			  steady.taken, steady.ok, steady.failed,
			  steady.taken - steady.ok - steady.failed, steady.refused);
	}
	spoke_engine_free(engine);
	return error != 0 || steady.taken != steady.ok + steady.failed;
}
