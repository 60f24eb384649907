/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between the code under test and a Redis server, both at unix sockets. It passes all bytes
 * on until a trap tells it otherwise: it holds bytes back, or cuts the connection before or after
 * the server has run a command. It runs in the test program: the test calls redisrelay_pump() in
 * each turn. So the order of events is the test's, not the machine's.
 */
#ifndef TESTS_INTEGRATION_REDISRELAY_H
#define TESTS_INTEGRATION_REDISRELAY_H

#include <stdbool.h>
#include <stddef.h>

/* What becomes of the next command whose bytes contain a text. */
enum redisrelay_trap {
	REDISRELAY_NONE,
	REDISRELAY_HOLD_COMMAND, /* it is held back, and all after it */
	REDISRELAY_CUT_BEFORE,   /* the connection is cut; the server never sees it */
	REDISRELAY_CUT_AFTER, /* the server runs it; the reply is dropped and the connection cut */
};

/* Opens the relay to the server at a socket. */
void redisrelay_open(const char *server);
void redisrelay_close(void);

/* Returns the path of the relay's own socket. */
const char *redisrelay_path(void);

/* Passes on what has come, and accepts connections. Does not wait, except for the reply to a
 * command in the trap CUT_AFTER. */
void redisrelay_pump(void);

/* Sets the trap; it springs once. `text` must live until then. */
void redisrelay_set(enum redisrelay_trap trap, const char *text);
bool redisrelay_has_sprung(void);

/* Passes on all bytes that are held back. */
void redisrelay_let_go(void);

/* Cuts the client's end of connections whose bytes are held back; the server's end stays open, and
 * redisrelay_let_go() still passes the commands to it, like a network that was slow. */
void redisrelay_leave_ghosts(void);

/* Returns the number of connections that were accepted so far. */
unsigned redisrelay_accepted(void);

/* Returns how often a text occurred in the clients' bytes since the last redisrelay_forget(). */
unsigned redisrelay_seen(const char *text);
void redisrelay_forget(void);

#endif
