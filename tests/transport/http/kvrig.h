/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small key-value service on transport/http, in a process of the virtual world. A second process
 * without a loop has the clients, whose sockets the test uses directly.
 *
 *     GET /KEY    returns the value, or 404
 *     POST /KEY   stores the body as the value
 *     GET /all    streams all values, each KVRIG_REPEAT times, and ends
 *     GET /watch  streams each value that is stored, until the server drains
 *     GET /later  responds once kvrig_respond_later() is called
 *     GET /large  produces a value beyond the output limit, which becomes a 503
 */
#ifndef TESTS_TRANSPORT_HTTP_KVRIG_H
#define TESTS_TRANSPORT_HTTP_KVRIG_H

#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "transport/http/server.h"
#include "transport/listen/listener.h"

#define KVRIG_HOST "Host: localhost\r\n"
#define KVRIG_GET(path) "GET " path " HTTP/1.1\r\n" KVRIG_HOST "\r\n"

enum {
	KVRIG_PAIRS = 4,
	KVRIG_REPEAT = 1000,
	KVRIG_TEXT = 32,
	KVRIG_OUT_MAX = 8192,
	KVRIG_READ_MAX = 1 << 18,
};

struct kvpair {
	char key[KVRIG_TEXT];
	char value[KVRIG_TEXT];
};

struct kvrig {
	struct spokei_world world;
	struct spokei_world_process server;
	struct spokei_world_process client;
	struct spokei_faults faulty; /* wraps the server's environment */
	struct spoke_engine *engine;
	struct spokei_quota quota;
	struct spokei_listener *listener;
	struct spokei_http_server http;
	bool is_open; /* the service is open */
	struct kvpair pairs[KVRIG_PAIRS];
	unsigned pair_count;
	struct spokei_http_conn *later; /* the connection that waits for its response, or NULL */
	int accepted;                   /* the server's descriptor of the last connection */
	unsigned requests;
	unsigned sent;
	unsigned closed;
	char *got; /* the text read last */
};

extern struct kvrig kvrig;

/* kvrig_open() opens the world and the service. kvrig_open_bare() opens the world and an engine
 * with at most `timers_max` timers; 0 selects the default. */
void kvrig_open(void);
void kvrig_open_bare(uint64_t timers_max);

/* Opens the service. Returns the error if a fault made it fail. */
int kvrig_serve(void);

/* Closes everything and asserts that no memory and no descriptor is left. */
void kvrig_close(void);

/* Closes only the service. */
void kvrig_stop(void);

void kvrig_run(uint64_t ns);
int kvrig_connect(void);
void kvrig_send(int fd, const char *text);
void kvrig_hang_up(int fd);

/* Returns the text that has arrived. Sets *ret_ended if the connection has ended. */
const char *kvrig_read(int fd, bool *ret_ended);

/* Sends a request and returns the complete response, after which the connection ends. */
const char *kvrig_ask(const char *request);

/* Returns the status of the response to a request. */
int kvrig_status(const char *request);

/* Returns the peer of a connection in the quota. */
void *kvrig_seat(const struct spokei_http_conn *conn);

/* Responds to GET /later. */
void kvrig_respond_later(const char *text);

#endif
