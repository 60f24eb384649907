/* SPDX-License-Identifier: Apache-2.0 */
/* Draws frames on the alternate screen of a terminal. */
#include "examples/spoke/screen.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define LINE_TEXT 1024u
#define ROOM_MAX (1u << 20)

static struct termios before;
static bool changed;

static void take_keys(void)
{
	struct termios keys;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return;
	keys = before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 0;
	keys.c_cc[VTIME] = 0;
	changed = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

void screen_begin(struct screen *screen, bool live)
{
	*screen = (struct screen){ .live = live };
	if (!live)
		return;
	take_keys();
	(void)fputs("\033[?1049h\033[?25l", stdout);
	(void)fflush(stdout);
}

void screen_end(struct screen *screen)
{
	if (screen->live) {
		(void)fputs("\033[0m\033[?25h\033[?1049l", stdout);
		(void)fflush(stdout);
	}
	if (changed)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	changed = false;
	screen->live = false;
	free(screen->text);
	screen->text = NULL;
}

void screen_suspend(struct screen *screen)
{
	screen_end(screen);
	(void)kill(getpid(), SIGSTOP);
	screen_begin(screen, true);
}

/* Text that does not fit is dropped: a frame has a few KiB. */
static void add(struct screen *screen, const char *bytes, size_t len)
{
	if (screen->len + len >= screen->room) {
		size_t room = screen->room * 2 + len + LINE_TEXT;
		char *text = room <= ROOM_MAX ? realloc(screen->text, room) : NULL;

		if (!text)
			return;
		screen->text = text;
		screen->room = room;
	}
	memcpy(screen->text + screen->len, bytes, len);
	screen->len += len;
}

static void add_text(struct screen *screen, const char *text)
{
	add(screen, text, strlen(text));
}

void screen_clear(struct screen *screen)
{
	screen->width = screen->live ? terminal_width() : LINE_TEXT;
	screen->height = screen->live ? terminal_height() : ~0u;
	screen->row = 0;
	screen->column = 0;
	screen->len = 0;
	if (screen->live)
		add_text(screen, "\033[H\033[K");
}

bool screen_full(const struct screen *screen)
{
	return screen->row >= screen->height;
}

static void end_line(struct screen *screen)
{
	screen->row++;
	screen->column = 0;
	/* A newline in the last row would scroll. Lines are erased before they are written, because
	 * after the last column the cursor stays on that column. */
	if (!screen_full(screen))
		add_text(screen, screen->live ? "\033[0m\r\n\033[K" : "\n");
}

void screen_print(struct screen *screen, const char *format, ...)
{
	char line[LINE_TEXT];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (const char *at = line; *at; at++) {
		if (screen_full(screen))
			return;
		if (*at == '\n')
			end_line(screen);
		else if (screen->column++ < screen->width)
			add(screen, at, 1);
	}
}

void screen_colour(struct screen *screen, enum terminal_colour colour)
{
	if (screen->live && !screen_full(screen))
		add_text(screen, terminal_colour(colour));
}

void screen_show(struct screen *screen)
{
	if (screen->live)
		add_text(screen, screen_full(screen) ? "\033[0m" : "\033[0m\033[J");
	(void)fwrite(screen->text, 1, screen->len, stdout);
}

int screen_keys(void)
{
	return changed ? STDIN_FILENO : -1;
}

int screen_key(void)
{
	unsigned char key;

	return changed && read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}
