/* SPDX-License-Identifier: Apache-2.0 */
/* One GET of HTTP/1.1 on an engine: connects, asks, reads the whole answer, closes. */
#ifndef COMMAND_HTTP_GET_H
#define COMMAND_HTTP_GET_H

#include "examples/spoke/place.h"

#include <spoke/engine.h>

#define HTTP_GET_MAX (4u << 20) /* bytes of an answer */

/* Zero-initialised; embedded in whoever asks. */
struct http_get {
	struct spoke_engine *engine;
	const struct spoke_env *env;
	struct spoke_watch watch;
	struct spoke_alarm late;
	bool open;
	bool connecting;
	bool timed_out; /* that is what went wrong */
	char request[512];
	size_t sent;
	char *answer; /* one byte more than `room`, for a NUL */
	size_t len;
	size_t room;
	/* `what`: NULL, and the body, which is the receiver's until it returns, ends with a NUL and
	 * may be written over; or what went wrong. Never from inside http_get_begin(). */
	void (*done)(struct http_get *get, const char *what, char *body, size_t len);
};

/* Asks; `host` is what the address is called. Returns NULL, or what is wrong: then there is no
 * callback. */
const char *http_get_begin(struct http_get *get, const struct spoke_address *at, const char *host,
			   const char *path, uint64_t timeout_ns);

/* Ends it without a callback, if it has begun, and frees what it has. */
void http_get_end(struct http_get *get);

/*
 * Looks at an answer as far as it is there; `over`: nothing more will come. Returns NULL: more has
 * to come; "" and the body; or what is wrong with it.
 */
const char *http_answer_read(char *bytes, size_t len, bool over, char **ret_body, size_t *ret_len);

#endif
