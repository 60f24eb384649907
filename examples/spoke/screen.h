/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal that is drawn on as a whole: lines cut to its width and height, in a screen of its own
 * that goes away at the end, however that comes about. Where there is no terminal, lines are
 * printed as they are.
 */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include "examples/spoke/terminal.h"

#include <stdbool.h>
#include <stddef.h>

struct screen {
	bool live;      /* on the other screen of the terminal */
	unsigned width; /* of the frame that is drawn */
	unsigned height;
	unsigned row;    /* lines begun */
	unsigned column; /* of the present line */
	char *text;      /* the frame */
	size_t len;
	size_t room;
};

/* Goes to the other screen if `live`, and takes keys one by one. */
void screen_begin(struct screen *screen, bool live);

/* Back to how it was. */
void screen_end(struct screen *screen);

/* Gives the screen back while the process is stopped, until it is told to go on. */
void screen_suspend(struct screen *screen);

/* A frame: from here on lines are gathered ... */
void screen_clear(struct screen *screen);

/* ... printable text, cut at the end of the line; a newline ends it ... */
__attribute__((format(printf, 2, 3))) void screen_print(struct screen *screen, const char *format,
							...);
void screen_colour(struct screen *screen, enum terminal_colour colour);

/* ... and shown at once. */
void screen_show(struct screen *screen);

/* Is there room for more lines? */
bool screen_full(const struct screen *screen);

/* The descriptor that is readable when a key is pressed; -1: there are no keys. */
int screen_keys(void);

/* The next key that was pressed; 0: none. */
int screen_key(void);

#endif
