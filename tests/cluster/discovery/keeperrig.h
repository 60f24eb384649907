/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a keeper in the virtual world, with the registry of fakereg.h and a file in memory. It
 * records the keeper's lists.
 */
#ifndef TESTS_CLUSTER_DISCOVERY_KEEPERRIG_H
#define TESTS_CLUSTER_DISCOVERY_KEEPERRIG_H

#include "cluster/discovery/keeper.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/cluster/fakereg.h"
#include "tests/support/test.h"

#include <spoke/stats.h>

#define RETRY_NS SPOKEI_KEEPER_RETRY_NS
#define ECHO "demo.Echo"
#define PLACE "dubbo://127.0.0.1:20880/demo.Echo"
#define OTHER "dubbo://127.0.0.1:20881/demo.Echo"

struct keeperrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_env env; /* the process's environment, with the file */
	struct spokei_faults faulty;
	struct spoke_engine *engine; /* NULL: freed */
	struct spokei_keeper *keeper;
	unsigned lists; /* lists passed to the callback */
	size_t count;   /* length of the last list */
	char first[256];
	int list_error;        /* result of the callback */
	void (*in_list)(void); /* called from the callback; may be NULL */
	/* The only file. */
	char *file; /* contents; NULL: no file */
	size_t file_len;
	int file_error; /* result of writing it */
	unsigned writes;
};

extern struct keeperrig keeperrig;

int keeperrig_set_up(void **state);
int keeperrig_tear_down(void **state);

/* Makes the keeper; `options` may be NULL. The registry is always that of fakereg.h. */
void keeperrig_keep(const struct spokei_keeper_options *options);
int keeperrig_try(const struct spokei_keeper_options *options);

void keeperrig_publish(const char *url);
void keeperrig_subscribe(void);
void keeperrig_pass(uint64_t ns);
void keeperrig_free(void);
void keeperrig_free_engine(void);
void keeperrig_write_file(const char *text);

/* Returns how many wanted entries the registry has. */
size_t keeperrig_true(void);

/* Returns the number of events that contain the words. */
unsigned keeperrig_events(const char *words);

#endif
