/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one HTTP/1.1 GET, or POST of nothing, on an engine: connects, requests, reads the whole
 * answer, closes. */
#ifndef COMMAND_HTTP_GET_H
#define COMMAND_HTTP_GET_H

#include "examples/spoke/place.h"

#include <spoke/engine.h>

#define HTTP_GET_MAX (4u << 20) /* largest answer, in bytes */

/* Zero-initialised; embedded in its owner. */
struct http_get {
	struct spoke_engine *engine;
	const struct spoke_env *env;
	const char *token; /* NULL: a GET; else a POST that bears it */
	struct spoke_watch watch;
	struct spoke_alarm late;
	bool open;
	bool connecting;
	bool timed_out; /* the error is a timeout */
	bool refused;   /* the error is that the page requires another token, or one */
	bool answered;  /* the error, if any, is in the answer of an HTTP server */
	char request[1024];
	size_t sent;
	char *answer; /* one byte more than `room`, for a NUL */
	size_t len;
	size_t room;
	/* `what` is NULL or an error text. The body ends with a NUL, may be modified, and is valid
	 * until the callback returns. Never called inside http_get_begin(). */
	void (*done)(struct http_get *get, const char *what, char *body, size_t len);
};

/* Starts the request; `host` is the value of the Host header. Returns NULL, or an error text; then
 * the callback is not called. */
const char *http_get_begin(struct http_get *get, const struct spoke_address *at, const char *host,
			   const char *path, uint64_t timeout_ns);

/* Cancels it without a callback and frees its memory. */
void http_get_end(struct http_get *get);

/*
 * Parses the answer received so far; `over`: the peer has closed. Returns NULL if it is incomplete,
 * "" and the body, or an error text.
 */
const char *http_answer_read(char *bytes, size_t len, bool over, char **ret_body, size_t *ret_len);

#endif
