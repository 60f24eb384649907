/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with an admin page for the browser tests:
 *
 *     page_host provider <name> <registry>
 *         serves demo.Echo: "echo" replies, "late" never does
 *     page_host consumer <name> <registry> [<timers>]
 *         calls demo.Echo every 5 ms, and demo.Store, which has no provider, with failback; sets
 *         <timers> alarms
 *     page_host idle <name>
 *         does nothing
 *
 * Prints "page <address> <token>" when the page is open, and "acted <name>" for every action. A
 * process with markup in its name also has markup in its events.
 */
#include "core/engine/engine.h"

#include <spoke/admin.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define EVIL "<img src=x onerror=\"document.title='evil'\"><script>document.title='evil'</script>"

static struct {
	struct spoke_engine *engine;
	struct spoke_consumer *echo;
	struct spoke_consumer *store;
	struct spoke_method *methods[3]; /* echo, late, put */
	struct spoke_span args;
	struct spoke_alarm beat;
	unsigned beats;
	struct spoke_alarm *alarms;
	struct spoke_request *late[64];
	unsigned late_count;
	bool hostile; /* put markup into the name and into events */
} host;

static void stop(const char *what, int error)
{
	(void)fprintf(stderr, "page_host: %s: %s: %s\n", what, spoke_strerror(error),
		      host.engine ? spoke_engine_why(host.engine) : "");
	exit(1);
}

static void must(const char *what, int error)
{
	if (error)
		stop(what, error);
}

/* --- the page */

static void note(void *arg)
{
	(void)printf("acted %s\n", (const char *)arg);
	(void)fflush(stdout);
}

static void drain(void *arg)
{
	note(arg);
	must("drain", spoke_engine_drain(host.engine, 2000 * MS));
}

static const char *show(const char *name)
{
	static char noted[] = "note";
	static char drained[] = "drain";
	const struct spoke_admin_action actions[] = {
		{ .name = noted, .sentence = "Prints a line " EVIL, .act = note, .arg = noted },
		{ .name = drained,
		  .sentence = "Finishes the work in progress, and exits",
		  .act = drain,
		  .arg = drained },
	};
	const struct spoke_admin_options options = {
		.name = name,
		.number = (uint64_t)getpid(),
		.actions = actions,
		.action_count = 2,
	};
	struct spoke_admin *admin;

	must("admin", spoke_admin_new(host.engine, &options, &admin));
	(void)printf("page %s %s\n", spoke_admin_address(admin), spoke_admin_token(admin));
	return spoke_admin_address(admin);
}

/* --- a provider */

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value text;

	(void)arg;
	if (spoke_cursor_next(&args, &text))
		spoke_reply(request, text);
	else
		spoke_reply_error(request, 1, "%s", EVIL);
}

/* Keeps the last 64 requests unanswered; the handler of one in four fails at once. */
static void late(struct spoke_request *request, void *arg)
{
	unsigned at = host.late_count++ % 64;

	if (at % 4 == 3) {
		spoke_reply_error(request, 2, "too many are late");
		return;
	}

	if (host.late[at])
		echo(host.late[at], arg);
	host.late[at] = spoke_request_keep(request) == SPOKE_OK ? request : NULL;
}

static void provide(const char *name, const char *registry)
{
	const struct spoke_provider_options options = {
		.registry = registry,
		.heartbeat_ns = 400 * MS,
		.warmup_ns = SPOKE_OFF,
		.admin = show(name),
	};
	const struct spoke_service_options service = { .name = "demo.Echo" };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "late", .handle = late },
	};
	struct spoke_provider *provider;

	must("provider", spoke_provider_new(host.engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, handlers, 2));
	must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
}

/* --- a consumer */

static void done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	(void)result;
}

static void begin_call(unsigned method)
{
	/* A refused call appears on the page too. */
	int error = spoke_call(host.methods[method], host.args, NULL, done, NULL, NULL);

	(void)error;
}

static void beat(struct spoke_alarm *alarm)
{
	(void)alarm;
	begin_call(0);
	if (host.beats % 60 == 0)
		begin_call(1);
	if (host.beats % 160 == 0)
		begin_call(2);
	if (host.beats++ % 400 == 0 && host.hostile)
		spokei_event_of(host.engine, SPOKE_EVENT_OF_TIMEOUT, SPOKE_EREMOTE, "%s", EVIL);
}

static void forget(struct spoke_alarm *alarm)
{
	(void)alarm;
}

/* Fills the wheel with alarms over one hour. */
static void fill(size_t count)
{
	if (count == 0)
		return;
	host.alarms = calloc(count, sizeof(*host.alarms));
	if (host.alarms == NULL)
		stop("alarms", SPOKE_ENOMEM);
	for (size_t i = 0; i < count; i++)
		must("alarm", spoke_alarm_after(host.engine, &host.alarms[i],
						(i * 7919 % 3600000 + 1) * MS, forget));
}

static void consume(const char *name, const char *registry)
{
	const struct spoke_consumer_options echo_options = {
		.url = "consumer://any/demo.Echo",
		.registry = registry,
		.heartbeat_ns = 400 * MS,
		.timeout_ns = 250 * MS,
		.policy = &spoke_policy_failfast,
	};
	const struct spoke_consumer_options store_options = {
		.url = "dubbo://127.0.0.1:1/demo.Store",
		.heartbeat_ns = 400 * MS,
		.timeout_ns = 250 * MS,
		.policy = &spoke_policy_failback,
		.retries = 30,
		.retry_period_ns = 3000 * MS,
		.failback_tasks_max = 1000,
	};
	static unsigned char memory[64];
	struct spoke_builder builder;

	(void)show(name);
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, "hello");
	must("arguments", spoke_builder_finish(&builder, &host.args));
	must("consumer", spoke_consumer_new(host.engine, &echo_options, &host.echo));
	must("consumer", spoke_consumer_new(host.engine, &store_options, &host.store));
	must("method", spoke_consumer_method(host.echo, "echo", NULL, &host.methods[0]));
	must("method", spoke_consumer_method(host.echo, "late", NULL, &host.methods[1]));
	must("method", spoke_consumer_method(host.store, "put", NULL, &host.methods[2]));
	must("alarm", spoke_alarm_every(host.engine, &host.beat, 5 * MS, beat));
}

int main(int argc, char **argv)
{
	bool consumes = argc >= 4 && strcmp(argv[1], "consumer") == 0;

	bool provides = argc == 4 && strcmp(argv[1], "provider") == 0;

	if (!consumes && !provides && (argc < 3 || strcmp(argv[1], "idle") != 0)) {
		(void)fprintf(
			stderr,
			"usage: page_host provider|consumer|idle <name> <registry> [<timers>]\n");
		return 2;
	}
	host.hostile = strchr(argv[2], '<') != NULL;
	must("engine", spoke_engine_new(NULL, &host.engine));
	must("signals", spoke_engine_drain_on_signals(host.engine, 2000 * MS));
	if (consumes)
		consume(argv[2], argv[3]);
	else if (provides)
		provide(argv[2], argv[3]);
	else
		(void)show(argv[2]);
	fill(argc > 4 ? strtoul(argv[4], NULL, 10) : 0);
	(void)fflush(stdout);
	must("run", spoke_engine_run(host.engine));
	spoke_engine_free(host.engine);
	free(host.alarms);
	return 0;
}
