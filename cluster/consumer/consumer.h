/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer, for those that show it. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_CONSUMER_H
#define SPOKEI_CLUSTER_CONSUMER_CONSUMER_H

#include <stdint.h>

struct spoke_consumer;
struct spokei_call_settings;
struct spokei_caller;
struct spokei_consumer_settings;
struct spokei_directory;
struct spokei_member;
struct spokei_tls;

/* The kind of the engine's members that are consumers: this very string. */
extern const char spokei_consumer_kind[];

/* Returns the consumer of a member of this kind. */
const struct spoke_consumer *spokei_consumer_of(struct spokei_member *member);

/* Valid until the engine runs. */
struct spokei_consumer_view {
	const char *service; /* "": none */
	const struct spokei_directory *directory;
	const struct spokei_caller *caller;          /* with its calls and tickets */
	const struct spokei_call_settings *settings; /* of methods without their own */
	const struct spokei_consumer_settings *all;
	const struct spokei_tls *tls; /* NULL: plain connections */
	uint64_t heartbeat_ns;
};

/* Ends all calls of a consumer, which takes no more; its methods stay until it is freed. */
void spokei_consumer_close(struct spoke_consumer *consumer);

struct spokei_consumer_view spokei_consumer_look(const struct spoke_consumer *consumer);

#endif
