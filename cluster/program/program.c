/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program: engine, settings file, log and signals in one object, which keeps its first error so
 * that its user need not check each step.
 */
#include "cluster/config/config.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <spoke/admin.h>
#include <spoke/config.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/notify.h>
#include <spoke/program.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define DRAIN_NS UINT64_C(10000000000)
#define SENTENCE 512u

/* A function that is called again and again. */
struct repeat {
	struct spoke_alarm alarm;
	void (*run)(void *arg);
	void *arg;
	struct repeat *next;
};

struct spoke_program {
	const struct spoke_env *env;
	struct spoke_engine *engine; /* NULL: it could not be made */
	struct spoke_config *config; /* NULL: none */
	struct spoke_provider
		*provider; /* that gets all services; NULL: each gets one of its own */
	bool listens;      /* ... and listens where the file says */
	struct repeat *repeats;
	uint64_t drain_ns;
	uint64_t seen; /* the engine's newest event when a function began */
	char status[SPOKE_NOTIFY_STATUS_MAX + 1]; /* for the service manager */
	int error;                                /* the first one */
};

/* --- errors */

/* Writes a line when there may be no engine to log it. */
static void print(const struct spoke_program *program, const char *text)
{
	const struct spoke_env *env = program->env;
	const struct spoke_log_line line = { .level = SPOKE_LOG_ERROR,
					     .module = "program",
					     .text = text };

	if (env->log)
		env->log(env->ctx, &line);
	else if (env->print)
		env->print(env->ctx, &line);
}

static void print_sentence(void *arg, const char *sentence)
{
	print(arg, sentence);
}

/* Returns the cause of an error: the event that the function has reported, or the sentence of the
 * error. */
static const char *cause_of(const struct spoke_program *program, int error)
{
	const struct spoke_engine *engine = program->engine;

	if (error == SPOKE_ENOMEM || engine == NULL || engine->events.last == program->seen)
		return spoke_strerror(error);
	return spoke_engine_why(engine);
}

/* Keeps the first error, and logs it with its cause: the log may have no other lines of this
 * level. */
static void fail(struct spoke_program *program, int error, const char *what)
{
	char text[SENTENCE];

	if (error == SPOKE_OK)
		return;
	program->error = error;
	(void)snprintf(text, sizeof(text), "%s: %s", what, cause_of(program, error));
	print(program, text);
}

/* Returns whether a function may begin: there was no error yet. */
static bool is_fine(struct spoke_program *program)
{
	if (program && program->engine)
		program->seen = program->engine->events.last;
	return program && program->error == SPOKE_OK;
}

/* --- the beginning */

static const char *setting_of(const struct spoke_program *program, const char *section,
			      const char *key)
{
	return program->config ? spoke_config_get(program->config, section, key) : NULL;
}

/* Opens the page, if the file sets [engine] admin. The engine closes it. */
static int open_page(struct spoke_program *program)
{
	const struct spoke_admin_options options = {
		.listen = setting_of(program, "engine", "admin"),
		.config = program->config,
	};
	struct spoke_admin *page = NULL;
	int error = options.listen ? spoke_admin_new(program->engine, &options, &page) : SPOKE_OK;

	if (error == SPOKE_OK && page)
		spokei_event(program->engine, SPOKE_OK, "admin page at %s",
			     spoke_admin_address(page));
	return error;
}

static int make_engine(struct spoke_program *program, const struct spoke_program_options *with)
{
	const struct spoke_env *env = program->env;
	struct spoke_engine_options options = { .env = env, .log = with->log };
	int error = SPOKE_OK;

	if (with->config)
		error = spoke_config_load(env, with->config, print_sentence, program,
					  &program->config);
	if (error)
		return error;
	if (program->config)
		spoke_config_engine(program->config, &options);
	if (options.log == NULL && !(env->variable && env->variable(env->ctx, "SPOKE_LOG")))
		options.log = "info";
	error = spoke_engine_new(&options, &program->engine);
	return error ? error : open_page(program);
}

struct spoke_program *spoke_program_new_with(const struct spoke_program_options *options)
{
	const struct spoke_env *env = options->env ? options->env : spoke_host_env();
	struct spoke_program *program = spokei_alloc(env, 1, sizeof(*program));

	if (program == NULL)
		return NULL;
	program->env = env;
	program->drain_ns = options->drain_ns ? options->drain_ns : DRAIN_NS;
	fail(program, make_engine(program, options),
	     options->config ? options->config : "the program cannot begin");
	return program;
}

struct spoke_program *spoke_program_new(const char *config)
{
	const struct spoke_program_options options = { .config = config };

	return spoke_program_new_with(&options);
}

struct spoke_engine *spoke_program_engine(struct spoke_program *program)
{
	return is_fine(program) ? program->engine : NULL;
}

struct spoke_config *spoke_program_config(struct spoke_program *program)
{
	return is_fine(program) ? program->config : NULL;
}

/* --- its objects */

/* Logs where a provider listens, and adds it to the status. */
static void tell_address(struct spoke_program *program, const struct spoke_provider *provider,
			 const char *service)
{
	size_t len = strlen(program->status);
	char address[128];

	if (spoke_provider_address(provider, 0, address, sizeof(address)) == 0)
		return;
	spokei_event(program->engine, SPOKE_OK, "%s listens at %s", service, address);
	(void)snprintf(program->status + len, sizeof(program->status) - len, "%s%s listens at %s",
		       len > 0 ? ", " : "", service, address);
}

static int make_provider(struct spoke_program *program,
			 const struct spoke_provider_options *options,
			 struct spoke_provider **ret_provider)
{
	struct spoke_provider_options with = *options;

	if (with.config == NULL)
		with.config = program->config;
	return spoke_provider_new(program->engine, &with, ret_provider);
}

struct spoke_provider *spoke_program_provider(struct spoke_program *program,
					      const struct spoke_provider_options *options)
{
	struct spoke_provider *provider = NULL;

	if (!is_fine(program))
		return NULL;
	fail(program, make_provider(program, options, &provider), "a provider");
	program->provider = provider;
	program->listens = false;
	return provider;
}

/* Listens at the URL, or, once, where the file says. */
static int listen_for(struct spoke_program *program, struct spoke_provider *provider,
		      const char *url)
{
	int count;

	if (setting_of(program, "provider", "listen") == NULL)
		return url ? spoke_provider_listen(provider, url) : SPOKE_OK;
	if (program->listens)
		return SPOKE_OK;
	count = spoke_provider_listen_configured(provider);
	program->provider = provider;
	program->listens = true;
	return count < 0 ? count : SPOKE_OK;
}

struct spoke_provider *spoke_program_serve(struct spoke_program *program, const char *url,
					   const char *service,
					   const struct spoke_handler *handlers, size_t count)
{
	const struct spoke_service_options named = { .name = service };
	static const struct spoke_provider_options defaults;
	struct spoke_provider *provider;
	int error = SPOKE_OK;

	if (!is_fine(program))
		return NULL;
	provider = program->provider;
	if (provider == NULL)
		error = make_provider(program, &defaults, &provider);
	if (error == SPOKE_OK)
		error = spoke_provider_add(provider, &named, handlers, count);
	if (error == SPOKE_OK)
		error = listen_for(program, provider, url);
	fail(program, error, service ? service : "a service without a name");
	if (error)
		return NULL;
	tell_address(program, provider, service);
	return provider;
}

struct spoke_consumer *spoke_program_consumer(struct spoke_program *program,
					      const struct spoke_consumer_options *options)
{
	struct spoke_consumer *consumer = NULL;
	struct spoke_consumer_options with;

	if (!is_fine(program))
		return NULL;
	with = *options;
	if (with.config == NULL)
		with.config = program->config;
	fail(program, spoke_consumer_new(program->engine, &with, &consumer),
	     with.url ? with.url : "a consumer without a URL");
	return consumer;
}

struct spoke_method *spoke_program_method(struct spoke_program *program,
					  struct spoke_consumer *consumer, const char *name,
					  const struct spoke_method_options *options)
{
	struct spoke_method *method = NULL;

	if (!is_fine(program))
		return NULL;
	fail(program,
	     consumer ? spoke_consumer_method(consumer, name, options, &method) : SPOKE_EINVAL,
	     name ? name : "a method without a name");
	return method;
}

static void repeat_due(struct spoke_alarm *alarm)
{
	struct repeat *repeat = spoke_container_of(alarm, struct repeat, alarm);

	repeat->run(repeat->arg);
}

void spoke_program_every(struct spoke_program *program, uint64_t period_ns, void (*run)(void *arg),
			 void *arg)
{
	struct repeat *repeat;

	if (!is_fine(program))
		return;
	repeat = spokei_alloc(program->env, 1, sizeof(*repeat));
	if (repeat == NULL) {
		fail(program, SPOKE_ENOMEM, "a repeated function");
		return;
	}
	repeat->run = run;
	repeat->arg = arg;
	repeat->next = program->repeats;
	program->repeats = repeat;
	fail(program, spoke_alarm_every(program->engine, &repeat->alarm, period_ns, repeat_due),
	     "a repeated function");
}

/* --- the run and the end */

static void tell_unused(void *arg, enum spoke_log_level level, const char *sentence)
{
	const struct spoke_program *program = arg;
	const struct spoke_env *env = program->env;

	spokei_log(program->engine->log, level, "program", SPOKEI_LOG_LIFE, env->now(env->ctx),
		   "%s", sentence);
}

static int run(struct spoke_program *program)
{
	int error = spoke_engine_drain_on_signals(program->engine, program->drain_ns);

	if (program->config)
		spokei_config_report_unused(program->config, tell_unused, program);

	if (error == SPOKE_OK && program->config)
		error = spoke_config_reload_on_signal(program->config, program->engine);
	if (error == SPOKE_OK)
		error = spoke_engine_notify(program->engine, program->status);
	if (error == SPOKE_OK)
		error = spoke_engine_run(program->engine);
	if (error == SPOKE_OK)
		return SPOKE_OK;
	program->seen = program->engine->events.last; /* events of the run are no causes */
	return error;
}

int spoke_program_run(struct spoke_program *program)
{
	int status;

	if (program == NULL)
		return 1;
	if (is_fine(program))
		fail(program, run(program), "the program cannot run");
	while (program->repeats) {
		struct repeat *repeat = program->repeats;

		program->repeats = repeat->next;
		(void)spoke_alarm_cancel(&repeat->alarm);
		spokei_free(program->env, repeat, 1, sizeof(*repeat));
	}
	spoke_engine_free(program->engine);
	spoke_config_free(program->config);
	status = program->error ? 1 : 0;
	spokei_free(program->env, program, 1, sizeof(*program));
	return status;
}
