/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the status and metrics of an engine in clusterrig's world, and reads them back with strict
 * readers. Invalid output fails the test.
 */
#ifndef TESTS_CLUSTER_ADMIN_STATUSRIG_H
#define TESTS_CLUSTER_ADMIN_STATUSRIG_H

#include "cluster/admin/status.h"
#include "core/engine/engine.h"
#include "core/memory/buffer.h"
#include "tests/cluster/clusterrig.h"
#include "tests/core/json/jsonread.h"

/* The page that is described; a test may change it. */
extern struct spokei_status_of statusrig_of;
extern struct spokei_history statusrig_history;

/* Opens a world, and resets the above. */
int statusrig_set_up(void **state);
int statusrig_tear_down(void **state);

/* Returns the present status; valid until the next call. */
struct jsonread statusrig_look_at(struct spoke_engine *engine);

/* Returns the consumer's engine. */
struct jsonread statusrig_look(void);

/* Returns the metrics of an engine; valid until the next call. */
const char *statusrig_metrics(struct spoke_engine *engine);

/* A handler that never replies. */
void statusrig_drop(struct spoke_request *request, void *arg);

#define EXPECT_TEXT(status, path, text) assert_string_equal(jsonread_text(status, path), text)
#define EXPECT(status, path, number) assert_int_equal(jsonread_u64(status, path), number)

#endif
