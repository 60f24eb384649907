/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the leases: a Redis server with a unix socket in the folder of the demo. */
#ifndef DEMO_STORE_H
#define DEMO_STORE_H

#include "examples/demo/acts.h"

/* Adds the server to the stage, without starting it, and writes its settings; adds nothing if Redis
 * is not installed. Returns false on a failure, which cast.trouble describes. */
bool store_cast(struct stage *stage, const char *folder);

#endif
