/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness of an engine, for the paths /ready and /ready/consumers. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_ADMIN_HEALTH_H
#define SPOKEI_CLUSTER_ADMIN_HEALTH_H

#include <stdbool.h>

#define SPOKEI_HEALTH_WHY 256u /* bytes of a reason, with the NUL */

struct spoke_engine;

/*
 * Returns whether requests may be sent to this process: the engine does not drain, and each of its
 * providers listens. `with_consumers`: also each consumer has an endpoint that is ready, or that
 * the next call connects. If not, writes the first reason to `why`.
 */
bool spokei_health_ready(const struct spoke_engine *engine, bool with_consumers,
			 char why[SPOKEI_HEALTH_WHY]);

#endif
