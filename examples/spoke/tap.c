/* SPDX-License-Identifier: Apache-2.0 */
/* spoke tap: relays connections and prints the messages on them. */
#include "examples/spoke/ending.h"
#include "examples/spoke/escape.h"
#include "examples/spoke/json.h"
#include "examples/spoke/options.h"
#include "examples/spoke/relay.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/tap_line.h"
#include "examples/spoke/terminal.h"

#include <spoke/frames.h>
#include <spoke/host.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 1024u /* remembered per direction, by id; a power of two */
#define METHOD_TEXT 96u
#define ADDRESS_TEXT 160u

enum {
	AS_JSON,
	QUIET,
	RAW,
	FULL
};

static const struct option_row rows[] = {
	[AS_JSON] = { "json", 0, NULL, "print one line of JSON per message" },
	[QUIET] = { "quiet", 'q', NULL, "print only errors and the final counts" },
	[RAW] = { "raw", 0, NULL, "print the bytes, too" },
	[FULL] = { "full", 0, NULL, "print up to 64 KiB of a value instead of 200 characters" },
};

static const struct usage usage = {
	"tap",
	"LISTEN TARGET",
	"Relays each connection to LISTEN to TARGET and prints one line per message to the target\n"
	"(->) or from it (<-). Bytes are forwarded unchanged; a stream of an unknown protocol is\n"
	"forwarded undecoded. Tokens, signatures and passwords sent with requests appear as ***, "
	"in bytes\n"
	"as asterisks. Bytes of an undecoded stream may still show one.",
	rows,
	sizeof(rows) / sizeof(rows[0]),
	"  spoke tap 127.0.0.1:20881 127.0.0.1:20880\n"
	"  spoke tap :0 unix:/run/echo --json --raw",
};

/* A request seen on the connection. */
struct asked {
	bool waits; /* its reply has not been seen */
	uint64_t id;
	uint64_t at_ns;
	char method[METHOD_TEXT];
};

/* The decoder of one direction. */
struct ear {
	struct spoke_frames *frames; /* NULL: undecoded */
	struct asked *asked;         /* REQUESTS of them; allocated for the first request */
};

/* The decoders of a connection. */
struct ears {
	struct ear of[2]; /* by enum relay_way */
};

struct tap {
	struct relay relay;
	struct tap_style style;
	struct spoke_signal interrupt;
	struct spoke_signal terminate;
	uint64_t kinds[SPOKE_FRAME_CANCEL + 1];
	uint64_t wrong;
	uint64_t broken;
	uint64_t bytes;
};

static struct tap_place place_of(const struct relay_pair *pair, enum relay_way way)
{
	const struct spoke_env *env = pair->relay->env;

	return (struct tap_place){
		.wall_ns = env->wall(env->ctx),
		.link = pair->number,
		.to_target = way == RELAY_TO,
	};
}

/* --- requests and their replies */

static void name_method(const struct spoke_frame *frame, char *text)
{
	size_t len = 0;

	if (frame->service.len > 0) {
		len = escape_text(frame->service, text, METHOD_TEXT / 2);
		text[len++] = '.';
	}
	(void)escape_text(frame->method, text + len, METHOD_TEXT - len);
}

static void remember(struct ear *ear, const struct spoke_frame *frame, uint64_t now_ns)
{
	struct asked *asked;

	if (!ear->asked)
		ear->asked = calloc(REQUESTS, sizeof(*ear->asked));
	if (!ear->asked)
		return;
	asked = &ear->asked[frame->id % REQUESTS];
	asked->waits = true;
	asked->id = frame->id;
	asked->at_ns = now_ns;
	name_method(frame, asked->method);
}

static struct tap_request recall(const struct ear *ear, const struct spoke_frame *frame,
				 uint64_t now_ns)
{
	struct tap_request request = { false, 0, "" };
	struct asked *asked = ear->asked ? &ear->asked[frame->id % REQUESTS] : NULL;

	if (asked && asked->waits && asked->id == frame->id) {
		asked->waits = false;
		request.known = true;
		request.took_ns = now_ns - asked->at_ns;
		request.method = asked->method;
	}
	return request;
}

/* --- callbacks of the relay */

static void on_frame(struct tap *tap, struct relay_pair *pair, enum relay_way way,
		     const struct spoke_frame *frame)
{
	struct ears *ears = pair->looker;
	const struct spoke_env *env = pair->relay->env;
	struct tap_place place = place_of(pair, way);
	struct tap_request request = { false, 0, "" };
	uint64_t now_ns = env->now(env->ctx);

	tap->kinds[frame->kind]++;
	tap->wrong += frame->error != SPOKE_OK;
	if (frame->kind == SPOKE_FRAME_REQUEST)
		remember(&ears->of[way], frame, now_ns);
	else if (frame->kind == SPOKE_FRAME_REPLY)
		request = recall(&ears->of[way == RELAY_TO ? RELAY_FROM : RELAY_TO], frame, now_ns);
	tap_line_frame(&tap->style, &place, frame, &request);
}

/* Prints decoded messages. An undecodable stream is still forwarded. */
static void on_bytes(struct relay_pair *pair, enum relay_way way, const void *bytes, size_t len)
{
	struct tap *tap = pair->relay->arg;
	struct ears *ears = pair->looker;
	struct ear *ear = &ears->of[way];
	struct tap_place place = place_of(pair, way);
	struct spoke_frame frame;
	int result;

	tap->bytes += len;
	if (!ear->frames) {
		tap_line_bytes(&tap->style, &place, (struct spoke_span){ bytes, len });
		return;
	}
	result = spoke_frames_feed(ear->frames, bytes, len);
	while (!result) {
		result = spoke_frames_next(ear->frames, &frame);
		if (!result)
			on_frame(tap, pair, way, &frame);
	}
	if (result != SPOKE_ETRUNCATED) {
		tap->broken++;
		tap_line_way(&tap->style, &place, "undecoded from here", spoke_strerror(result));
		tap_line_bytes(&tap->style, &place, (struct spoke_span){ bytes, len });
		spoke_frames_free(ear->frames);
		ear->frames = NULL;
	}
	if (!ending_show())
		spoke_engine_stop(pair->relay->engine);
}

static bool on_opened(struct relay_pair *pair, const struct spoke_address *peer)
{
	struct tap *tap = pair->relay->arg;
	const struct spoke_env *env = pair->relay->env;
	struct tap_place place = place_of(pair, RELAY_TO);
	struct ears *ears = calloc(1, sizeof(*ears));
	char text[ADDRESS_TEXT] = "from ";

	pair->looker = ears;
	if (!ears || spoke_frames_new(env, &ears->of[0].frames) ||
	    spoke_frames_new(env, &ears->of[1].frames))
		return false;
	spoke_frames_pair(ears->of[0].frames, ears->of[1].frames);
	env->net->print(env->ctx, peer, text + 5, sizeof(text) - 5);
	if (!tap->style.quiet)
		tap_line_event(&tap->style, &place, "opened", text);
	return true;
}

static void on_ended(struct relay_pair *pair, enum relay_way way)
{
	struct tap *tap = pair->relay->arg;
	struct ears *ears = pair->looker;
	struct tap_place place = place_of(pair, way);
	size_t waiting = ears->of[way].frames ? spoke_frames_waiting(ears->of[way].frames) : 0;
	char text[64];

	(void)snprintf(text, sizeof(text), "inside a message, after %zu B of it", waiting);
	if (!tap->style.quiet || waiting > 0)
		tap_line_way(&tap->style, &place, "ended", waiting ? text : NULL);
}

static void on_closed(struct relay_pair *pair)
{
	struct tap *tap = pair->relay->arg;
	struct ears *ears = pair->looker;
	struct tap_place place = place_of(pair, RELAY_TO);

	if (!tap->style.quiet || pair->error)
		tap_line_event(&tap->style, &place, "closed",
			       pair->error ? place_error(pair->error) : NULL);
	for (int i = 0; i < 2 && ears; i++) {
		spoke_frames_free(ears->of[i].frames);
		free(ears->of[i].asked);
	}
	free(ears);
	(void)ending_show();
}

static void on_refused(struct relay *relay, int error)
{
	(void)relay;
	(void)ending_say(VERB_REMOTE, "tap", "cannot accept connections for now: %s",
			 place_error(error));
}

static const struct relay_looks looks = {
	.opened = on_opened,
	.bytes = on_bytes,
	.ended = on_ended,
	.closed = on_closed,
	.refused = on_refused,
};

/* --- the verb */

static void print_sums(const struct tap *tap)
{
	if (tap->style.json)
		return;
	printf("%lu connections, %" PRIu64 " B:", tap->relay.made, tap->bytes);
	for (int kind = 0; kind <= SPOKE_FRAME_CANCEL; kind++)
		if (tap->kinds[kind] > 0)
			printf(" %" PRIu64 " %s,", tap->kinds[kind],
			       spoke_frame_kind_name((enum spoke_frame_kind)kind));
	printf(" %" PRIu64 " with an error, %" PRIu64 " streams undecoded\n", tap->wrong,
	       tap->broken);
}

static void interrupted(struct spoke_signal *signal)
{
	spoke_engine_stop(spoke_container_of(signal, struct tap, interrupt)->relay.engine);
}

static void terminated(struct spoke_signal *signal)
{
	spoke_engine_stop(spoke_container_of(signal, struct tap, terminate)->relay.engine);
}

/* Returns whether the address could be printed. */
static bool print_listening(const struct tap *tap, const char *target)
{
	const struct spoke_env *env = tap->relay.env;
	struct spoke_address address;
	char text[ADDRESS_TEXT] = "?";
	struct shown at;

	if (env->net->local(env->ctx, tap->relay.listener.fd, &address) == 0)
		env->net->print(env->ctx, &address, text, sizeof(text));
	at = shown_of(text);
	if (tap->style.json) {
		printf("{\"kind\":\"listening\",\"at\":");
		json_print_text(at.text, strlen(at.text), stdout);
		printf("}\n");
	} else {
		printf("listening at %s, forwarding to %s\n", at.text, shown_of(target).text);
	}
	return ending_show();
}

static int run(struct tap *tap, const char *listen, const char *target)
{
	struct spoke_address at[PLACE_MAX];
	struct relay *relay = &tap->relay;
	int error;

	relay->env = spoke_host_env();
	relay->looks = &looks;
	relay->arg = tap;
	if (place_parse(relay->env, listen, at) == 0)
		return ending_say(VERB_USAGE, "tap", "%s: not an address to listen on",
				  shown_of(listen).text);
	relay->target_count = place_parse(relay->env, target, relay->targets);
	if (relay->target_count == 0)
		return ending_say(VERB_USAGE, "tap", "%s: not an address, or unknown host",
				  shown_of(target).text);
	error = ending_quiet_engine(&(struct spoke_engine_options){ 0 }, &relay->engine);
	if (error)
		return ending_say(VERB_REMOTE, "tap", "%s", spoke_strerror(error));
	error = relay_begin(relay, at);
	if (error)
		return ending_say(VERB_REMOTE, "tap", "cannot listen at %s: %s",
				  shown_of(listen).text, place_error(error));
	error = spoke_signal_watch(relay->engine, &tap->interrupt, SIGINT, interrupted);
	if (!error)
		error = spoke_signal_watch(relay->engine, &tap->terminate, SIGTERM, terminated);
	if (!error && print_listening(tap, target))
		error = spoke_engine_run(relay->engine);
	relay_end(relay);
	print_sums(tap);
	return error ? ending_say(VERB_REMOTE, "tap", "%s", spoke_strerror(error)) : VERB_OK;
}

int tap_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	struct tap tap = { 0 };
	int row;
	int end;

	while ((row = options_next(&options)) >= 0) {
		tap.style.json |= row == AS_JSON;
		tap.style.quiet |= row == QUIET;
		tap.style.raw |= row == RAW;
		tap.style.full |= row == FULL;
	}
	if (row == OPTIONS_STOP)
		return options.end;
	if (options.operand_count != 2)
		return options_lacking(&options,
				       "expected exactly two operands, LISTEN and TARGET");
	end = run(&tap, options.operands[0], options.operands[1]);
	spoke_engine_free(tap.relay.engine);
	return end;
}
