/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage for scenarios: a provider and a consumer, each on its own engine, on one of several
 * networks, with one of two wires and several codecs and streams. The stage counts the ends of
 * every call and asserts at its end that nothing leaked.
 */
#ifndef TESTS_CLUSTER_STAGE_H
#define TESTS_CLUSTER_STAGE_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

enum {
	STAGE_CALLS = 512,
	STAGE_HELD = 64,
	STAGE_PLACES = 4,
	STAGE_COPY = 4096, /* kept bytes of a call's result */
	STAGE_ARGS = 2 << 20,
};

/* The network, wire, codec and stream of a scenario. */
struct stage_setting {
	const char *name;
	bool in_memory;
	bool dubbo;
	const char *at; /* the provider's URL; NULL: a socket in the stage's folder */
	const struct spokei_codec *codec; /* of both sides; NULL: msgpack */
	/* Of both sides; NULL: the socket; &secure_stream: TLS. */
	const struct spokei_stream_kind *stream;
};

/* A call and its end. */
struct stage_call {
	struct stage *stage;
	struct spoke_call name;
	unsigned ends;
	struct spoke_result result; /* of the last end; its spans point into `bytes` */
	unsigned char bytes[STAGE_COPY];
	size_t value_len;                      /* of the whole value */
	bool same;                             /* the value equals the arguments packed last */
	unsigned order;                        /* number of calls that ended before */
	void (*then)(struct stage_call *call); /* called at its end; may be NULL */
};

struct stage {
	const struct stage_setting *setting;
	bool absent; /* the machine has no such network */
	struct spokei_world world;
	struct spokei_world_process processes[2];
	struct secure secure; /* if the setting has TLS */
	struct spokei_faults client;
	struct spokei_faults server;
	struct spoke_engine *client_engine; /* NULL: freed */
	struct spoke_engine *server_engine;
	struct spoke_provider *provider; /* NULL: not made, or freed */
	struct spoke_consumer *consumer;
	struct spoke_request *held[STAGE_HELD]; /* held by the handlers "later" */
	unsigned held_count;
	unsigned handled;                          /* requests of all handlers */
	unsigned abandoned;                        /* held requests that were abandoned */
	void (*in_handler)(struct stage *stage);   /* called by the handler "act" */
	void (*in_abandoned)(struct stage *stage); /* called when a request is abandoned */
	struct stage_call calls[STAGE_CALLS];
	unsigned call_count;
	unsigned ended;
	bool calling;
	bool frozen;           /* the server does not run */
	bool by_turns;         /* callbacks may free the engines */
	bool answer_abandoned; /* abandoned requests are answered at that moment */
	unsigned char *args;   /* room for arguments */
	struct spoke_span packed;
	char folder[64];
	char places[STAGE_PLACES][192];
	char url[256]; /* the consumer's URL of the first address */
};

/* Set-up and tear-down functions for cmocka. The state is first the setting, then the stage. */
int stage_set_up(void **state);
int stage_tear_down(void **state);

/* Returns the stage of a test, with a listening provider and a connected consumer. */
struct stage *stage_begin(void **state);

/* Returns the stage of a test without provider and consumer. */
struct stage *stage_bare(void **state);

/* Makes the provider with the handlers of stage.c. It listens at the first address. */
void stage_provide(struct stage *stage, const struct spoke_provider_options *options);

/* Listens at another address. Returns its index. */
unsigned stage_listen(struct stage *stage);

/* Writes the consumer's URL of an address. `query` begins with "&" or is "". */
void stage_url(const struct stage *stage, unsigned place, const char *query, char *text,
	       size_t size);

/* Makes a consumer with the codec of the setting; the caller frees it. */
struct spoke_consumer *stage_consumer(struct stage *stage,
				      const struct spoke_consumer_options *options);

/* Makes the stage's consumer. Without a URL it connects to the first address. */
void stage_consume(struct stage *stage, const struct spoke_consumer_options *options);

/* Listens at the first address, but neither accepts nor reads. Returns the descriptor. */
int stage_deaf_peer(struct stage *stage);
void stage_close_peer(struct stage *stage, int fd);

/* Returns whether its connections are TLS. */
bool stage_is_secure(const struct stage *stage);

/* Returns how many round trips the opening of a stream takes, beyond that of the socket. */
unsigned stage_opening_trips(const struct stage *stage);

struct spoke_method *stage_method(struct stage *stage, const char *name);
struct spoke_method *stage_method_with(struct stage *stage, const char *name,
				       const struct spoke_method_options *options);

/* Make arguments: none, one text, one bin of `len` bytes. They are valid until the next ones are
 * made. */
struct spoke_span stage_no_args(void);
struct spoke_span stage_text(struct stage *stage, const char *text);
struct spoke_span stage_bin(struct stage *stage, size_t len);

/* Serves a consumer's pushes with the handlers of stage.c. Use it in the consumer's options with
 * the stage as argument. */
void stage_handle(struct spoke_request *request, void *stage);

/* Make a call. The first returns the error, the others assert success. */
int stage_try(struct stage *stage, struct spoke_method *method, struct spoke_span args,
	      const struct spoke_call_options *options);
struct stage_call *stage_call(struct stage *stage, struct spoke_method *method,
			      struct spoke_span args);
struct stage_call *stage_call_with(struct stage *stage, struct spoke_method *method,
				   struct spoke_span args,
				   const struct spoke_call_options *options);

/* Make a push. The first returns the error, the other asserts success. */
int stage_try_push(struct stage *stage, struct spoke_method *method, struct spoke_peer peer,
		   struct spoke_span args, const struct spoke_call_options *options);
struct stage_call *stage_push(struct stage *stage, struct spoke_method *method,
			      struct spoke_peer peer, struct spoke_span args,
			      const struct spoke_call_options *options);

/* Stops the server from running, or lets it run again. */
void stage_freeze_server(struct stage *stage, bool frozen);

/* Run until the call has ended, until all calls have, for a time, until the count is reached. */
const struct spoke_result *stage_end_of(struct stage *stage, struct stage_call *call);
void stage_end_all(struct stage *stage);
void stage_pass(struct stage *stage, uint64_t ns);
void stage_until(struct stage *stage, const unsigned *count, unsigned least);

/* Run until this many requests are held, or this many endpoints are ready. */
void stage_until_held(struct stage *stage, unsigned count);
void stage_until_ready(struct stage *stage, size_t count);

/* Answers a held request with its first argument and forgets the request. */
void stage_answer(struct stage *stage, unsigned which);

void stage_free_consumer(struct stage *stage);
void stage_free_provider(struct stage *stage);
void stage_free_client(struct stage *stage);
void stage_free_server(struct stage *stage);

uint64_t stage_client_stat(const struct stage *stage, enum spoke_stat stat);
uint64_t stage_server_stat(const struct stage *stage, enum spoke_stat stat);

/* Asserts that a call succeeded with this text. */
void stage_assert_text(const struct spoke_result *result, const char *text);

/* Runs each test in each setting; test names contain both. Returns the number of failures. */
int stage_run(const char *group, const struct CMUnitTest *tests, size_t count);

/* Tests whose parameter is the rig. */
#define BARE_STAGE_TEST(...) TEST_WITH(struct stage *stage, stage_bare(state), __VA_ARGS__)
#define STAGE_TEST(...) TEST_WITH(struct stage *stage, stage_begin(state), __VA_ARGS__)

#endif
