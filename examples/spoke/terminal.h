/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is shown on a terminal and nowhere else: colours, and a line of progress. Into pipes and
 * files, with --plain, with NO_COLOR (colours) or TERM=dumb goes plain, stable text.
 */
#ifndef COMMAND_TERMINAL_H
#define COMMAND_TERMINAL_H

#include <stdbool.h>

/* As --plain: from now on nothing is taken to be a terminal. */
void terminal_plain(void);

/* Is stdout, is stderr read by a person? */
bool terminal_out(void);
bool terminal_err(void);

/* Columns of the terminal at stdout, else at stderr; 80 where there is none. */
unsigned terminal_width(void);

/* Rows of it; 24 where there is none. */
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

/* What switches stdout to it; "" where nothing is coloured. */
const char *terminal_colour(enum terminal_colour colour);

/* Writes a line on stderr in the place of the last one, cut to the width; nothing but on a
 * terminal. */
__attribute__((format(printf, 1, 2))) void terminal_progress(const char *format, ...);

/* Takes the line away. */
void terminal_progress_end(void);

#endif
