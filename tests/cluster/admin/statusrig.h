/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine of clusterrig's world shows of itself, written and read back by readers that are
 * strict: what they do not take fails the test.
 */
#ifndef TESTS_CLUSTER_ADMIN_STATUSRIG_H
#define TESTS_CLUSTER_ADMIN_STATUSRIG_H

#include "cluster/admin/status.h"
#include "core/engine/engine.h"
#include "core/memory/buffer.h"
#include "tests/cluster/clusterrig.h"
#include "tests/core/text/jsonread.h"

/* Of whoever shows it; a test may change them. */
extern struct spokei_status_of statusrig_of;
extern struct spokei_history statusrig_history;

/* A world, and those above begin in it. */
int statusrig_set_up(void **state);
int statusrig_tear_down(void **state);

/* Its status now; good until the next one is asked for. */
struct jsonread statusrig_look_at(struct spoke_engine *engine);

/* The consumer's. */
struct jsonread statusrig_look(void);

/* The metrics of an engine, and its status as text; good until the next one is asked for. */
const char *statusrig_metrics(struct spoke_engine *engine);
const char *statusrig_text(struct spoke_engine *engine);

/* A handler that answers nothing. */
void statusrig_drop(struct spoke_request *request, void *arg);

#define EXPECT_TEXT(status, path, text) assert_string_equal(jsonread_text(status, path), text)
#define EXPECT(status, path, number) assert_int_equal(jsonread_u64(status, path), number)

#endif
