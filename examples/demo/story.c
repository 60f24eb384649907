/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the headlines and events of the demo, sorted by time. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINES 128
#define TEXT 256
#define HELD_NS UINT64_C(120000000)

static uint64_t begun_ns;
static bool colours;
static bool broken;

/* Lines not printed yet, sorted by time. */
static struct line {
	uint64_t at_ns;
	const char *who;
	enum spoke_event_user user;
	bool bold;
	char text[TEXT];
} lines[LINES];
static unsigned line_count;

uint64_t story_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void story_begin(bool plain)
{
	const char *terminal = getenv("TERM");

	begun_ns = story_now();
	colours = !plain && isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL && terminal &&
		  strcmp(terminal, "dumb") != 0;
}

bool story_broken(void)
{
	return broken;
}

static void flush(void)
{
	broken |= fflush(stdout) != 0 || ferror(stdout) != 0;
}

static const char *bold(void)
{
	return colours ? "\033[1m" : "";
}

static const char *dim(void)
{
	return colours ? "\033[2m" : "";
}

static const char *calm(void)
{
	return colours ? "\033[0m" : "";
}

/* Colours of the three users of the wheel: yellow, magenta, cyan, green. */
static const char *colour_of(enum spoke_event_user user)
{
	if (!colours)
		return "";
	switch (user) {
	case SPOKE_EVENT_OF_TIMEOUT:
		return "\033[33m";
	case SPOKE_EVENT_OF_RETRY:
		return "\033[35m";
	case SPOKE_EVENT_OF_HEARTBEAT:
		return "\033[36m";
	case SPOKE_EVENT_OF_LEASE:
		return "\033[32m";
	case SPOKE_EVENT_OF_NONE:
		break;
	}
	return "";
}

static void print_line(const struct line *line)
{
	uint64_t ms = (line->at_ns > begun_ns ? line->at_ns - begun_ns : 0) / 1000000;
	const char *name = spoke_event_user_name(line->user);

	printf("%s%4" PRIu64 ".%03u%s  %s%-11s  %s%-9s%s  %s%s\n", dim(), ms / 1000,
	       (unsigned)(ms % 1000), calm(), line->bold ? bold() : "", line->who,
	       colour_of(line->user), name ? name : "", line->bold ? "" : calm(), line->text,
	       calm());
}

void story_show(bool all)
{
	uint64_t now_ns = story_now();
	unsigned shown = 0;

	while (shown < line_count && (all || lines[shown].at_ns + HELD_NS <= now_ns))
		print_line(&lines[shown++]);
	if (shown == 0)
		return;
	line_count -= shown;
	memmove(lines, lines + shown, line_count * sizeof(lines[0]));
	flush();
}

/* Inserts a line, sorted by time. */
static struct line *insert(uint64_t at_ns)
{
	unsigned at;

	if (line_count == LINES)
		story_show(true);
	at = line_count++;
	for (; at > 0 && lines[at - 1].at_ns > at_ns; at--)
		lines[at] = lines[at - 1];
	lines[at] = (struct line){ .at_ns = at_ns };
	return &lines[at];
}

void story_event(uint64_t at_ns, const char *who, enum spoke_event_user user, const char *text)
{
	struct line *line = insert(at_ns);

	line->who = who;
	line->user = user;
	(void)snprintf(line->text, sizeof(line->text), "%s", text);
}

void story_did(const char *format, ...)
{
	struct line *line = insert(story_now());
	va_list args;

	line->who = "driver";
	line->bold = true;
	va_start(args, format);
	(void)vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
}

void story_head(const char *format, ...)
{
	va_list args;

	story_show(true);
	printf("\n%s", bold());
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	printf("%s\n", calm());
	flush();
}

void story_print(const char *format, ...)
{
	va_list args;

	story_show(true);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	printf("\n");
	flush();
}
