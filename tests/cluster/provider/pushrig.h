/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture: a stage whose provider pushes. Its consumer has a handler and has sent a request. */
#ifndef TESTS_CLUSTER_PROVIDER_PUSHRIG_H
#define TESTS_CLUSTER_PROVIDER_PUSHRIG_H

#include "tests/cluster/stage.h"

struct pushrig {
	struct stage *stage;
	struct spoke_method *echo; /* for pushes to the handlers of these names */
	struct spoke_method *later;
	struct spoke_peer peer; /* the consumer */
};

/* Returns the stage of a test; or with a consumer without a handler. */
struct pushrig pushrig_begin(void **state);
struct pushrig pushrig_begin_unserved(void **state);

/* Returns the same for a stage that has its provider. */
struct pushrig pushrig_on(struct stage *stage, const struct spoke_consumer_options *options);

/* Makes the methods of the stage's provider. */
void pushrig_methods(struct pushrig *rig);

/* Has the consumer call, so that the provider knows its wire. */
void pushrig_speak(struct stage *stage);

/* Returns the only peer. */
struct spoke_peer pushrig_peer(const struct stage *stage);

/* Runs until the provider has this many peers to push to. */
void pushrig_until_peers(struct stage *stage, size_t count);

/* Connects to the provider without sending anything. Returns the descriptor. */
int pushrig_mute(struct stage *stage);
void pushrig_close_mute(struct stage *stage, int fd);

#endif
