/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper in the virtual world, with the registry of fakereg.h, files in memory, and what it told.
 */
#ifndef TESTS_CLUSTER_DISCOVERY_KEEPERRIG_H
#define TESTS_CLUSTER_DISCOVERY_KEEPERRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/discovery/keeper.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/cluster/fakereg.h"

#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define RETRY_NS SPOKEI_KEEPER_RETRY_NS
#define ECHO "demo.Echo"
#define PLACE "dubbo://127.0.0.1:20880/demo.Echo"
#define OTHER "dubbo://127.0.0.1:20881/demo.Echo"

struct keeperrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_env env; /* of the process, with files */
	struct spokei_faults faulty;
	struct spoke_engine *engine; /* NULL: freed */
	struct spokei_keeper *keeper;
	unsigned lists; /* told */
	size_t count;   /* of the last one */
	char first[256];
	int list_error;        /* what is said to it */
	void (*in_list)(void); /* done as one is told; may be NULL */
	/* The one file there is. */
	char *file; /* NULL: none */
	size_t file_len;
	int file_error; /* of writing it */
	unsigned writes;
};

extern struct keeperrig keeperrig;

int keeperrig_set_up(void **state);
int keeperrig_tear_down(void **state);

/* Makes the keeper; `options` may be NULL, the registry is fakereg.h's. */
void keeperrig_keep(const struct spokei_keeper_options *options);
int keeperrig_try(const struct spokei_keeper_options *options);

void keeperrig_publish(const char *url);
void keeperrig_subscribe(void);
void keeperrig_pass(uint64_t ns);
void keeperrig_free(void);
void keeperrig_free_engine(void);
void keeperrig_write_file(const char *text);

/* How much of what is wanted is true. */
size_t keeperrig_true(void);

/* How many events have these words. */
unsigned keeperrig_events(const char *words);

#endif
