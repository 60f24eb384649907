/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a chain of processes in the virtual world. Each but the first one has a provider, and
 * each but the last one a consumer of the next. A handler makes a call for its request, whose end
 * it passes on; that of the last process holds its requests.
 */
#ifndef TESTS_CLUSTER_CALL_CHAINRIG_H
#define TESTS_CLUSTER_CALL_CHAINRIG_H

#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

enum {
	CHAIN_MAX = 4,
	CHAIN_HELD = 16,
};

struct chain_node {
	struct spokei_world_process process;
	struct spoke_engine *engine;     /* NULL: it is killed */
	struct spoke_provider *provider; /* NULL: of the first */
	struct spoke_consumer *consumer; /* NULL: of the last */
	struct spoke_method *method;     /* of the next one */
	/* In place of the handler; NULL: as above. */
	void (*handle)(struct chain_node *node, struct spoke_request *request);
	struct spoke_request *held[CHAIN_HELD];
	unsigned runs;
	unsigned abandoned; /* callbacks of held requests */
	uint64_t left_ns;   /* of the last request, when it came */
	unsigned ends;      /* of calls of the next one */
	int error;          /* of the last of them */
	bool written;
	uint64_t ended_ns;
};

struct chain {
	struct spokei_world world;
	struct chain_node nodes[CHAIN_MAX];
	unsigned count;
	struct chain_node *first;
	struct chain_node *last;
	const struct spoke_provider_options *provide; /* of all providers; may be NULL */
	const struct spoke_filter *const *filters;    /* of all consumers */
	size_t filter_count;
	unsigned flags; /* of all handlers */
	bool plain;     /* the first process speaks MessagePack-RPC, which knows no deadlines */
	/* To the last of three; unless NORMAL, the consumers are lazy, and nothing is waited for.
	 */
	enum spokei_vnet_route route;
};

extern struct chain chain;

int chain_set_up(void **state);
int chain_tear_down(void **state);

/* Starts so many processes. `query` is that of the consumers. Waits until they are connected. */
void chain_begin(unsigned count, const char *query);

/* Ends all processes, before the end of the test. */
void chain_end(void);

/* The address of the last of three. */
extern const char chain_last_address[];

void chain_pass(uint64_t ns);

/* Kills a process. */
void chain_kill(struct chain_node *node);

/* Has the first process call the second, with this timeout; 0: the default. */
struct spoke_call chain_call(uint64_t timeout_ns);

/* Makes a call of the next process. `request`: to be answered with the end of the call, or NULL.
 * Returns as spoke_call(). */
int chain_call_next(struct chain_node *node, struct spoke_request *request,
		    const struct spoke_call_options *options);

/* Holds a request, and counts if it is abandoned. */
void chain_hold(struct chain_node *node, struct spoke_request *request);

/* Answers a held request. */
void chain_answer(struct chain_node *node, unsigned which);

#endif
