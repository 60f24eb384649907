/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a program of spoke, and a peer that plays the bytes of a Java program. The program
 * serves "it.Api" to the peer, or calls the peer. Bytes are compared as Java would receive them.
 */
#ifndef TESTS_CLUSTER_JAVARIG_H
#define TESTS_CLUSTER_JAVARIG_H

#include "tests/cluster/peer.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"
#include "transport/wire/dubbo/dubbo.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

enum {
	JAVA_HEAD = 16,
	JAVA_TWO_WAY = 0xc0, /* flags of a request */
	JAVA_ONE_WAY = 0x80,
	JAVA_TEXT = 8192,
};

struct javarig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct peer peer;
	struct peer_conn conn;
	int listener;
	struct spokei_buffer in;      /* bytes from spoke */
	struct spokei_buffer scratch; /* of translated bodies */
	size_t taken;                 /* bytes of the frame that was returned last */
	uint64_t asked;               /* id of the last request */
	/* The last call of the consumer. */
	unsigned ends;
	int error;
	int32_t code;
	char printed[JAVA_TEXT];   /* the whole result */
	char value[JAVA_TEXT];     /* of the result, printed */
	char attached[JAVA_TEXT];  /* its attachments, printed */
	char exception[JAVA_TEXT]; /* with 3 lines of each stack trace */
};

extern struct javarig javarig;

int javarig_set_up(void **state);
int javarig_tear_down(void **state);

/* Serves "it.Api" with these handlers, and connects the peer. */
void javarig_provide(const struct spoke_handler *handlers, size_t count);

/* Does the same with a filter that lets every request pass. */
void javarig_provide_filtered(const struct spoke_handler *handlers, size_t count);

/* Makes a consumer of "it.Api" that is connected to the peer. `query` begins with "&" or is "". */
void javarig_consume(const char *query);

/* Calls a method. The callback notes the result. */
void javarig_call(const char *method, const struct spoke_method_options *options,
		  struct spoke_span args, const struct spoke_call_options *with);

/* The peer sends bytes, or a frame with this head and body. */
void javarig_send(struct spoke_span bytes);
void javarig_frame(unsigned flags, unsigned status, uint64_t id, struct spoke_span body);

/* Returns a frame of the recording of Dubbo 2.7.23 by its number. Replies get the id of the request
 * that javarig_next() returned last. Valid until the next call. */
struct spoke_span javarig_recorded(unsigned number);

/* Returns the next frame from spoke other than heartbeats; data NULL: there is none. The frame and
 * the message are valid until the next call. */
struct spoke_span javarig_next(struct spokei_message *ret_message);

/* Expects a frame with this body, or a reply with this status. */
void javarig_expect_body(struct spoke_span body);
void javarig_expect_text(unsigned status, const char *text);

#endif
