/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a provider and a consumer with TLS in the virtual world, and a stranger with raw
 * connections. Both sides show certificates. Descriptors of the stranger never fail.
 */
#ifndef TESTS_CLUSTER_SCENARIOS_SECPLAY_H
#define TESTS_CLUSTER_SCENARIOS_SECPLAY_H

#include "core/virtual/faults.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define AT "127.0.0.1:20880"

enum {
	SERVER,
	CLIENT,
	STRANGER,
	SECPLAY_PROCESSES,
};

struct secplay {
	struct spokei_world world;
	struct spokei_world_process processes[SECPLAY_PROCESSES];
	struct spokei_faults faulty[SECPLAY_PROCESSES];
	struct spoke_engine *engines[SECPLAY_PROCESSES];
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct secure secure;
	struct spoke_request *held;
	unsigned held_count;
	unsigned ended;
	int error;            /* of the last call */
	char error_text[256]; /* the same */
	uint64_t seen[2];
	uint64_t most; /* handshakes that a turn has begun */
};

extern struct secplay secplay;

int secplay_set_up(void **state);
int secplay_tear_down(void **state);
void secplay_pass(uint64_t ns);
uint64_t secplay_stat_of(unsigned side, enum spoke_stat stat);

/* Make the sides. A provider has the method "echo" of demo.Echo; secplay_hold() serves another one
 * and holds its request. */
void secplay_provide(const char *at, const struct spoke_provider_options *options);
void secplay_provide_tls(const char *at);
void secplay_consume(const char *url, const struct spoke_tls_options *tls);
void secplay_hold(struct spoke_request *request, void *arg);

/* Calls the method "echo"; the end is in secplay.ended and secplay.error. */
void secplay_call(uint64_t timeout_ns);

/* Returns what an engine's events have said. */
const char *secplay_told(unsigned side);

/* Raw connections: read all that has come and return its length; *ret_ended: the other side has
 * ended. */
int secplay_raw_connect(const char *at);
void secplay_raw_send(int fd, const void *bytes, size_t len);
size_t secplay_raw_read(int fd, unsigned char *bytes, size_t size, bool *ret_ended);
void secplay_raw_close(int fd);
const struct spoke_env *secplay_raw_env(void);

/* Drops all that has come, and returns whether the other side has ended. */
bool secplay_is_closed(int fd);

/* Writes a ClientHello. Returns its length. */
size_t secplay_make_hello(unsigned char *bytes, size_t size);

#endif
