/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of providers, read from texts. Those that are no URLs are counted and left out, and so are
 * those beyond the maximum. Owned by whoever reads; any thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_LINEUP_H
#define SPOKEI_CLUSTER_DISCOVERY_LINEUP_H

#include "core/base/env.h"

#include <spoke/url.h>

#define SPOKEI_LINEUP_MAX 8192u /* providers */

struct spokei_lineup {
	const struct spoke_env *env; /* borrowed for the lineup's life */
	struct spoke_url *urls;
	size_t count;
	size_t room;
	size_t bad;                 /* left out, for they are no URLs */
	size_t over;                /* left out, for there are enough */
	struct spoke_url_error why; /* of the first bad one */
};

void spokei_lineup_init(struct spokei_lineup *lineup, const struct spoke_env *env);
void spokei_lineup_fini(struct spokei_lineup *lineup);

/* Reads one more. Returns 0, also for what is left out, or SPOKE_ENOMEM: the list is not whole. */
SPOKE_MUST_USE int spokei_lineup_add(struct spokei_lineup *lineup, const char *text, size_t len);

#endif
