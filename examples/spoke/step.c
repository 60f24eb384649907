/* SPDX-License-Identifier: Apache-2.0 */
/* spoke offline and spoke online: ask the page of a process to take its providers aside, or back.
 */
#include "examples/spoke/ending.h"
#include "examples/spoke/http_get.h"
#include "examples/spoke/options.h"
#include "examples/spoke/secure.h"
#include "examples/spoke/shown.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

#define ADDRESS_TEXT 160u
#define TOKEN_MAX 256u
#define TIMEOUT_NS UINT64_C(3000000000)

enum {
	TOKEN,
	TOKEN_FILE,
	TIMEOUT
};

static const struct option_row rows[] = {
	[TOKEN] = { "token", 0, "TEXT", "token of the page; " SECURE_SEEN },
	[TOKEN_FILE] = { "token-file", 0, "FILE", "file with the token, with mode 600" },
	[TIMEOUT] = { "timeout", 't', "TIME", "time limit (default 3s)" },
};

static const struct usage offline_usage = {
	"offline",
	"ADDRESS",
	"Asks the admin page at this address to take the providers of its process aside: they\n"
	"leave the registry, consumers prefer others, and requests are still answered.\n"
	"The token is that of [engine] admin.token.file there, or of serve --admin-token-file.",
	rows,
	sizeof(rows) / sizeof(rows[0]),
	"  spoke offline --token-file /run/orders/token 127.0.0.1:9090",
};

static const struct usage online_usage = {
	"online",
	"ADDRESS",
	"Asks the admin page at this address to bring the providers of its process back, after\n"
	"spoke offline, or for the first time.",
	rows,
	sizeof(rows) / sizeof(rows[0]),
	"  spoke online --token-file /run/orders/token 127.0.0.1:9090",
};

struct step {
	const char *verb;
	struct spoke_engine *engine;
	struct http_get get;
	struct shown name;
	char token[TOKEN_MAX + 1];
	uint64_t timeout_ns;
	int end;
};

static void answered(struct http_get *get, const char *what, char *body, size_t len)
{
	struct step *step = spoke_container_of(get, struct step, get);

	(void)body;
	(void)len;
	if (get->refused) {
		what = *step->token ? "the page has another token: that of the file which its "
				      "process has as admin.token.file"
				    : "the page requires its token; write --token-file FILE, with "
				      "the file which its process has as admin.token.file";
	}
	if (what) {
		step->end = ending_say(get->timed_out  ? VERB_TIMEOUT
				       : get->answered ? VERB_REMOTE
						       : VERB_UNREACHABLE,
				       step->verb, "%s: %s", step->name.text, what);
	}
	spoke_engine_stop(step->engine);
}

static int set_token(struct step *step, const struct options *options)
{
	if (strlen(options->value) > TOKEN_MAX || strpbrk(options->value, "\r\n"))
		return options_wrong(options, "not a token; at most 256 visible characters");
	(void)snprintf(step->token, sizeof(step->token), "%s", options->value);
	return VERB_OK;
}

/* Reads the first line of the file. */
static int read_token(struct step *step, const struct options *options)
{
	const struct spoke_env *env = spoke_host_env();
	ssize_t len = env->files->read_secret(env->ctx, options->value, step->token, TOKEN_MAX);

	if (len < 0)
		return options_wrong(options, "cannot be read, or is not a file of mode 600");
	step->token[len] = '\0';
	step->token[strcspn(step->token, "\r\n")] = '\0';
	return VERB_OK;
}

/* Returns whether the verb goes on; if not, options->end is its end. */
static bool read_options(struct step *step, struct options *options)
{
	int row;

	options->end = VERB_OK;
	while (options->end == VERB_OK && (row = options_next(options)) >= 0) {
		if (row == TOKEN)
			options->end = set_token(step, options);
		else if (row == TOKEN_FILE)
			options->end = read_token(step, options);
		else if (!options_timeout(options, &step->timeout_ns))
			options->end = VERB_USAGE;
	}
	return options->end == VERB_OK && row == OPTIONS_DONE;
}

static int ask(struct step *step, const char *address)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address found[PLACE_MAX];
	char host[ADDRESS_TEXT];
	char path[32];
	const char *wrong;

	step->name = shown_of(address);
	if (place_parse(env, address, found) == 0)
		return ending_say(VERB_USAGE, step->verb, "%s: not an address, or unknown host",
				  step->name.text);
	env->net->print(env->ctx, &found[0], host, sizeof(host));
	if (strncmp(host, "unix:", 5) == 0)
		(void)snprintf(host, sizeof(host), "localhost");
	(void)snprintf(path, sizeof(path), "/act/%s", step->verb);
	step->get = (struct http_get){
		.engine = step->engine,
		.env = env,
		.token = step->token,
		.done = answered,
	};
	wrong = http_get_begin(&step->get, &found[0], host, path, step->timeout_ns);
	if (wrong)
		return ending_say(VERB_UNREACHABLE, step->verb, "%s: %s", step->name.text, wrong);
	if (spoke_engine_run(step->engine))
		step->end = VERB_REMOTE;
	http_get_end(&step->get);
	return step->end;
}

static int run(const struct usage *usage, int argc, char **argv)
{
	struct step step = { .verb = usage->verb, .timeout_ns = TIMEOUT_NS };
	struct options options = options_of(usage, argc, argv);
	int error;
	int end;

	if (!read_options(&step, &options))
		return options.end;
	if (options.operand_count != 1)
		return options_lacking(&options, "one address of a page is needed");
	if (strncmp(options.operands[0], "https://", 8) == 0) {
		return ending_say(VERB_USAGE, usage->verb,
				  "%s: pages over TLS cannot be asked; serve one without it on "
				  "loopback",
				  shown_of(options.operands[0]).text);
	}
	error = ending_quiet_engine(&(struct spoke_engine_options){ 0 }, &step.engine);
	if (error)
		return ending_say(VERB_REMOTE, usage->verb, "%s", spoke_strerror(error));
	end = ask(&step, options.operands[0]);
	spoke_engine_free(step.engine);
	return end;
}

int offline_verb(int argc, char **argv)
{
	return run(&offline_usage, argc, argv);
}

int online_verb(int argc, char **argv)
{
	return run(&online_usage, argc, argv);
}
