/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of provider URLs, parsed from texts. Invalid URLs and those beyond the
 * maximum are counted and skipped. Any thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_URL_LIST_H
#define SPOKEI_CLUSTER_DISCOVERY_URL_LIST_H

#include "core/base/env.h"

#include <spoke/url.h>

#define SPOKEI_URL_LIST_MAX 8192u /* providers */

struct spokei_url_list {
	const struct spoke_env *env; /* borrowed for the life of the list */
	struct spoke_url *urls;
	size_t count;
	size_t room;
	size_t bad;                 /* skipped, because they are invalid */
	size_t over;                /* skipped, because the list is full */
	struct spoke_url_error why; /* of the first bad one */
};

void spokei_url_list_init(struct spokei_url_list *list, const struct spoke_env *env);
void spokei_url_list_fini(struct spokei_url_list *list);

/* Parses one more. Returns 0, also for a skipped one, or SPOKE_ENOMEM if the list is
 * incomplete. */
SPOKE_MUST_USE int spokei_url_list_add(struct spokei_url_list *list, const char *text, size_t len);

#endif
