/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws frames on the alternate screen of a terminal, with lines cut to its width and height. The
 * normal screen is restored at the end, also after a signal. Without a terminal, lines are printed
 * unchanged.
 */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include "examples/spoke/terminal.h"

#include <stdbool.h>
#include <stddef.h>

struct screen {
	bool live;      /* on the alternate screen of the terminal */
	unsigned width; /* of the current frame */
	unsigned height;
	unsigned row;    /* lines begun */
	unsigned column; /* in the current line */
	char *text;      /* the frame */
	size_t len;
	size_t room;
};

/* Switches to the alternate screen and to unbuffered keys, if `live`. */
void screen_begin(struct screen *screen, bool live);

/* Restores the terminal. */
void screen_end(struct screen *screen);

/* Restores the terminal while the process is stopped, until SIGCONT. */
void screen_suspend(struct screen *screen);

/* Starts a frame: collects lines ... */
void screen_clear(struct screen *screen);

/* ... of printable text, each cut to the width; a newline ends a line ... */
__attribute__((format(printf, 2, 3))) void screen_print(struct screen *screen, const char *format,
							...);
void screen_colour(struct screen *screen, enum terminal_colour colour);

/* ... and draws the frame. */
void screen_show(struct screen *screen);

/* Is there room for more lines? */
bool screen_full(const struct screen *screen);

/* Returns the descriptor that is readable when a key is pressed; -1: no keyboard. */
int screen_keys(void);

/* Returns the next key; 0: none. */
int screen_key(void);

#endif
