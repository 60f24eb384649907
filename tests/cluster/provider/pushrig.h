/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage on which the provider pushes: its consumer serves, and has spoken.
 */
#ifndef TESTS_CLUSTER_PROVIDER_PUSHRIG_H
#define TESTS_CLUSTER_PROVIDER_PUSHRIG_H

#include "tests/cluster/stage.h"

struct pushrig {
	struct stage *stage;
	struct spoke_method *echo; /* pushes, to the handlers of these names */
	struct spoke_method *later;
	struct spoke_peer peer; /* the consumer */
};

/* The stage of a test with all that; or of a consumer that serves nothing. */
struct pushrig pushrig_begin(void **state);
struct pushrig pushrig_begin_unserved(void **state);

/* The same on a stage that has its provider. */
struct pushrig pushrig_on(struct stage *stage, const struct spoke_consumer_options *options);

/* The methods of the stage's provider. */
void pushrig_methods(struct pushrig *rig);

/* The stage's consumer calls, so that the provider knows its wire. */
void pushrig_speak(struct stage *stage);

/* The one peer there is. */
struct spoke_peer pushrig_peer(const struct stage *stage);

/* Goes on until the provider has so many peers to push to. */
void pushrig_until_peers(struct stage *stage, size_t count);

/* Connects to the provider, and says nothing; the descriptor. */
int pushrig_mute(struct stage *stage);
void pushrig_close_mute(struct stage *stage, int fd);

#endif
