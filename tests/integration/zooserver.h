/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZooKeeper server for tests, from the Debian package, on the loopback interface: a process with
 * a temporary directory, killed at the end in all cases.
 */
#ifndef TESTS_INTEGRATION_ZOOSERVER_H
#define TESTS_INTEGRATION_ZOOSERVER_H

#include <stdbool.h>
#include <stdint.h>

/* Returns 0 if the server is installed, else the exit status of tests that are skipped. */
int zooserver_absent(void);

/* Starts a server with an empty directory and a free port. */
void zooserver_make(void);

/* Returns the server's port, which is kept after a kill. */
uint16_t zooserver_port(void);

/* Stops the server with SIGSTOP: it answers nothing any more. It must be killed next. */
void zooserver_freeze(void);

/* Kills the server without warning; restarts it with its data, and waits until it answers. */
void zooserver_kill(void);
void zooserver_revive(void);

/* Restarts the server if a failed test has left it killed. */
void zooserver_rouse(void);

/* Kills the server and deletes its data. */
void zooserver_forget(void);

/* Waits until the server answers. */
void zooserver_wait(void);

/* Kills the server and removes its directory. */
void zooserver_unmake(void);

#endif
