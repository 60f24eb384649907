/* SPDX-License-Identifier: Apache-2.0 */
/* spoke comet: a gateway for browsers, with the settings of a file. */
#include "examples/spoke/ending.h"
#include "examples/spoke/options.h"
#include "examples/spoke/secure.h"
#include "examples/spoke/settings.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/startable.h"
#include "examples/spoke/tickets.h"

#include <spoke/admin.h>
#include <spoke/comet.h>
#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/notify.h>
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VERB "comet"
#define DRAIN_NS UINT64_C(15000000000)
#define TICKET_LIFE_NS UINT64_C(30000000000)

enum {
	CHECK,
	ADMIN,
	QUIET,
};

static const struct option_row rows[] = {
	[CHECK] = { "check", 0, NULL, "report errors in FILE, and do not run" },
	[ADMIN] = { "admin", 0, "ADDRESS",
		    "serve the live page there, e.g. 127.0.0.1:9090; https:// before it: over "
		    "TLS" },
	[QUIET] = { "quiet", 'q', NULL, "print addresses, errors and reloads only" },
};

static const struct usage usage = {
	.verb = VERB,
	.operands = "FILE",
	.about = "Runs a gateway, which holds connections of browsers and pushes messages to "
		 "users,\n"
		 "until SIGTERM or SIGINT, which drain it. FILE has its settings: [comet] for "
		 "pages,\n"
		 "and listen in [provider] for backends, which push by the service spoke.Comet.\n"
		 "SIGHUP reloads it.\n"
		 "\n"
		 "  push USER EVENT DATA       push_many [USER...] EVENT DATA   push_all EVENT "
		 "DATA\n"
		 "  kick USER [REASON]         stats\n"
		 "\n"
		 "Texts of pages go to received(USER, TEXT) of the service backend in [comet].\n"
		 "\n"
		 "A page connects with ticket=TICKET in the query. The backend of the page gets a\n"
		 "ticket from the method issue USER of the service spoke.Tickets, which answers\n"
		 "{\"ticket\":TICKET,\"ms\":MS}. A ticket can be used once, within this time, "
		 "which is\n"
		 "ticket.life (30s). With query.user = true the gateway believes user=USER\n"
		 "instead, for trying.",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples =
		"  spoke comet comet.conf\n"
		"  spoke call 127.0.0.1:20881 spoke.Comet.push '\"ann\"' '\"offer\"' '\"tea\"'\n"
		"  spoke call 127.0.0.1:20881 spoke.Tickets.issue '\"ann\"'",
};

struct gateway {
	struct spoke_env env; /* the host's, with a log */
	const char *path;
	const char *admin_listen;
	bool checks;
	struct spoke_config *config;
	char *page;      /* the document at / */
	bool query_user; /* the query names the user, without tickets */
	uint64_t ticket_life_ns;
	struct tickets *tickets; /* NULL: query_user */
	struct spoke_engine *engine;
	struct spoke_comet *comet;
	struct spoke_provider *provider;
	struct spoke_admin *admin;
	struct spoke_consumer *backend; /* NULL: pages cannot send */
	struct spoke_method *received;
	uint64_t dropped; /* texts of pages that have not reached the backend */
};

/* Static, because the log hook gets the context of the environment. */
static bool is_quiet;
static const char *settings_path = "";

/* Is the line an answer to a reload? The sentences about the file begin with its path. */
static bool is_of_file(const char *text)
{
	return strncmp(text, "config: ", 8) == 0 ||
	       strncmp(text, settings_path, strlen(settings_path)) == 0;
}

static void log_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	if (is_quiet && line->level > SPOKE_LOG_WARN && !is_of_file(line->text))
		return;
	(void)ending_say(VERB_OK, VERB, "%s", line->text);
	if (line->suppressed)
		(void)ending_say(VERB_OK, VERB, "%" PRIu64 " similar lines suppressed",
				 line->suppressed);
}

/* If the engine has an error text, log_line() has printed it. */
static int fail(const struct gateway *gateway, int error)
{
	int end = error == SPOKE_ESYSTEM ? VERB_REMOTE : spoke_error_exit(error);

	if (gateway->engine && *spoke_engine_why(gateway->engine))
		return end;
	return ending_say(end, VERB, "%s", spoke_strerror(error));
}

/* --- tickets */

static uint64_t now_ns(void)
{
	struct timespec now = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Serves spoke.Tickets.issue(user). */
static void issue(struct spoke_request *request, void *arg)
{
	const struct gateway *gateway = arg;
	char text[TICKET_TEXT];
	struct spoke_span user;
	int error;

	if (SPOKE_READ_REQUEST(request, &user))
		return;
	error = tickets_issue(gateway->tickets, user, now_ns(), text);
	if (error)
		spoke_reply_error(request, error, "%s", spoke_strerror(error));
	else
		SPOKE_REPLY(request, SPOKE_MAP("ticket", (const char *)text, "ms",
					       gateway->ticket_life_ns / 1000000));
}

/* Finds ticket=TICKET in a query. */
static struct spoke_span ticket_of(struct spoke_span query)
{
	static const char name[] = "ticket=";
	const size_t len = sizeof(name) - 1;
	const char *at = query.data;
	const char *end = query.len ? at + query.len : at;

	while (at < end) {
		const char *amp = memchr(at, '&', (size_t)(end - at));
		const char *stop = amp ? amp : end;

		if ((size_t)(stop - at) > len && memcmp(at, name, len) == 0)
			return (struct spoke_span){ at + len, (size_t)(stop - at) - len };
		at = amp ? amp + 1 : end;
	}
	return (struct spoke_span){ NULL, 0 };
}

static void authorize(void *arg, struct spoke_comet_entry entry,
		      const struct spoke_comet_request *request)
{
	const struct gateway *gateway = arg;
	struct spoke_span user = tickets_use(gateway->tickets, ticket_of(request->query), now_ns());

	if (user.len > 0)
		(void)spoke_comet_admit(entry, user);
	else
		(void)spoke_comet_refuse(entry, "the ticket is not valid");
}

/* --- texts of pages */

static void drop(struct gateway *gateway, int error)
{
	if (gateway->dropped++ % 1000 == 0)
		(void)ending_say(VERB_OK, VERB,
				 "the backend has not taken a text: %s; %" PRIu64 " in all",
				 spoke_strerror(error), gateway->dropped);
}

static void sent(void *arg, const struct spoke_result *result)
{
	if (result->error)
		drop(arg, result->error);
}

static void receive(void *arg, struct spoke_span user, struct spoke_span text)
{
	struct gateway *gateway = arg;
	int error = spoke_call_with(gateway->received, SPOKE_ARGS(user, text), sent, gateway);

	if (error)
		drop(gateway, error);
}

static int open_backend(struct gateway *gateway, struct spoke_comet_options *options)
{
	const struct spoke_consumer_options with = {
		.url = spoke_config_get(gateway->config, "comet", "backend"),
		.config = gateway->config,
	};
	int error;

	if (!with.url)
		return SPOKE_OK;
	error = spoke_consumer_new(gateway->engine, &with, &gateway->backend);
	if (!error)
		error = spoke_consumer_method(gateway->backend, "received", NULL,
					      &gateway->received);
	options->message = receive;
	options->arg = gateway;
	return error;
}

/* --- the file */

static const char *setting(const struct gateway *gateway, const char *key)
{
	return spoke_config_get(gateway->config, "comet", key);
}

static void show_error(void *arg, const char *sentence)
{
	(void)arg;
	(void)ending_say(VERB_USAGE, VERB, "%s", sentence);
}

/* Reads the settings that the gateway needs. Returns the exit status. */
static int read_settings(struct gateway *gateway)
{
	struct spoke_comet_options with = { .listen = NULL };
	const char *life = NULL;

	if (settings_load(VERB, gateway->path, &gateway->config) != VERB_OK)
		return VERB_USAGE;
	spoke_config_comet(gateway->config, &with);
	gateway->query_user = with.query_user;
	if (!with.listen)
		return ending_say(VERB_USAGE, VERB,
				  "%s: [comet] has no listen; write e.g. listen = 127.0.0.1:8080",
				  gateway->path);
	if (!spoke_config_get(gateway->config, "provider", "listen")) {
		return ending_say(VERB_USAGE, VERB,
				  "%s: [provider] has no listen, so nothing could push; write e.g. "
				  "listen = dubbo://127.0.0.1:20881",
				  gateway->path);
	}
	life = setting(gateway, "ticket.life");
	gateway->ticket_life_ns = TICKET_LIFE_NS;
	if (life && !options_read_duration(life, &gateway->ticket_life_ns))
		return VERB_USAGE;
	if (gateway->checks)
		return startable(gateway->path, gateway->config, show_error, NULL) ? VERB_OK
										   : VERB_USAGE;
	return settings_page(gateway->path, gateway->config, show_error, NULL, &gateway->page)
		       ? VERB_OK
		       : VERB_USAGE;
}

/* --- the run */

static void print_addresses(const struct gateway *gateway)
{
	char place[256];

	for (size_t i = 0; spoke_comet_address(gateway->comet, i, place, sizeof(place)); i++)
		printf("pages connect to %s\n", place);
	for (size_t i = 0; spoke_provider_address(gateway->provider, i, place, sizeof(place)); i++)
		printf("spoke.Comet listens at %s\n", shown_of(place).text);
	if (gateway->admin)
		printf("admin page at %s\n", shown_of(spoke_admin_address(gateway->admin)).text);
	(void)fflush(stdout);
}

static int open_admin(struct gateway *gateway)
{
	const struct spoke_admin_options options = {
		.listen = gateway->admin_listen,
		.name = "spoke comet",
		.number = (uint64_t)getpid(),
		.config = gateway->config,
	};

	return spoke_admin_new(gateway->engine, &options, &gateway->admin);
}

static int serve_tickets(struct gateway *gateway)
{
	const struct spoke_service_options service = { .name = "spoke.Tickets" };
	const struct spoke_handler handler = { .method = "issue", .handle = issue, .arg = gateway };

	return spoke_provider_add(gateway->provider, &service, &handler, 1);
}

static int open_provider(struct gateway *gateway)
{
	const struct spoke_provider_options options = { .config = gateway->config };
	int error = spoke_provider_new(gateway->engine, &options, &gateway->provider);
	int count = 0;

	if (!error)
		error = spoke_comet_serve(gateway->comet, gateway->provider);
	if (!error && gateway->tickets)
		error = serve_tickets(gateway);
	if (!error)
		count = spoke_provider_listen_configured(gateway->provider);
	return error ? error : count > 0 ? SPOKE_OK : count;
}

static int run(struct gateway *gateway)
{
	struct spoke_engine_options engine_options = { .env = &gateway->env };
	struct spoke_comet_options options = { .config = gateway->config, .page = gateway->page };
	char status[SPOKE_NOTIFY_STATUS_MAX + 1] = "";
	char place[128];
	int error;

	if (!gateway->query_user) {
		gateway->tickets = tickets_new(gateway->ticket_life_ns);
		if (!gateway->tickets)
			return fail(gateway, SPOKE_ENOMEM);
		options.authorize = authorize;
		options.arg = gateway;
	}
	spoke_config_engine(gateway->config, &engine_options);
	if (!gateway->admin_listen)
		gateway->admin_listen = spoke_config_get(gateway->config, "engine", "admin");
	error = spoke_engine_new(&engine_options, &gateway->engine);
	if (!error)
		error = spoke_config_reload_on_signal(gateway->config, gateway->engine);
	if (!error)
		error = spoke_engine_drain_on_signals(gateway->engine, DRAIN_NS);
	if (!error && gateway->admin_listen)
		error = open_admin(gateway);
	if (!error)
		error = open_backend(gateway, &options);
	if (!error)
		error = spoke_comet_new(gateway->engine, &options, &gateway->comet);
	if (!error)
		error = open_provider(gateway);
	if (error)
		return fail(gateway, error);
	print_addresses(gateway);
	if (spoke_comet_address(gateway->comet, 0, place, sizeof(place)))
		(void)snprintf(status, sizeof(status), "pages connect to %s", place);
	error = spoke_engine_notify(gateway->engine, status);
	if (!error)
		error = spoke_engine_run(gateway->engine);
	return error ? fail(gateway, error) : VERB_OK;
}

static void take_option(struct gateway *gateway, int row, const struct options *options)
{
	switch (row) {
	case CHECK:
		gateway->checks = true;
		break;
	case ADMIN:
		gateway->admin_listen = options->value;
		break;
	case QUIET:
	default:
		is_quiet = true;
		break;
	}
}

int comet_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	struct gateway gateway = { .env = *spoke_host_env() };
	int end;
	int row;

	while ((row = options_next(&options)) >= 0)
		take_option(&gateway, row, &options);
	if (row == OPTIONS_STOP)
		return options.end;
	if (options.operand_count != 1)
		return options_lacking(&options, options.operand_count ? "only one FILE is allowed"
								       : "FILE missing");
	gateway.path = options.operands[0];
	settings_path = gateway.path;
	gateway.env.log = log_line;
	end = read_settings(&gateway);
	if (end == VERB_OK && gateway.checks)
		printf("%s: no errors\n", gateway.path);
	else if (end == VERB_OK)
		end = run(&gateway);
	spoke_engine_free(gateway.engine);
	spoke_config_free(gateway.config);
	tickets_free(gateway.tickets);
	free(gateway.page);
	return end;
}
