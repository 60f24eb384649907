/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZooKeeper server of the test's own on the loopback, from the Debian package: a process with a
 * folder that is thrown away, killed at the end, whatever happens.
 */
#ifndef TESTS_INTEGRATION_ZOOSERVER_H
#define TESTS_INTEGRATION_ZOOSERVER_H

#include <stdbool.h>
#include <stdint.h>

/* Can a server run on this machine? Else the test is skipped. */
bool zooserver_there_is(void);

/* Starts one with an empty folder, at a port of its own. */
void zooserver_make(void);

/* The port it listens at, and shall again after a kill. */
uint16_t zooserver_port(void);

/* Stops the server as SIGSTOP does: it answers nothing from here on. Its kill is next. */
void zooserver_freeze(void);

/* Kills the server without a warning, and starts it again with the data it had written. */
void zooserver_kill(void);
void zooserver_revive(void);

/* Revived, if a test that failed has left it killed. */
void zooserver_rouse(void);

/* Killed, it has lost all that it had written. */
void zooserver_forget(void);

/* Waits until it serves. */
void zooserver_wait(void);

/* Killed, and its folder removed. */
void zooserver_unmake(void);

#endif
