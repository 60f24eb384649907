/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis servers for tests, from the Debian package redis-tools: processes with a temporary
 * directory each, which are killed at the end in all cases. A server listens at a unix socket;
 * those of a cluster, and sentinels, also at a port of the loopback interface. It saves nothing, so
 * it is empty after a restart.
 */
#ifndef TESTS_INTEGRATION_REDISSERVER_H
#define TESTS_INTEGRATION_REDISSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REDISSERVER_SETTINGS 768u

struct redisserver {
	char folder[48];
	char path[64]; /* of the unix socket */
	char settings[REDISSERVER_SETTINGS];
	uint16_t port; /* 0: none */
	bool is_sentinel;
	bool is_frozen;
	pid_t pid; /* 0: not running */
};

/* Returns 0 if the server is installed, else the exit status of tests that are skipped. */
int redisserver_absent(void);

/* Returns a port of the loopback interface that is free now. The system gives no port of its range
 * to connections, so it stays free while the server is down. */
uint16_t redisserver_free_port(void);

/*
 * Starts a server and waits until it answers. `port`: 0 for none. `settings`: lines of its settings
 * file, or "".
 */
void redisserver_make(struct redisserver *server, uint16_t port, const char *settings);

/* Starts a sentinel of the primary "main" at a port. It promotes a replica only when a test asks it
 * to (SENTINEL FAILOVER), for otherwise a busy machine would look like a dead server. */
void redisserver_make_sentinel(struct redisserver *server, uint16_t port, uint16_t primary_port);

/* Has the sentinel promote the replica of its primary, and waits until it has done so. */
void redisserver_promote(const struct redisserver *sentinel, const struct redisserver *replica);

/* Stop the server with SIGSTOP, and let it go on; both return when that has taken effect. The
 * kernel still accepts connections and bytes for a frozen server. */
void redisserver_freeze(struct redisserver *server);
void redisserver_thaw(struct redisserver *server);

/* Kills the server without warning, and starts it again, empty. The start does not wait. */
void redisserver_kill(struct redisserver *server);
void redisserver_revive(struct redisserver *server);

/* Adds lines to the settings of a server, for its next start. */
void redisserver_add(struct redisserver *server, const char *settings);

/* Lets a server run that a failed test has left frozen or killed, and waits until it answers. */
void redisserver_rouse(struct redisserver *server);

/* Waits until the server answers. */
void redisserver_wait(const struct redisserver *server);

/* Kills the server and removes its directory. */
void redisserver_unmake(struct redisserver *server);

#endif
