/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Redis in memory share: see redis.h. */
#ifndef TESTS_SUPPORT_REDIS_PARTS_H
#define TESTS_SUPPORT_REDIS_PARTS_H

#include "core/memory/buffer.h"
#include "tests/support/redis/redis.h"

#include <string.h>

enum {
	FAKEREDIS_FIELDS = 8,  /* most fields of a hash */
	FAKEREDIS_MARKS = 256, /* most answers of a connection that are delayed, each by itself */
	FAKEREDIS_SUBS = 1024, /* most subscriptions of a connection */
	FAKEREDIS_DBS = 16,
	FAKEREDIS_KEYS_MAX = 1 << 20,
	FAKEREDIS_OPS_MAX = 1 << 20, /* most writes that a replica has not got */
	FAKEREDIS_BUFFER = 4 << 20,  /* most bytes in a buffer of a connection */
	FAKEREDIS_BULK = 64 << 10,   /* most bytes of an argument */
};

/* A text with its length. */
struct fakeredis_text {
	size_t len;
	unsigned char bytes[];
};

/* A key: a string, or a hash. */
struct fakeredis_key {
	struct fakeredis_key *next; /* of its bucket */
	unsigned db;
	struct fakeredis_text *name;
	uint64_t expires_ms;           /* 0: never; the key lives through this ms */
	struct fakeredis_text *string; /* NULL: a hash */
	struct {
		struct fakeredis_text *name;
		struct fakeredis_text *value;
	} fields[FAKEREDIS_FIELDS];
	unsigned field_count;
};

/* A write on its way to a replica: the state of a key after it. */
struct fakeredis_op {
	struct fakeredis_op *next;
	uint64_t due_ns; /* when it arrives */
	uint64_t offset;
	unsigned db;
	struct fakeredis_text *name;
	struct fakeredis_key *state; /* NULL: it was removed */
	bool arrived;
};

struct fakeredis_conn {
	struct spoke_watch watch;
	struct fakeredis *server;
	unsigned index; /* in the server's table */
	uint64_t id;
	char peer[64]; /* the client's address */
	struct spokei_buffer in;
	struct spokei_buffer out;
	size_t free; /* bytes of `out` that may be written now */
	struct {
		size_t len;
		uint64_t due_ns;
	} marks[FAKEREDIS_MARKS]; /* of the bytes after those, the oldest first */
	unsigned mark_count;
	struct fakeredis_text *subs[FAKEREDIS_SUBS];
	unsigned sub_count;
	unsigned db;
	bool authenticated;
	bool mute;    /* nothing is answered any more */
	bool closing; /* close it as soon as the output is written */
	bool ended;   /* close it, output or not */
	bool resets;  /* ... with a reset */
};

/* A command that is run. */
struct fakeredis_command {
	struct fakeredis *server;
	struct fakeredis_conn *conn;
	const struct spoke_span *args; /* its name first */
	unsigned count;
	const char *sha1; /* of the script that runs; NULL: none */
};

/* --- text.c */

struct fakeredis_text *fakeredis_text_new(struct spoke_span span);
struct fakeredis_text *fakeredis_text_copy(const struct fakeredis_text *text);

static inline struct spoke_span fakeredis_span(const struct fakeredis_text *text)
{
	return (struct spoke_span){ text->bytes, text->len };
}

static inline struct spoke_span fakeredis_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

static inline unsigned char fakeredis_byte(struct spoke_span span, size_t at)
{
	return ((const unsigned char *)span.data)[at];
}

static inline bool fakeredis_same(struct spoke_span a, struct spoke_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Compares without regard to case; `upper` is in upper case. */
bool fakeredis_is(struct spoke_span span, const char *upper);

/* Parses a whole decimal number, as Redis does: no spaces, no plus, no leading zeros. */
bool fakeredis_number(struct spoke_span span, int64_t *ret);

/* Matches a pattern of Redis: * ? [a-z] [^a] and \. */
bool fakeredis_match(struct spoke_span pattern, struct spoke_span text);

/* Writes the 40 hex digits and a NUL. */
void fakeredis_sha1(const void *bytes, size_t len, char ret_hex[41]);

/* --- parse.c */

enum fakeredis_parse {
	FAKEREDIS_PARSE_MORE,
	FAKEREDIS_PARSE_BROKEN,
	FAKEREDIS_PARSE_COMMAND,
};

/* Parses one command from the start of the bytes, strictly: an array of bulk strings. The spans
 * point into the bytes. */
enum fakeredis_parse fakeredis_parse(const unsigned char *bytes, size_t len,
				     struct spoke_span args[FAKEREDIS_ARGS], unsigned *ret_count,
				     size_t *ret_used);

/* --- reply.c: append to the output of a connection */

void fakeredis_raw(struct fakeredis_conn *conn, const void *bytes, size_t len);
void fakeredis_simple(struct fakeredis_conn *conn, const char *text);
void fakeredis_error(struct fakeredis_conn *conn, const char *text);
void fakeredis_integer(struct fakeredis_conn *conn, int64_t number);
void fakeredis_bulk(struct fakeredis_conn *conn, struct spoke_span text);
void fakeredis_nil(struct fakeredis_conn *conn);
void fakeredis_array(struct fakeredis_conn *conn, size_t count);

/* Delays what was appended since `before`, the length of the output then. */
void fakeredis_mark(struct fakeredis_conn *conn, size_t before);

/* Answers an error; in a script with the script's name, as Redis does. */
void fakeredis_refuse(const struct fakeredis_command *command, const char *text);

/* --- data.c */

/* Returns a key that lives, or NULL. */
struct fakeredis_key *fakeredis_find(struct fakeredis *server, unsigned db, struct spoke_span name);

/* Returns the value of a field, or NULL. */
const struct fakeredis_text *fakeredis_field(const struct fakeredis_key *key,
					     struct spoke_span name);

/* Returns the time to live as PTTL does. */
int64_t fakeredis_ttl(const struct fakeredis *server, const struct fakeredis_key *key);

/* --- commands.c, scripts.c, clients.c */

/* Runs a command, or refuses it. */
void fakeredis_run(struct fakeredis_conn *conn, const struct spoke_span *args, unsigned count);

/* Makes the scripts of the product and of Redisson known. */
void fakeredis_know_all(struct fakeredis *server);

void fakeredis_script(struct fakeredis_command *command);

/* Writes by commands and scripts, which also reach the replicas. Return false if they have answered
 * an error. */
bool fakeredis_do_expire(struct fakeredis_command *command, struct fakeredis_key *key,
			 struct spoke_span ttl_ms);
bool fakeredis_do_delete(struct fakeredis_command *command, struct fakeredis_key *key);
bool fakeredis_do_count(struct fakeredis_command *command, struct spoke_span name,
			int64_t *ret_number);
bool fakeredis_do_field(struct fakeredis_command *command, struct spoke_span name,
			struct spoke_span field, int64_t number);

/* --- replicas.c */

/* Notes that a key has changed; `key` NULL: it was removed. */
void fakeredis_wrote(struct fakeredis *server, unsigned db, struct spoke_span name,
		     const struct fakeredis_key *key);
void fakeredis_role(struct fakeredis_command *command);
void fakeredis_sentinel(struct fakeredis_command *command);

/* Moves writes that are due to the replicas. */
void fakeredis_replicate(struct fakeredis *server);

/* Returns when it has to be called next; UINT64_MAX: never. */
uint64_t fakeredis_replicate_next(const struct fakeredis *server);
void fakeredis_forget_replicas(struct fakeredis *server);

#endif
