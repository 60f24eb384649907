/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of provider URLs (a "lineup"), parsed from texts. Invalid URLs and those beyond the
 * maximum are counted and skipped. Any thread.
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
	size_t bad;                 /* skipped, because they are invalid */
	size_t over;                /* skipped, because the list is full */
	struct spoke_url_error why; /* of the first bad one */
};

void spokei_lineup_init(struct spokei_lineup *lineup, const struct spoke_env *env);
void spokei_lineup_fini(struct spokei_lineup *lineup);

/* Parses one more. Returns 0, also for a skipped one, or SPOKE_ENOMEM if the list is
 * incomplete. */
SPOKE_MUST_USE int spokei_lineup_add(struct spokei_lineup *lineup, const char *text, size_t len);

#endif
