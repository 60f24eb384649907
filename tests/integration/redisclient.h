/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small client of Redis that waits for each answer: the "stranger" of tests, which looks at keys
 * and changes them, and the connection of a peer. It shares no code with the product. Replies
 * become text, so that a test compares them with one line:
 *
 *     nil "(nil)", a number "42", a text "as it is", an error "-ERR text", an array "[1 two
 * (nil)]".
 */
#ifndef TESTS_INTEGRATION_REDISCLIENT_H
#define TESTS_INTEGRATION_REDISCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDISCLIENT_TEXT 65536u

struct redisclient {
	int fd; /* -1: not connected */
	char bytes[REDISCLIENT_TEXT];
	size_t len; /* bytes that were read and not used */
	size_t at;
	char text[REDISCLIENT_TEXT]; /* the last reply */
};

/* Connects to a unix socket; the test fails if there is no server. */
void redisclient_open(struct redisclient *client, const char *path);
void redisclient_close(struct redisclient *client);

/* Returns whether a server at the socket answers a PING, even with an error. */
bool redisclient_answers(const char *path);

/* Sends one command; the last word is NULL. */
void redisclient_send(struct redisclient *client, const char *const *words);

/* Waits for a reply or a message. The text is valid until the next one. */
const char *redisclient_read(struct redisclient *client);

/* Returns whether a reply or a message has come. */
bool redisclient_has_one(struct redisclient *client);

/* Sends a command and waits for its reply. */
const char *redisclient_ask(struct redisclient *client, const char *const *words);

#define REDIS_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* --- the stranger: one client of the test program, which connects when it is first used */

/* Chooses the server of the stranger; ends a connection to another one. */
void stranger_goes_to(const char *path);
void stranger_leaves(void);

/* Sends a command of the words given, and returns the reply. */
#define stranger(...) stranger_asks(REDIS_WORDS(__VA_ARGS__))
const char *stranger_asks(const char *const *words);

/* Goes to a server, sends the command, and returns the reply; "" if there is no server, or it has
 * closed the connection, as a server does that is promoted. */
const char *stranger_tries(const char *path, const char *const *words);

/* Returns a reply that must be a number. */
#define stranger_number(...) stranger_counts(REDIS_WORDS(__VA_ARGS__))
int64_t stranger_counts(const char *const *words);

#endif
