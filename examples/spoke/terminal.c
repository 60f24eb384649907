/* SPDX-License-Identifier: Apache-2.0 */
/* Colours, size and progress line of the terminal. */
#include "examples/spoke/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512u

static bool plain;
static bool progress_shown;

void terminal_plain(void)
{
	plain = true;
}

static bool is_terminal(int fd)
{
	const char *term = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): one thread */

	return !plain && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool terminal_out(void)
{
	return is_terminal(STDOUT_FILENO);
}

bool terminal_err(void)
{
	return is_terminal(STDERR_FILENO);
}

static void terminal_size(struct winsize *ret)
{
	*ret = (struct winsize){ 0 };
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, ret) < 0 || !ret->ws_col)
		(void)ioctl(STDERR_FILENO, TIOCGWINSZ, ret);
	if (!ret->ws_col)
		ret->ws_col = 80;
	if (!ret->ws_row)
		ret->ws_row = 24;
}

unsigned terminal_width(void)
{
	struct winsize size;

	terminal_size(&size);
	return size.ws_col;
}

unsigned terminal_height(void)
{
	struct winsize size;

	terminal_size(&size);
	return size.ws_row;
}

const char *terminal_colour(enum terminal_colour colour)
{
	static const char *const codes[] = {
		[TERMINAL_NORMAL] = "\033[0m", [TERMINAL_BOLD] = "\033[1m",
		[TERMINAL_DIM] = "\033[2m",    [TERMINAL_RED] = "\033[31m",
		[TERMINAL_GREEN] = "\033[32m", [TERMINAL_YELLOW] = "\033[33m",
		[TERMINAL_BLUE] = "\033[34m",
	};
	const char *never = getenv("NO_COLOR"); /* NOLINT(concurrency-mt-unsafe): one thread */

	return (never && *never) || !terminal_out() ? "" : codes[colour];
}

void terminal_progress(const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	unsigned width = terminal_width();
	va_list args;

	if (!terminal_err())
		return;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	(void)fflush(stdout);
	(void)fprintf(stderr, "\r\033[K%.*s", (int)(width ? width - 1 : 0), line);
	(void)fflush(stderr);
	progress_shown = true;
}

void terminal_progress_end(void)
{
	if (!progress_shown)
		return;
	(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
	progress_shown = false;
}
