/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with a gateway in the virtual world, and a client process without a loop, whose sockets
 * the test uses directly.
 */
#ifndef TESTS_CLUSTER_COMET_COMETRIG_H
#define TESTS_CLUSTER_COMET_COMETRIG_H

#include "cluster/comet/comet.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#define COMETRIG_AT "127.0.0.1:8080"
#define COMETRIG_HOST "Host: 127.0.0.1:8080\r\n"
#define COMETRIG_ORIGIN "Origin: http://127.0.0.1:8080\r\n"
#define COMETRIG_UPGRADE                                                                           \
	"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"               \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

enum {
	COMETRIG_READ_MAX = 1 << 20,
	COMETRIG_ASKED_MAX = 64,
};

/* A call of the authorizer. */
struct cometrig_asked {
	struct spoke_comet_entry entry;
	enum spoke_comet_kind kind;
	char query[128];
	char cookie[128];
};

struct cometrig {
	struct spokei_world world;
	struct spokei_world_process server;
	struct spokei_world_process client;
	struct spokei_faults faulty; /* wraps the server's environment */
	struct spoke_engine *engine;
	struct spoke_comet *comet;
	int accepted; /* the server's descriptor of the connection that was accepted last */
	struct cometrig_asked asked[COMETRIG_ASKED_MAX];
	unsigned asked_count;
	char heard[4096];                   /* "USER: TEXT\n" of each message of a page */
	char changes[4096];                 /* "+USER ", "-USER ", "xUSER " */
	void (*then)(struct cometrig *rig); /* called by the callbacks "message" and "change" */
	char *got;                          /* the bytes read last */
	size_t got_len;
	char *lines; /* of cometrig_frames() */
};

extern struct cometrig cometrig;

/* Opens the world and an engine; returns options that believe the query, and note callbacks. */
struct spoke_comet_options cometrig_begin(void);

/* Makes the gateway. */
void cometrig_make(const struct spoke_comet_options *options);

/* The same with an authorizer that notes its calls, and does not answer. */
void cometrig_authorize(void *arg, struct spoke_comet_entry entry,
			const struct spoke_comet_request *request);

/* Frees everything and asserts that no memory, descriptor or timer is left. */
void cometrig_close(void);

/* Set-up and tear-down functions for cmocka: a gateway with the options of cometrig_begin(). */
int cometrig_set_up(void **state);
int cometrig_tear_down(void **state);

void cometrig_run(uint64_t ns);
int cometrig_connect(void);
void cometrig_send(int fd, const char *text);
void cometrig_send_bytes(int fd, const void *bytes, size_t len);

/* Returns the text that has arrived. Sets *ret_ended, if not NULL, if the connection has ended. */
const char *cometrig_read(int fd, bool *ret_ended);
void cometrig_hang_up(int fd);

/* Sends a request and returns the complete response, after which the connection ends. */
const char *cometrig_ask(const char *request);

/* Opens a connection. `query` may be "user=ann&last=..."; `last`: Last-Event-ID, or NULL. */
int cometrig_events(const char *query, const char *last);
int cometrig_socket(const char *query);
int cometrig_poll(const char *query);

/* Sends a masked frame. */
void cometrig_frame(int fd, unsigned first, const char *payload, size_t len);

/* Reads frames of the server, a line each: "text {...}", "ping", "pong ...", "close CODE REASON";
 * "end" at the end of the stream. */
const char *cometrig_frames(int fd);

/* Prints a stream of events, a line each: "NUMBER NAME DATA", "- NAME DATA" without an id; ":" for
 * a comment, "half" for an event that is cut. Line ends in data become "|". The head is left out.
 */
const char *cometrig_lines(const char *text);

/* Reads a stream of events, and prints it; "end" at its end. */
const char *cometrig_stream(int fd);

/* Returns the number behind a text, which is there. */
unsigned long cometrig_number(const char *text, const char *before);

/* Returns "EPOCH.NUMBER", valid until the next call. */
const char *cometrig_id(unsigned number);

/* Pushes to a user, or to all for NULL; asserts success. Returns the id, valid until the next. */
const char *cometrig_push(const char *user, const char *event, const char *data);

uint64_t cometrig_figure(enum spoke_comet_figure figure);

/* Returns the number of armed timers of connections. */
uint64_t cometrig_timers(void);

/* For `then`: frees the gateway, once. */
void cometrig_free_gateway(struct cometrig *rig);

void assert_has(const char *text, const char *part);

#endif
