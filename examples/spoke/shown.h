/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares texts of the command line for messages: URLs and addresses without their secrets. Every
 * verb prints URLs through this file only. */
#ifndef COMMAND_SHOWN_H
#define COMMAND_SHOWN_H

#define SHOWN_MAX 512u

struct shown {
	char text[SHOWN_MAX];
};

/*
 * Returns a URL or address without parameters, and with "***" in place of a password. A text that
 * is no valid URL also loses all that could be a part of one: the user, and whatever follows "?",
 * "#", "&" or ";"; also the host, if the last "@" could stand in a parameter. Other texts, e.g.
 * "127.0.0.1:20880", are unchanged, except that a long one is cut. The text of the result may be
 * used in the expression that calls: printf("%s", shown_of(url).text).
 */
struct shown shown_of(const char *place);

#endif
