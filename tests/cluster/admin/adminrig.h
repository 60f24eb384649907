/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with an admin page in the virtual world, and a client process without a loop, whose
 * sockets the test uses directly.
 */
#ifndef TESTS_CLUSTER_ADMIN_ADMINRIG_H
#define TESTS_CLUSTER_ADMIN_ADMINRIG_H

#include "cluster/admin/parts.h"
#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#define ADMINRIG_AT "127.0.0.1:9090"
#define ADMINRIG_TOKEN "open-sesame"
#define ADMINRIG_HOST "Host: localhost\r\n"
#define ADMINRIG_BEARER "Authorization: Bearer " ADMINRIG_TOKEN "\r\n"

enum {
	ADMINRIG_READ_MAX = 1 << 20,
};

struct adminrig {
	struct spokei_world world;
	struct spokei_world_process server;
	struct spokei_world_process client;
	struct spokei_faults faulty; /* wraps the server's environment */
	unsigned forks;
	struct spoke_engine *engine;
	struct spoke_admin *admin;
	int accepted; /* the server's descriptor of the connection that was accepted last */
	unsigned acted;
	void (*then)(struct adminrig *rig); /* called by the action "act"; may be NULL */
	char *got;                          /* the text read last */
};

extern struct adminrig adminrig;

/* Opens the world, an engine, and the page with the action "act". */
void adminrig_open(void);

/* Opens the same without the page; returns the options of adminrig_open(). */
void adminrig_open_bare(void);
struct spoke_admin_options adminrig_options(void);

/* Frees everything and asserts that no memory and no descriptor is left. */
void adminrig_close(void);

/* Set-up and tear-down functions for cmocka: adminrig_open() and adminrig_close(). */
int adminrig_set_up(void **state);
int adminrig_tear_down(void **state);

void adminrig_run(uint64_t ns);
int adminrig_connect(void);
void adminrig_send(int fd, const char *text);

/* Returns the text that has arrived. Sets *ret_ended if the connection has ended. */
const char *adminrig_read(int fd, bool *ret_ended);
void adminrig_hang_up(int fd);

/* Sends a request and returns the complete response, after which the connection ends. */
const char *adminrig_ask(const char *request);

/* Returns the status of the response to a request. */
int adminrig_status(const char *request);

/* Returns the number of armed timers of the page, without those of its connections. */
uint64_t adminrig_timers(void);

#endif
