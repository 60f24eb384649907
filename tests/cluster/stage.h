/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage for scenarios: a provider and a consumer, each on an engine of its own, on one of several
 * networks, speaking one of two wires, one of them with two codecs. The stage knows of every call
 * how often it ended, and at its end looks for what was left behind.
 */
#ifndef TESTS_CLUSTER_STAGE_H
#define TESTS_CLUSTER_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	STAGE_CALLS = 512,
	STAGE_HELD = 64,
	STAGE_PLACES = 4,
	STAGE_COPY = 4096, /* bytes that are kept of what a call brought */
	STAGE_ARGS = 2 << 20,
};

/* Where a scenario is played. */
struct stage_setting {
	const char *name;
	bool in_memory;
	bool dubbo;
	const char *at; /* the provider's URL; NULL: a socket in the stage's folder */
	const struct spokei_codec *codec;        /* of both sides; NULL: msgpack */
	const struct spokei_stream_kind *stream; /* of both sides; NULL: the socket */
};

/* A call, and how it ended. */
struct stage_call {
	struct stage *stage;
	struct spoke_call name;
	unsigned ends;
	struct spoke_result result; /* of the last end; its spans point into `bytes` */
	unsigned char bytes[STAGE_COPY];
	size_t value_len;                      /* of the whole value */
	bool same;                             /* the value is what was packed last */
	unsigned order;                        /* how many had ended before */
	void (*then)(struct stage_call *call); /* done as it ends; may be NULL */
};

struct stage {
	const struct stage_setting *setting;
	bool absent; /* the machine has no such network */
	struct spokei_world world;
	struct spokei_world_process processes[2];
	struct spokei_faults client;
	struct spokei_faults server;
	struct spoke_engine *client_engine; /* NULL: freed */
	struct spoke_engine *server_engine;
	struct spoke_provider *provider; /* NULL: none, or freed */
	struct spoke_consumer *consumer;
	struct spoke_request *held[STAGE_HELD]; /* by the handlers "later" */
	unsigned held_count;
	unsigned handled;                          /* by all handlers */
	unsigned abandoned;                        /* of those held */
	void (*in_handler)(struct stage *stage);   /* done by the handler "act" */
	void (*in_abandoned)(struct stage *stage); /* done as one is abandoned */
	struct stage_call calls[STAGE_CALLS];
	unsigned call_count;
	unsigned ended;
	bool calling;
	bool frozen;           /* the server does nothing */
	bool by_turns;         /* engines may be freed in their callbacks */
	bool answer_abandoned; /* who is abandoned is answered then */
	unsigned char *args;   /* room for arguments */
	struct spoke_span packed;
	char folder[64];
	char places[STAGE_PLACES][192];
	char url[256]; /* of the consumer, for the first place */
};

/* As cmocka wants them; the state is the setting first, then the stage. */
int stage_set_up(void **state);
int stage_tear_down(void **state);

/* The stage of a test, with a provider that listens and a consumer that connects to it. */
struct stage *stage_begin(void **state);

/* The same without them. */
struct stage *stage_bare(void **state);

/* Makes the provider, with the handlers of stage.c, which listens at the first place. */
void stage_provide(struct stage *stage, const struct spoke_provider_options *options);

/* Listens at one more place; the number of it. */
unsigned stage_listen(struct stage *stage);

/* Writes the consumer's URL of a place. `query` begins with "&" or is "". */
void stage_url(const struct stage *stage, unsigned place, const char *query, char *text,
	       size_t size);

/* Makes a consumer with the codec of the setting; the caller frees it. */
struct spoke_consumer *stage_consumer(struct stage *stage,
				      const struct spoke_consumer_options *options);

/* Makes the consumer; the URL, if there is none, is of the first place. */
void stage_consume(struct stage *stage, const struct spoke_consumer_options *options);

/* Somebody who listens at the first place, and neither accepts nor reads; the descriptor. */
int stage_deaf_peer(struct stage *stage);
void stage_close_peer(struct stage *stage, int fd);

struct spoke_method *stage_method(struct stage *stage, const char *name);
struct spoke_method *stage_method_with(struct stage *stage, const char *name,
				       const struct spoke_method_options *options);

/* Arguments: of nothing, of one text, of one bin of so many bytes. Good until the next ones. */
struct spoke_span stage_no_args(void);
struct spoke_span stage_text(struct stage *stage, const char *text);
struct spoke_span stage_bin(struct stage *stage, size_t len);

/* Serves what is pushed to a consumer with the handlers of stage.c: for its options, with the stage
 * as argument. */
void stage_handle(struct spoke_request *request, void *stage);

/* Calls. The first returns the error, the others demand that it is taken. */
int stage_try(struct stage *stage, struct spoke_method *method, struct spoke_span args,
	      const struct spoke_call_options *options);
struct stage_call *stage_call(struct stage *stage, struct spoke_method *method,
			      struct spoke_span args);
struct stage_call *stage_call_with(struct stage *stage, struct spoke_method *method,
				   struct spoke_span args,
				   const struct spoke_call_options *options);

/* The same for pushes: the first returns the error, the other demands that it is taken. */
int stage_try_push(struct stage *stage, struct spoke_method *method, struct spoke_peer peer,
		   struct spoke_span args, const struct spoke_call_options *options);
struct stage_call *stage_push(struct stage *stage, struct spoke_method *method,
			      struct spoke_peer peer, struct spoke_span args,
			      const struct spoke_call_options *options);

/* Keeps the server from doing anything, until it is let go. */
void stage_freeze_server(struct stage *stage, bool frozen);

/* Goes on until the call is over; until all are; for a time; until the count is reached. */
const struct spoke_result *stage_end_of(struct stage *stage, struct stage_call *call);
void stage_end_all(struct stage *stage);
void stage_pass(struct stage *stage, uint64_t ns);
void stage_until(struct stage *stage, const unsigned *count, unsigned least);

/* Goes on until so many requests are held, or so many endpoints are ready. */
void stage_until_held(struct stage *stage, unsigned count);
void stage_until_ready(struct stage *stage, size_t count);

/* Answers a held request with its first argument, and forgets it. */
void stage_answer(struct stage *stage, unsigned which);

void stage_free_consumer(struct stage *stage);
void stage_free_provider(struct stage *stage);
void stage_free_client(struct stage *stage);
void stage_free_server(struct stage *stage);

uint64_t stage_client_stat(const struct stage *stage, enum spoke_stat stat);
uint64_t stage_server_stat(const struct stage *stage, enum spoke_stat stat);

/* A call ended well with this text. */
void stage_assert_text(const struct spoke_result *result, const char *text);

/* Runs every test in every setting; names are made of both. Returns the number of failures. */
int stage_run(const char *group, const struct CMUnitTest *tests, size_t count);

#endif
