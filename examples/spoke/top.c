/* SPDX-License-Identifier: Apache-2.0 */
/* spoke top: polls the admin pages of processes and draws their status. */
#include "examples/spoke/ending.h"
#include "examples/spoke/http_get.h"
#include "examples/spoke/json.h"
#include "examples/spoke/options.h"
#include "examples/spoke/settings_view.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/status_view.h"

#include <spoke/host.h>
#include <spoke/signals.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define SOURCES_MAX 16
#define ADDRESS_TEXT 160u
#define INTERVAL_MIN_NS (SECOND / 10)
#define TIMEOUT_NS (3 * SECOND)

enum {
	INTERVAL,
	COUNT,
	ONCE,
	SETTINGS
};

static const struct option_row rows[] = {
	[INTERVAL] = { "interval", 'i', "TIME", "time between updates (default 1s)" },
	[COUNT] = { "count", 'n', "COUNT", "exit after COUNT updates" },
	[ONCE] = { "once", '1', NULL, "print the status once and exit" },
	[SETTINGS] = { "settings", '\0', NULL,
		       "print the settings in force, their sources and the last reload" },
};

static const struct usage usage = {
	"top",
	"ADDRESS...",
	"Polls the admin pages at these addresses and shows timers, calls,\n"
	"endpoints, tickets and the last events. On a terminal the display is updated in place: "
	"tab\n"
	"shows the next process, q quits. Otherwise each update is a block of text.",
	rows,
	sizeof(rows) / sizeof(rows[0]),
	"  spoke top 127.0.0.1:9090\n"
	"  spoke top --once :9090 :9091\n"
	"  spoke top --settings :9090",
};

struct top;

struct source {
	struct top *top;
	struct shown name; /* as given on the command line */
	struct spoke_address at;
	char host[ADDRESS_TEXT];
	struct http_get get;
	struct spoke_builder values;
	struct spoke_value status; /* the latest; memory of `values` */
	const char *wrong;         /* error of the last update; NULL: none */
};

struct top {
	struct spoke_engine *engine;
	const struct spoke_env *env;
	struct screen screen;
	struct source sources[SOURCES_MAX];
	int source_count;
	int shown;   /* the process shown in full */
	int waiting; /* outstanding answers */
	uint64_t interval_ns;
	uint64_t looks_max; /* 0: unlimited */
	uint64_t looks;
	bool once;
	bool over;     /* nothing more is drawn */
	bool settings; /* shows them and not the status */
	struct spoke_alarm next;
	struct spoke_signal signals[4]; /* that quit */
	struct spoke_signal resized;
	struct spoke_signal stopped;
	struct spoke_watch keys;
};

/* The first draw comes before the engine runs: a stop alone would be forgotten then. */
static void finish(struct top *top)
{
	top->over = true;
	spoke_engine_stop(top->engine);
}

/* --- drawing */

static void draw_source(struct top *top, struct source *source, bool whole)
{
	struct screen *screen = &top->screen;

	if (source->status.len > 0 && top->settings)
		settings_view_draw(screen, source->status, source->name.text);
	else if (source->status.len > 0)
		status_view_head(screen, source->status, source->name.text);
	if (source->wrong) {
		screen_colour(screen, TERMINAL_RED);
		screen_print(screen, "%s: %s\n", source->name.text, source->wrong);
		screen_colour(screen, TERMINAL_NORMAL);
	}
	if (source->status.len > 0 && whole && !top->settings)
		status_view_body(screen, source->status);
}

static void draw(struct top *top)
{
	screen_clear(&top->screen);
	for (int i = 0; i < top->source_count; i++) {
		if (!top->screen.live)
			draw_source(top, &top->sources[i], true);
		else if (i != top->shown)
			draw_source(top, &top->sources[i], false);
	}
	if (top->screen.live)
		draw_source(top, &top->sources[top->shown], true);
	else
		screen_print(&top->screen, "\n");
	screen_show(&top->screen);
	if (!ending_show())
		finish(top);
}

/* --- polling */

static void look_over(struct top *top)
{
	top->looks++;
	draw(top);
	if (top->once || top->looks == top->looks_max) {
		(void)spoke_alarm_cancel(&top->next);
		finish(top);
	}
}

/* Parses the body into source->status. Returns NULL or an error text. */
static const char *read_status(struct source *source, char *body, size_t len)
{
	struct spoke_json_error error = { 0, "" };
	size_t count = 0;

	source->status = (struct spoke_value){ 0 };
	spoke_builder_reset(&source->values);
	if (spoke_json_read(body, len, &source->values, &count, &error))
		return error.what;
	if (spoke_builder_finish_value(&source->values, &source->status) == SPOKE_OK &&
	    (source->top->settings ? settings_view_is_one(source->status)
				   : status_view_is_one(source->status)))
		return NULL;
	source->status = (struct spoke_value){ 0 };
	return source->top->settings ? "the answer has no settings; is this an older version?"
				     : "the answer is not a status";
}

static void answered(struct http_get *get, const char *what, char *body, size_t len)
{
	struct source *source = spoke_container_of(get, struct source, get);

	source->wrong = what ? what : read_status(source, body, len);
	if (--source->top->waiting == 0)
		look_over(source->top);
}

static void look(struct top *top)
{
	if (top->waiting > 0)
		return;
	for (int i = 0; i < top->source_count; i++) {
		struct source *source = &top->sources[i];

		const char *wrong = http_get_begin(&source->get, &source->at, source->host,
						   top->settings ? "/settings" : "/status",
						   TIMEOUT_NS);

		/* The error stays until there is an answer. */
		if (wrong)
			source->wrong = wrong;
		else
			top->waiting++;
	}
	if (top->waiting == 0)
		look_over(top);
}

static void look_again(struct spoke_alarm *alarm)
{
	look(spoke_container_of(alarm, struct top, next));
}

/* --- the terminal */

static void ended(struct spoke_signal *signal)
{
	spoke_engine_stop(signal->engine);
}

static void resized(struct spoke_signal *signal)
{
	draw(spoke_container_of(signal, struct top, resized));
}

/* Ctrl-Z: restore the screen for the shell. */
static void stopped(struct spoke_signal *signal)
{
	struct top *top = spoke_container_of(signal, struct top, stopped);

	screen_suspend(&top->screen);
	draw(top);
}

static void pressed(struct spoke_watch *watch, unsigned io)
{
	struct top *top = spoke_container_of(watch, struct top, keys);
	int key = screen_key();

	(void)io;
	if (key == 'q' || key == 'Q' || key == 0) {
		spoke_engine_watch(top->engine, watch, 0);
		spoke_engine_stop(top->engine);
		return;
	}
	if (key == '\t')
		top->shown = (top->shown + 1) % top->source_count;
	draw(top);
}

static int watch_signals(struct top *top)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	int error = SPOKE_OK;

	for (int i = 0; i < 4 && !error; i++)
		error = spoke_signal_watch(top->engine, &top->signals[i], numbers[i], ended);
	if (!error && top->screen.live)
		error = spoke_signal_watch(top->engine, &top->resized, SIGWINCH, resized);
	if (!error && top->screen.live)
		error = spoke_signal_watch(top->engine, &top->stopped, SIGTSTP, stopped);
	return error;
}

/* --- the verb */

static bool add_source(struct top *top, const char *name)
{
	struct source *source = &top->sources[top->source_count];
	struct spoke_address found[PLACE_MAX];

	if (place_parse(top->env, name, found) == 0)
		return false;
	source->top = top;
	source->name = shown_of(name);
	source->at = found[0];
	source->get.engine = top->engine;
	source->get.env = top->env;
	source->get.done = answered;
	top->env->net->print(top->env->ctx, &source->at, source->host, sizeof(source->host));
	if (strncmp(source->host, "unix:", 5) == 0)
		(void)snprintf(source->host, sizeof(source->host), "localhost");
	spoke_builder_init(&source->values, top->env, NULL);
	top->source_count++;
	return true;
}

static int run(struct top *top)
{
	int error;

	screen_begin(&top->screen, terminal_out() && !top->once);
	error = watch_signals(top);
	if (!error && top->screen.live && screen_keys() >= 0) {
		top->keys.ready = pressed;
		top->keys.fd = screen_keys();
		spoke_engine_watch(top->engine, &top->keys, SPOKE_IO_READ);
	}
	if (!error)
		error = spoke_alarm_every(top->engine, &top->next, top->interval_ns, look_again);
	if (!error) {
		look(top);
		error = top->over ? SPOKE_OK : spoke_engine_run(top->engine);
	}
	if (top->keys.ready)
		spoke_engine_watch(top->engine, &top->keys, 0);
	for (int i = 0; i < top->source_count; i++)
		http_get_end(&top->sources[i].get);
	screen_end(&top->screen);
	return error ? ending_say(VERB_REMOTE, "top", "%s", spoke_strerror(error)) : VERB_OK;
}

/* Returns the exit code for the last update. */
static int last_end(const struct top *top)
{
	int end = VERB_OK;

	for (int i = 0; i < top->source_count; i++) {
		const struct source *source = &top->sources[i];

		if (source->wrong)
			end = source->get.timed_out ? VERB_TIMEOUT : VERB_UNREACHABLE;
	}
	return end;
}

static int look_at(struct top *top, const struct options *options)
{
	int error = ending_quiet_engine(&(struct spoke_engine_options){ 0 }, &top->engine);
	int end;

	if (error)
		return ending_say(VERB_REMOTE, "top", "%s", spoke_strerror(error));
	top->env = spoke_host_env();
	for (int i = 0; i < options->operand_count; i++) {
		if (strncmp(options->operands[i], "https://", 8) == 0) {
			return ending_say(VERB_USAGE, "top",
					  "%s: pages over TLS cannot be read; serve one without it "
					  "on loopback",
					  shown_of(options->operands[i]).text);
		}
		if (!add_source(top, options->operands[i]))
			return ending_say(VERB_USAGE, "top", "%s: not an address, or unknown host",
					  shown_of(options->operands[i]).text);
	}
	end = run(top);
	return end ? end : last_end(top);
}

int top_verb(int argc, char **argv)
{
	static struct top top;
	struct options options = options_of(&usage, argc, argv);
	bool good = true;
	int row;
	int end;

	top.interval_ns = SECOND;
	while (good && (row = options_next(&options)) >= 0) {
		top.once |= row == ONCE || row == SETTINGS;
		top.settings |= row == SETTINGS;
		if (row == INTERVAL)
			good = options_duration(&options, 0, &top.interval_ns);
		else if (row == COUNT)
			good = options_count(&options, 1, 0, &top.looks_max);
	}
	if (!good)
		return VERB_USAGE;
	if (row == OPTIONS_STOP)
		return options.end;
	if (options.operand_count < 1 || options.operand_count > SOURCES_MAX)
		return options_lacking(&options, "expected 1 to 16 addresses");
	if (top.interval_ns < INTERVAL_MIN_NS)
		top.interval_ns = INTERVAL_MIN_NS;
	end = look_at(&top, &options);
	for (int i = 0; i < top.source_count; i++)
		spoke_builder_fini(&top.sources[i].values);
	spoke_engine_free(top.engine);
	return end;
}
