/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours and a line of progress, on a terminal only. Pipes, files, --plain, NO_COLOR (for colours)
 * and TERM=dumb get plain, stable text.
 */
#ifndef COMMAND_TERMINAL_H
#define COMMAND_TERMINAL_H

#include <stdbool.h>

/* Implements --plain: stops using terminal features. */
void terminal_plain(void);

/* Is stdout or stderr a terminal in use? */
bool terminal_out(void);
bool terminal_err(void);

/* Returns the columns of the terminal on stdout, else on stderr; 80 without a terminal. */
unsigned terminal_width(void);

/* Returns its rows; 24 without a terminal. */
unsigned terminal_height(void);

enum terminal_colour {
	TERMINAL_NORMAL,
	TERMINAL_BOLD,
	TERMINAL_DIM,
	TERMINAL_RED,
	TERMINAL_GREEN,
	TERMINAL_YELLOW,
	TERMINAL_BLUE,
};

/* Returns the escape sequence for stdout; "" without colours. */
const char *terminal_colour(enum terminal_colour colour);

/* Replaces the line of progress on stderr, cut to the width; only on a terminal. */
__attribute__((format(printf, 1, 2))) void terminal_progress(const char *format, ...);

/* Erases the line of progress. */
void terminal_progress_end(void);

#endif
