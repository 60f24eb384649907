/* SPDX-License-Identifier: Apache-2.0 */
/* spoke call: makes one call and prints its answer as JSON. */
#include "examples/spoke/answer.h"
#include "examples/spoke/ending.h"
#include "examples/spoke/json.h"
#include "examples/spoke/offered.h"
#include "examples/spoke/options.h"
#include "examples/spoke/policies.h"
#include "examples/spoke/secure.h"
#include "examples/spoke/settings.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/stranger.h"
#include "examples/spoke/target.h"
#include "examples/spoke/terminal.h"
#include "examples/spoke/unlisted.h"
#include "examples/spoke/values.h"

#include <spoke/consumer.h>
#include <spoke/registry.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define VERB "call"
#define PATIENCE_NS UINT64_C(3000000000) /* default time for the registry to list a provider */
#define LOOK_NS UINT64_C(5000000)        /* pause between attempts while none is listed */
#define FLUSH_NS UINT64_C(500000000)     /* at most, for one-way requests to be written */

enum {
	TIMEOUT,
	RETRIES,
	IDEMPOTENT,
	CLUSTER,
	ATTACHMENT,
	DATA,
	WIRE,
	TYPES,
	GENERIC,
	SERIALIZATION,
	SERVICE_VERSION,
	GROUP,
	WAIT,
	TOKEN,
	TOKEN_FILE,
	TOKEN_PLAIN,
	TLS,
	CERT,
	KEY,
	CA,
	PEER,
	CONFIG,
	NOTIFY,
	JSON,
	VERBOSE,
};

static const struct option_row rows[] = {
	[TIMEOUT] = { "timeout", 't', "TIME",
		      "timeout of the call, e.g. 250ms (default: URL or config file, else 1s)" },
	[RETRIES] = { "retries", 'r', "COUNT",
		      "further attempts, on other providers (default 2; failback: 3)" },
	[IDEMPOTENT] = { "idempotent", 0, NULL,
			 "allow a second execution: retry requests that were sent, too" },
	[CLUSTER] = { "cluster", 0, "POLICY",
		      "policy: failover, failfast, failsafe, failback, forking, broadcast, "
		      "available" },
	[ATTACHMENT] = { "attachment", 'a', "KEY=VALUE", "send this attachment; may be repeated" },
	[DATA] = { "data", 'd', "JSON", "arguments; @FILE: read a file, @-: read stdin" },
	[WIRE] = { "wire", 'w', "WIRE",
		   "dubbo or mprpc, if the URL does not specify it (default dubbo)" },
	[TYPES] = { "types", 0, "TYPES",
		    "Java type descriptors of the arguments, e.g. Ljava/lang/String;I" },
	[GENERIC] = { "generic", 0, NULL,
		      "call by Dubbo's $invoke, which finds the method by name" },
	[SERIALIZATION] = { "serialization", 0, "NAME",
			    "hessian2, msgpack or auto (default: as the provider's URL asks for)" },
	[SERVICE_VERSION] = { "version", 0, "TEXT", "version of the service" },
	[GROUP] = { "group", 0, "TEXT", "group of the service" },
	[WAIT] = { "wait", 0, NULL, "wait for a usable provider, up to the timeout" },
	[TOKEN] = { "token", 0, "TEXT", "token to send; " SECURE_SEEN },
	[TOKEN_FILE] = { "token-file", 0, "FILE", "file with the token, with mode 600" },
	[TOKEN_PLAIN] = { "token-plain", 0, NULL,
			  "send it over plain TCP to another machine, too" },
	[TLS] = SECURE_TLS,
	[CERT] = SECURE_CERT,
	[KEY] = SECURE_KEY,
	[CA] = SECURE_CA,
	[PEER] = SECURE_PEER,
	[CONFIG] = { "config", 0, "FILE", "configuration file, see spoke.conf(5)" },
	[NOTIFY] = { "notify", 'n', NULL, "one-way call: expect no answer" },
	[JSON] = { "json", 0, NULL, "print the whole result as JSON, including errors" },
	[VERBOSE] = { "verbose", 'v', NULL, "print the provider and the timing on stderr" },
};

static const struct usage usage = {
	.verb = VERB,
	.operands = "URL SERVICE.METHOD [JSON...]",
	.about =
		"Calls a method and prints its answer as JSON: one line, or indented on a "
		"terminal.\n"
		"\n"
		"URL is an endpoint (dubbo://HOST:PORT, msgpack-rpc://HOST:PORT, tcp://HOST:PORT,\n"
		"unix:/PATH, shm:/PATH) or a registry\n"
		"(" SPOKE_REGISTRY_URLS ").\n"
		"The items of a single JSON array are the arguments; otherwise each value is an "
		"argument.\n"
		"Bytes are written as {\"$bin\": \"base64\"}; see spoke(1).",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples = "  spoke call tcp://127.0.0.1:20880 demo.EchoService.echo '\"hello\"'\n"
		    "  spoke call msgpack-rpc://127.0.0.1:6666 add 1 2 --timeout 200ms\n"
		    "  spoke call zookeeper://10.0.0.1:2181 demo.Orders.place -d @order.json",
};

struct caller {
	struct target target;
	struct values values;
	struct spoke_consumer_options options;
	struct spoke_method_options of;
	struct spoke_call_options with;
	const char *place;
	const char *wire;
	const char *data;
	struct secure secure;
	const char *config_path;
	struct spoke_config *config;
	bool json;
	bool verbose;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_alarm again; /* calls again while no provider is listed */
	uint64_t give_up_ns;
	char reason[160]; /* why the last connection failed; "": not known */
	bool connected;   /* a connection has existed */
	bool ended;
	const char *refused; /* why spoke_call() failed; NULL: it did not */
	int end;
};

/* --- the result */

/* Without any connection, report why there is none instead of the timeout. */
static int exit_code_of(const struct caller *caller, const struct spoke_result *result)
{
	if (result->error == SPOKE_ETIMEOUT_UNSENT && !caller->connected)
		return VERB_UNREACHABLE;
	return spoke_error_exit(result->error);
}

/* The registry lists no provider, or has not answered. */
static void say_no_provider(const struct caller *caller, const struct spoke_result *result)
{
	const struct target *target = &caller->target;
	const bool unanswered = result->error == SPOKE_EUNAVAILABLE ||
				unlisted_is_unanswered(caller->engine);

	(void)ending_say(VERB_UNREACHABLE, VERB,
			 unanswered ? "%s has not answered; no provider of %s is known"
				    : "%s lists no provider of %s",
			 shown_of(target->registry).text,
			 *target->service ? target->service : shown_of(target->url).text);
	unlisted_print(caller->engine, VERB, false);
}

/* A provider was called, or would have been. */
static void say_failure(const struct caller *caller, const struct spoke_result *result)
{
	char text[1024];

	if (caller->refused)
		(void)snprintf(text, sizeof(text), "%s", caller->refused);
	else
		(void)spoke_result_print(result, text, sizeof(text));
	(void)ending_say(VERB_REMOTE, VERB, "%s", text);
	answer_print_exception(result);
	if (!caller->of.types && !caller->of.generic)
		answer_print_hint(result);
}

static void say_error(const struct caller *caller, const struct spoke_result *result)
{
	char text[1024];

	if (caller->end == VERB_UNREACHABLE && caller->target.registry &&
	    !spoke_consumer_endpoints(caller->consumer, NULL, 0)) {
		say_no_provider(caller, result);
		return;
	}
	if (caller->end == VERB_UNREACHABLE && !caller->connected && !caller->refused) {
		ending_cause(caller->reason, result->error_text, result->error, text, sizeof(text));
		(void)ending_say(VERB_UNREACHABLE, VERB,
				 caller->target.registry
					 ? "no provider listed in %s can be reached: %s"
					 : "%s cannot be reached: %s",
				 shown_of(caller->place).text, text);
	} else {
		say_failure(caller, result);
	}
	if (caller->end == VERB_UNREACHABLE && caller->target.registry)
		unlisted_print(caller->engine, VERB, true);
}

/* Draining sends connected providers the drain notice and flushes one-way requests. */
static void end_run(struct caller *caller, bool failed)
{
	if ((failed && caller->end != VERB_REMOTE) || spoke_engine_drain(caller->engine, FLUSH_NS))
		spoke_engine_stop(caller->engine);
}

static void offered(void *arg)
{
	end_run(arg, true);
}

static void finish(struct caller *caller, const struct spoke_result *result)
{
	caller->end = exit_code_of(caller, result);
	caller->ended = true;
	if (caller->json)
		answer_print_json(result, caller->end);
	else if (result->error)
		say_error(caller, result);
	if (!caller->json && !result->error && !caller->with.one_way) {
		json_print(result->value, terminal_out() ? SPOKE_JSON_TREE : SPOKE_JSON_LINE,
			   stdout);
		(void)putchar('\n');
	}
	if (caller->verbose)
		answer_print_verbose(caller->consumer, result);
	if (result->error == SPOKE_ENOSERVICE && !caller->json && *caller->target.service &&
	    offered_print(caller->consumer, caller->target.service, offered, caller))
		return;
	end_run(caller, result->error != SPOKE_OK);
}

static void settled(void *arg, const struct spoke_ticket_result *how)
{
	finish(arg, how->result);
}

static void done(void *arg, const struct spoke_result *result)
{
	struct caller *caller = arg;

	if (result->error == SPOKE_EDEFERRED &&
	    !spoke_ticket_then(caller->consumer, result->ticket, settled, caller)) {
		if (caller->verbose)
			(void)ending_say(VERB_OK, VERB, "deferred; will be retried");
		return;
	}
	finish(caller, result);
}

/* --- the start */

static void look(struct spoke_alarm *alarm);

/* Has the registry listed no provider yet? */
static bool is_unlisted(const struct caller *caller, int error)
{
	return caller->target.registry &&
	       (error == SPOKE_ENOPROVIDER || error == SPOKE_EUNAVAILABLE) &&
	       !spoke_consumer_endpoints(caller->consumer, NULL, 0);
}

/* Calls, or waits for the registry to list a provider. */
static void begin(struct caller *caller)
{
	int error = spoke_call(caller->method, caller->values.args, &caller->with, done, caller,
			       NULL);
	bool early = spoke_engine_now(caller->engine) < caller->give_up_ns;
	struct spoke_result refused = { .error = error };

	if (!error)
		return;
	if (is_unlisted(caller, error) && early &&
	    !spoke_alarm_after(caller->engine, &caller->again, LOOK_NS, look))
		return;
	caller->refused = spoke_engine_why(caller->engine);
	if (!*caller->refused)
		caller->refused = spoke_strerror(error);
	finish(caller, &refused);
}

static void look(struct spoke_alarm *alarm)
{
	begin(spoke_container_of(alarm, struct caller, again));
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct caller *caller = arg;

	if (event->change == SPOKE_LINK_CONNECTED)
		caller->connected = true;
	(void)snprintf(caller->reason, sizeof(caller->reason), "%s", ending_reason(event));
	if (caller->verbose && !caller->ended)
		(void)ending_say(VERB_OK, VERB, "%s: %s%s%s", event->name,
				 spoke_link_change_name(event->change), event->error ? ": " : "",
				 ending_reason(event));
}

static int fail(const struct caller *caller, int error)
{
	const char *why = caller->engine ? spoke_engine_why(caller->engine) : "";

	return ending_say(spoke_error_exit(error), VERB, "%s", *why ? why : spoke_strerror(error));
}

static int run(struct caller *caller)
{
	struct spoke_consumer_options options = caller->options;
	struct spoke_engine_options engine_options = { .env = NULL };
	int error;

	if (settings_load(VERB, caller->config_path, &caller->config) != VERB_OK)
		return VERB_USAGE;
	if (caller->config)
		spoke_config_engine(caller->config, &engine_options);
	if (caller->target.listed && !caller->target.registry)
		caller->target.registry = spoke_config_get(caller->config, "registry", "url");
	if (caller->target.listed && !caller->target.registry) {
		return ending_say(
			VERB_USAGE, VERB,
			caller->config_path
				? "%s: the file of --config sets no registry"
				: "%s: no address; name a file with a registry by --config",
			shown_of(caller->place).text);
	}
	error = ending_quiet_engine(&engine_options, &caller->engine);
	options.config = caller->config;
	options.tls = secure_options(&caller->secure);
	options.url = caller->target.url;
	options.registry = caller->target.registry;
	options.changed = changed;
	options.changed_arg = caller;
	if (*caller->target.service)
		caller->of.service = caller->target.service;
	caller->with.attachments = caller->values.attachments;
	if (!error)
		error = spoke_consumer_new(caller->engine, &options, &caller->consumer);
	if (!error)
		error = spoke_consumer_method(caller->consumer, caller->target.method, &caller->of,
					      &caller->method);
	if (error)
		return fail(caller, error);
	caller->give_up_ns = spoke_engine_now(caller->engine) +
			     (caller->of.timeout_ns ? caller->of.timeout_ns : PATIENCE_NS);
	begin(caller);
	error = caller->ended ? SPOKE_OK : spoke_engine_run(caller->engine);
	if (!error && !caller->secure.used && !caller->json && caller->connected &&
	    (caller->end == VERB_TIMEOUT || caller->end == VERB_UNREACHABLE))
		stranger_print(caller->engine, VERB, &caller->target);
	return error ? fail(caller, error) : caller->end;
}

/* --- options and operands */

static bool take_option(struct caller *caller, int row, const struct options *options)
{
	switch (row) {
	case TIMEOUT:
		return options_timeout(options, &caller->of.timeout_ns);
	case RETRIES:
		return options_retries(options, &caller->of.retries);
	case IDEMPOTENT:
		caller->of.idempotent = true;
		return true;
	case CLUSTER:
		return policies_take(options, &caller->of.policy);
	case ATTACHMENT:
		return values_attach(&caller->values, VERB, options->value) == VERB_OK;
	case DATA:
		caller->data = options->value;
		return true;
	case WIRE:
		caller->wire = options->value;
		return true;
	case TYPES:
		caller->of.types = options->value;
		return true;
	case GENERIC:
		caller->of.generic = true;
		return true;
	case SERIALIZATION:
		return policies_serialization(options, &caller->of.serialization);
	case SERVICE_VERSION:
		caller->of.version = options->value;
		return true;
	case GROUP:
		caller->of.group = options->value;
		return true;
	case WAIT:
		caller->options.wait_ready = true;
		return true;
	case TOKEN:
		caller->options.token = options->value;
		return true;
	case TOKEN_FILE:
		caller->options.token_file = options->value;
		return true;
	case TOKEN_PLAIN:
		caller->options.token_plain = true;
		return true;
	case TLS:
	case CERT:
	case KEY:
	case CA:
	case PEER:
		return secure_take(&caller->secure, row - TLS, options);
	case CONFIG:
		caller->config_path = options->value;
		return true;
	case NOTIFY:
		caller->with.one_way = true;
		return true;
	case JSON:
		caller->json = true;
		return true;
	case VERBOSE:
	default:
		caller->verbose = true;
		return true;
	}
}

/* Adds settings for the consumer to its URL. */
static bool add_keys(struct caller *caller)
{
	struct target *target = &caller->target;
	bool added = true;

	/* Selects among the listed providers. */
	if (target->listed && caller->of.version)
		added = target_set(target, "version", caller->of.version);
	if (added && target->listed && caller->of.group)
		added = target_set(target, "group", caller->of.group);
	return added;
}

static int take_operands(struct caller *caller, const struct options *options)
{
	int end;

	if (options->operand_count < 2)
		return options_lacking(options, options->operand_count ? "METHOD missing"
								       : "URL and METHOD missing");
	if (caller->data && options->operand_count > 2)
		return ending_say(VERB_USAGE, VERB,
				  "arguments given by --data and as operands; use only one");
	caller->place = options->operands[0];
	end = target_read(&caller->target, VERB, caller->place, options->operands[1], caller->wire);
	if (end == VERB_OK && caller->target.mprpc &&
	    (caller->of.version || caller->of.group || caller->values.pair_count ||
	     caller->of.generic || caller->of.serialization))
		end = ending_say(VERB_USAGE, VERB,
				 "MessagePack-RPC has no versions, groups, attachments, "
				 "generic calls or serializations; remove these options");
	if (end == VERB_OK && !add_keys(caller))
		end = ending_say(VERB_REMOTE, VERB, "out of memory");
	if (end != VERB_OK)
		return end;
	end = caller->data ? values_data(&caller->values, VERB, caller->data)
			   : values_args(&caller->values, VERB, options->operands + 2,
					 options->operand_count - 2);
	if (end == VERB_OK && caller->of.types)
		end = values_check_types(&caller->values, VERB, caller->of.types);
	if (end == VERB_OK && caller->of.generic && caller->of.types) {
		end = values_type_names(&caller->values, VERB, caller->of.types);
		caller->of.type_names = caller->values.type_names;
		caller->of.types = NULL;
	}
	return end == VERB_OK ? values_finish(&caller->values, VERB) : end;
}

/* Returns false if the verb ends here, with the exit code *ret_end. */
static bool take_all(struct caller *caller, struct options *options, int *ret_end)
{
	int row;

	*ret_end = VERB_USAGE;
	while ((row = options_next(options)) >= 0)
		if (!take_option(caller, row, options))
			return false;
	*ret_end = row == OPTIONS_STOP ? options->end : take_operands(caller, options);
	return row == OPTIONS_DONE && *ret_end == VERB_OK;
}

int call_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	struct caller caller = { .json = false };
	int end;

	values_init(&caller.values);
	if (take_all(&caller, &options, &end))
		end = run(&caller);
	spoke_engine_free(caller.engine);
	spoke_config_free(caller.config);
	target_fini(&caller.target);
	values_fini(&caller.values);
	return end;
}
