/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a session at ZooKeeper: the library's close sends it to the server and waits for the
 * answer, for seconds if need be, and so runs on a thread of the pool. Embedded in the owner of the
 * library's handle. And how its connection is cut.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_FAREWELL_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_FAREWELL_H

#include "core/engine/task.h"

#include <zookeeper/zookeeper.h>

/* The library's descriptor leads nowhere from now on; the library closes it itself, when it has
 * noticed. */
void spokei_zoo_unplug(const struct spoke_env *env, int fd);

struct spokei_zoo_farewell {
	struct spoke_engine *engine;
	zhandle_t *zh;
	int fd; /* as it was seen last */
	struct spoke_work work;
	struct spokei_task bury;
	void (*said)(struct spokei_zoo_farewell *farewell);
};

/*
 * Ends and frees the handle, which nobody uses any more; the library may call back on another
 * thread meanwhile. `fd` is its descriptor as it was seen last, -1: none. `said` comes on the
 * engine's dead list, when the library has forgotten all: the owner may be freed.
 */
void spokei_zoo_farewell_say(struct spokei_zoo_farewell *farewell, struct spoke_engine *engine,
			     zhandle_t *zh, int fd,
			     void (*said)(struct spokei_zoo_farewell *farewell));

#endif
