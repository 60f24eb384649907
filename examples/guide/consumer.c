/* SPDX-License-Identifier: Apache-2.0 */
/* consumer.c: calls demo.Greeter twice a second with the settings of greeter.conf. */
#include <spoke/spoke.h>

#include <stdio.h>

static struct spoke_method *greet;

static void show_error(void *arg, const char *sentence)
{
	(void)arg;
	(void)fprintf(stderr, "%s\n", sentence);
}

/* Prints a log line of the library, e.g. the result of a reload. */
static void log_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	puts(line->text);
	(void)fflush(stdout);
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	printf("provider %s: %s\n", event->name, spoke_link_change_name(event->change));
	(void)fflush(stdout);
}

/* Called when a ticket is settled, i.e. when a deferred call has ended. */
static void settled(void *arg, const struct spoke_ticket_result *how)
{
	(void)arg;
	printf("ticket settled after %u attempts: %s\n", (unsigned)how->attempts,
	       spoke_ticket_settlement_name(how->settlement));
	(void)fflush(stdout);
}

static void done(void *arg, const struct spoke_result *result)
{
	char text[256];

	(void)arg;
	if (result->error == SPOKE_EDEFERRED)
		(void)snprintf(text, sizeof(text), "failed for now: deferred as a ticket");
	else if (result->error)
		(void)spoke_result_print(result, text, sizeof(text));
	else
		(void)spoke_value_print(result->value, text, sizeof(text));
	puts(text);
	(void)fflush(stdout);
}

static void call(struct spoke_alarm *alarm)
{
	struct spoke_builder builder;
	unsigned char memory[64];
	struct spoke_span args;
	int error;

	(void)alarm;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "world");
	error = spoke_builder_finish(&builder, &args);
	if (!error)
		error = spoke_call(greet, args, NULL, done, NULL, NULL);
	if (error)
		printf("call failed: %s\n", spoke_strerror(error));
}

static int consume(struct spoke_engine *engine, struct spoke_config *config,
		   struct spoke_alarm *alarm)
{
	struct spoke_consumer_options options = {
		.url = "consumer://any/demo.Greeter",
		.config = config,
		.changed = changed,
		.settled = settled,
	};
	struct spoke_consumer *consumer;
	int error = spoke_consumer_new(engine, &options, &consumer);

	if (!error)
		error = spoke_consumer_method(consumer, "greet", NULL, &greet);
	if (!error)
		error = spoke_alarm_every(engine, alarm, UINT64_C(500000000), call);
	/* SIGHUP reloads greeter.conf. */
	if (!error)
		error = spoke_config_reload_on_signal(config, engine);
	return error ? error : spoke_engine_drain_on_signals(engine, UINT64_C(2000000000));
}

int main(void)
{
	struct spoke_engine *engine = NULL;
	struct spoke_config *config = NULL;
	struct spoke_alarm alarm = { 0 };
	struct spoke_env env = *spoke_host_env();
	struct spoke_engine_options with = { .env = &env };
	int error = spoke_config_load(NULL, "greeter.conf", show_error, NULL, &config);

	env.log = log_line;
	if (!error)
		error = spoke_engine_new(&with, &engine);
	if (!error)
		error = consume(engine, config, &alarm);
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "consumer: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	spoke_config_free(config);
	return error != 0;
}
