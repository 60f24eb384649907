/* SPDX-License-Identifier: Apache-2.0 */
/* spoke serve: a provider for experiments, optionally with faults. */
#include "examples/spoke/ending.h"
#include "examples/spoke/files.h"
#include "examples/spoke/options.h"
#include "examples/spoke/secure.h"
#include "examples/spoke/serve_faults.h"
#include "examples/spoke/settings.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/target.h"

#include <spoke/admin.h>
#include <spoke/host.h>
#include <spoke/notify.h>
#include <spoke/provider.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VERB "serve"
#define PLACE "dubbo://127.0.0.1:20880"
#define DRAIN_NS UINT64_C(10000000000)
#define SERVICES_MAX 16u
#define WEIGHT_MAX 1000000u

enum {
	SERVICE,
	SERVICE_VERSION,
	GROUP,
	PORT,
	REGISTRY,
	ADVERTISE,
	HEARTBEAT,
	WEIGHT,
	DELAY,
	DROP_RATE,
	FREEZE_AFTER,
	TOKEN,
	TOKEN_FILE,
	TLS,
	CERT,
	KEY,
	CA,
	CONFIG,
	ADMIN,
	ADMIN_TOKEN_FILE,
	QUIET,
};

static const struct option_row rows[] = {
	[SERVICE] = { "service", 's', "NAME",
		      "service name; may be repeated (default demo.EchoService)" },
	[SERVICE_VERSION] = { "version", 0, "TEXT", "version of the services" },
	[GROUP] = { "group", 0, "TEXT", "group of the services" },
	[PORT] = { "port", 'p', "PORT", "port on 127.0.0.1; 0: any free port (default 20880)" },
	[REGISTRY] = { "registry", 'r', "URL",
		       "publish the services there, e.g. file:///run/spoke/providers" },
	[ADVERTISE] = { "advertise", 0, "HOST",
			"publish this host instead of the address listened at" },
	[HEARTBEAT] = { "heartbeat", 0, "TIME",
			"heartbeat interval; 0: no heartbeats (default 60s)" },
	[WEIGHT] = { "weight", 0, "COUNT", "weight for load balancing (default 100)" },
	[DELAY] = { "delay", 0, "TIME", "delay every answer by TIME" },
	[DROP_RATE] = { "drop-rate", 0, "SHARE", "share of requests that get no answer, e.g. 0.1" },
	[FREEZE_AFTER] = { "freeze-after", 0, "N|TIME",
			   "freeze (SIGSTOP) after N requests or after a time; SIGCONT resumes" },
	[TOKEN] = { "token", 0, "LIST",
		    "tokens of which requests must bear one; true: a random one, which the "
		    "registry shows; " SECURE_SEEN },
	[TOKEN_FILE] = { "token-file", 0, "FILE", "file with the tokens, with mode 600" },
	[TLS] = { "tls", 0, NULL, "accept TLS only; the three options below imply it" },
	[CERT] = SECURE_CERT,
	[KEY] = SECURE_KEY,
	[CA] = { "ca", 0, "FILE",
		 "authorities of consumers; only those with such a certificate may connect" },
	[CONFIG] = { "config", 0, "FILE",
		     "configuration file, see spoke.conf(5); SIGHUP reloads it" },
	[ADMIN] = { "admin", 0, "ADDRESS",
		    "serve the live page there, e.g. 127.0.0.1:9090; https:// before it: over "
		    "TLS" },
	[ADMIN_TOKEN_FILE] = { "admin-token-file", 0, "FILE",
			       "file with the token of the page, with mode 600, for spoke "
			       "offline" },
	[QUIET] = { "quiet", 'q', NULL, "print addresses, errors and reloads only" },
};

static const struct usage usage = {
	.verb = VERB,
	.operands = "[URL...]",
	.about = "Serves at the given URLs (default " PLACE ") until SIGTERM or SIGINT,\n"
		 "which drain it. Every address accepts both Dubbo and MessagePack-RPC;\n"
		 "HTTP, too, if only this machine reaches it, or with ?http=on.\n"
		 "0.0.0.0:PORT is reached over IPv4, [::]:PORT over IPv6 only.\n"
		 "\n"
		 "  echo ANY...         answers with its argument, or with the array of them\n"
		 "  sleep MS            answers with MS after MS milliseconds\n"
		 "  fail [CODE [TEXT]]  answers with an error\n"
		 "  drop                never answers\n"
		 "\n"
		 "All other methods behave like echo. --service sets the service name.",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples = "  spoke serve --port 0\n"
		    "  spoke serve --delay 50ms --drop-rate 10% --registry "
		    "file:///run/spoke/providers\n"
		    "  spoke serve unix:/run/echo.sock --service demo.Orders",
};

struct server {
	struct spoke_env env; /* the host's, with a log */
	struct spoke_provider_options options;
	const char *services[SERVICES_MAX];
	size_t service_count;
	const char *version;
	const char *group;
	char place[64]; /* of --port */
	struct faults faults;
	struct secure secure;
	const char *config_path;
	struct spoke_config *config;
	const char *admin_listen;
	const char *admin_token_file;
	struct spoke_admin *admin;
	bool admin_secures; /* the page is served over TLS */
	struct spoke_engine *engine;
	struct spoke_provider *provider;
};

/* --- output */

/* Static, because the log hook gets the context of the environment. */
static bool is_quiet;
static const char *settings_path = ""; /* of the file, if there is one */

/* Is the line an answer to a reload? The sentences about a file begin with its path. */
static bool is_of_file(const char *text)
{
	return strncmp(text, "config: ", 8) == 0 ||
	       (*settings_path && strncmp(text, settings_path, strlen(settings_path)) == 0);
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct timespec now = { 0, 0 };
	struct tm day = { 0 };
	char at[16] = "";

	(void)arg;
	if (is_quiet)
		return;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (localtime_r(&now.tv_sec, &day))
		(void)strftime(at, sizeof(at), "%H:%M:%S", &day);
	printf("%s.%03ld %s %s", at, now.tv_nsec / 1000000, event->name,
	       spoke_link_change_name(event->change));
	if (event->change == SPOKE_LINK_SUSPECT)
		printf(": %u heartbeats missed", event->missed);
	else if (event->error == SPOKE_ELOST) /* the usual end: most clients just close */
		printf(": the peer is gone");
	else if (event->error)
		printf(": %s", spoke_strerror(event->error));
	(void)putchar('\n');
	(void)ending_show();
}

/* Do the lines of changed() report the same? Theirs begin with an address, too. */
static bool is_of_peer(const char *text)
{
	static const char *const ends[] = { " connected", " closed its connection",
					    " answers again", " sent a drain notice" };
	size_t len = strlen(text);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (len > strlen(ends[i]) && strcmp(text + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return strncmp(text, "connection of ", 14) == 0;
}

/* Prints a log line of the library: an error, or what the server does. */
static void log_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	if (line->level > SPOKE_LOG_WARN &&
	    (is_quiet ? !is_of_file(line->text) : is_of_peer(line->text)))
		return;
	(void)ending_say(VERB_OK, VERB, "%s", line->text);
	if (line->suppressed)
		(void)ending_say(VERB_OK, VERB, "%" PRIu64 " similar lines suppressed",
				 line->suppressed);
}

/* Returns whether the addresses could be printed. */
static bool print_places(const struct server *server)
{
	char place[256];

	for (size_t i = 0; spoke_provider_address(server->provider, i, place, sizeof(place)); i++)
		for (size_t j = 0; j < server->service_count; j++)
			printf("%s listens at %s\n", server->services[j], shown_of(place).text);
	if (server->admin) {
		const struct shown shown = shown_of(spoke_admin_address(server->admin));
		const char *at = shown.text;
		bool is_unix = strncmp(at, "unix:", 5) == 0;

		const char *scheme = server->admin_secures ? "https://" : "http://";

		printf("admin page at %s%s%s\n", is_unix ? "" : scheme, at, is_unix ? "" : "/");
	}
	return ending_show();
}

/* If the engine has an error text, log_line() has printed it. */
static int fail(const struct server *server, int error)
{
	int end = error == SPOKE_ESYSTEM ? VERB_REMOTE : spoke_error_exit(error);

	if (server->engine && *spoke_engine_why(server->engine))
		return end;
	return ending_say(end, VERB, "%s", spoke_strerror(error));
}

/* --- the run */

static int add_services(struct server *server)
{
	const unsigned safe = SPOKE_HANDLER_SAFE;
	const struct spoke_handler handlers[] = {
		{ .method = NULL, .handle = serve_echo, .arg = &server->faults, .flags = safe },
		{ .method = "echo", .handle = serve_echo, .arg = &server->faults, .flags = safe },
		{ .method = "sleep", .handle = serve_sleep, .arg = &server->faults, .flags = safe },
		{ .method = "fail", .handle = serve_fail, .arg = &server->faults, .flags = safe },
		{ .method = "drop", .handle = serve_drop, .arg = &server->faults },
	};
	int error = SPOKE_OK;

	for (size_t i = 0; !error && i < server->service_count; i++) {
		const struct spoke_service_options service = {
			.name = server->services[i],
			.version = server->version,
			.group = server->group,
		};

		error = spoke_provider_add(server->provider, &service, handlers,
					   sizeof(handlers) / sizeof(handlers[0]));
	}
	return error;
}

static int listen_all(struct server *server, char **places, int count)
{
	const char *first = *server->place ? server->place : NULL;
	int error = SPOKE_OK;

	/* The command line overrides the file. */
	if (!first && !count) {
		error = spoke_provider_listen_configured(server->provider);
		if (error > 0)
			return SPOKE_OK;
		first = PLACE;
	}
	if (!error && first)
		error = spoke_provider_listen(server->provider, first);
	for (int i = 0; !error && i < count; i++) {
		char place[512];

		/* Every address accepts both wires, regardless of the scheme. */
		(void)snprintf(place, sizeof(place), "%s%s",
			       target_has_scheme(places[i]) ? "" : "tcp://", places[i]);
		error = spoke_provider_listen(server->provider, place);
	}
	return error;
}

/* Can other machines reach this address? */
static bool is_reachable(const char *address)
{
	return strncmp(address, "unix:", 5) != 0 && strncmp(address, "shm:", 4) != 0 &&
	       strncmp(address, "0.0.0.0:", 8) != 0 && strncmp(address, "[::]:", 5) != 0;
}

static int open_admin(struct server *server)
{
	struct spoke_admin_options options = {
		.listen = server->admin_listen,
		.token_file = server->admin_token_file,
		.name = server->services[0],
		.number = (uint64_t)getpid(),
		.config = server->config,
	};
	int error;

	server->admin_secures = strncmp(server->admin_listen, "https://", 8) == 0;
	if (server->admin_secures && server->secure.options.cert)
		options.tls = &server->secure.options;
	error = spoke_admin_new(server->engine, &options, &server->admin);
	/* Other pages link to it by http:// only. */
	if (!error && !server->admin_secures && is_reachable(spoke_admin_address(server->admin)))
		server->options.admin = spoke_admin_address(server->admin);
	return error;
}

static int run(struct server *server, char **places, int count)
{
	struct spoke_engine_options engine_options = { .env = &server->env };
	char place[128];
	char status[SPOKE_NOTIFY_STATUS_MAX + 1] = "";
	int error;

	if (settings_load(VERB, server->config_path, &server->config) != VERB_OK)
		return VERB_USAGE;
	if (server->config)
		spoke_config_engine(server->config, &engine_options);
	if (server->config && !server->admin_listen)
		server->admin_listen = spoke_config_get(server->config, "engine", "admin");
	(void)files_raise(UINT64_MAX);
	error = spoke_engine_new(&engine_options, &server->engine);
	if (!error && server->config)
		error = spoke_config_reload_on_signal(server->config, server->engine);
	server->options.config = server->config;
	server->options.tls = secure_options(&server->secure);
	server->options.changed = changed;
	server->options.changed_arg = server;
	server->faults.engine = server->engine;
	if (!error)
		error = spoke_engine_drain_on_signals(server->engine, DRAIN_NS);
	if (!error && server->admin_listen)
		error = open_admin(server);
	if (!error)
		error = spoke_provider_new(server->engine, &server->options, &server->provider);
	if (!error)
		error = add_services(server);
	if (!error)
		error = listen_all(server, places, count);
	if (!error)
		error = serve_faults_begin(&server->faults);
	if (error)
		return fail(server, error);
	if (!print_places(server)) /* see ending_flush() */
		return VERB_OK;
	if (spoke_provider_address(server->provider, 0, place, sizeof(place)))
		(void)snprintf(status, sizeof(status), "%s listens at %.127s", server->services[0],
			       shown_of(place).text);
	error = spoke_engine_notify(server->engine, status);
	if (!error)
		error = spoke_engine_run(server->engine);
	return error ? fail(server, error) : VERB_OK;
}

/* --- options and operands */

static bool take_service(struct server *server, const struct options *options)
{
	if (server->service_count == SERVICES_MAX) {
		(void)options_wrong(options, "too many services");
		return false;
	}
	if (!*options->value) {
		(void)options_wrong(options, "must not be empty; write a name, e.g. demo.Orders");
		return false;
	}
	server->services[server->service_count++] = options->value;
	return true;
}

static bool take_host(struct server *server, const struct options *options)
{
	server->options.advertise = options->value;
	if (*options->value && !strpbrk(options->value, "/?@"))
		return true;
	(void)options_wrong(options, "not a host; write a host that consumers can reach");
	return false;
}

static bool take_port(struct server *server, const struct options *options)
{
	uint64_t port;

	if (!options_count(options, 0, 65535, &port))
		return false;
	(void)snprintf(server->place, sizeof(server->place), "dubbo://127.0.0.1:%u",
		       (unsigned)port);
	return true;
}

static bool take_weight(struct server *server, const struct options *options)
{
	uint64_t weight;

	if (!options_count(options, 0, WEIGHT_MAX, &weight))
		return false;
	server->options.weight = weight ? (uint32_t)weight : SPOKE_NONE;
	return true;
}

/* Reads a count, or a duration with a unit. */
static bool take_freeze(struct server *server, const struct options *options)
{
	size_t digits = strspn(options->value, "0123456789");

	if (digits && !options->value[digits])
		return options_count(options, 1, 0, &server->faults.freeze_requests);
	return options_duration(options, 0, &server->faults.freeze_ns);
}

static bool take_option(struct server *server, int row, const struct options *options)
{
	switch (row) {
	case SERVICE:
		return take_service(server, options);
	case SERVICE_VERSION:
		server->version = options->value;
		return true;
	case GROUP:
		server->group = options->value;
		return true;
	case PORT:
		return take_port(server, options);
	case REGISTRY:
		server->options.registry = options->value;
		return true;
	case ADVERTISE:
		return take_host(server, options);
	case HEARTBEAT:
		return options_heartbeat(options, &server->options.heartbeat_ns);
	case WEIGHT:
		return take_weight(server, options);
	case DELAY:
		return options_duration(options, 0, &server->faults.delay_ns);
	case DROP_RATE:
		return options_share(options, &server->faults.drop_share);
	case FREEZE_AFTER:
		return take_freeze(server, options);
	case TOKEN:
		server->options.token = options->value;
		return true;
	case TOKEN_FILE:
		server->options.token_file = options->value;
		return true;
	case TLS:
	case CERT:
	case KEY:
	case CA:
		return secure_take(&server->secure, row - TLS, options);
	case CONFIG:
		server->config_path = options->value;
		settings_path = options->value;
		return true;
	case ADMIN:
		server->admin_listen = options->value;
		return true;
	case ADMIN_TOKEN_FILE:
		server->admin_token_file = options->value;
		return true;
	case QUIET:
	default:
		is_quiet = true;
		return true;
	}
}

int serve_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	struct server server = { .env = *spoke_host_env() };
	int end;
	int row;

	while ((row = options_next(&options)) >= 0)
		if (!take_option(&server, row, &options))
			return VERB_USAGE;
	if (row == OPTIONS_STOP)
		return options.end;
	server.env.log = log_line;
	if (!server.service_count)
		server.services[server.service_count++] = "demo.EchoService";
	end = run(&server, options.operands, options.operand_count);
	spoke_engine_free(server.engine);
	spoke_config_free(server.config);
	serve_faults_end(&server.faults);
	return end;
}
