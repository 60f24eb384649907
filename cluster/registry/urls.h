/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of URLs: as texts that a registry reports, each with its NUL, and parsed. Also the
 * comparison of providers. Any thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_URLS_H
#define SPOKEI_CLUSTER_REGISTRY_URLS_H

#include "core/base/env.h"
#include "core/memory/buffer.h"

#include <spoke/url.h>

/* Appends a URL to a list. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE (limit of the buffer). */
SPOKE_MUST_USE int spokei_urls_put(struct spokei_buffer *list, const struct spoke_url *url);

/* Appends a service to the list of services, e.g. "consumer://any/demo.EchoService". Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_urls_put_service(struct spokei_buffer *list, const char *service);

/* Returns the value of a parameter; "": none. */
static inline const char *spokei_urls_value(const struct spoke_url *url, const char *key)
{
	const char *value = spoke_url_get(url, key);

	return value ? value : "";
}

/* Returns whether a subscription is for the list of services. */
bool spokei_urls_are_services(const char *service);

/* Returns whether a category of a registry is that of rules, not of URLs. */
static inline bool spokei_urls_are_rule(const char *category)
{
	return *category == '.';
}

/* Returns whether two URLs of one service mean the same provider, by scheme, address, group and
 * version. */
bool spokei_urls_same(const struct spoke_url *one, const struct spoke_url *other);

/* --- parsed */

#define SPOKEI_URL_LIST_MAX (1u << 20) /* more than any endpoints.max */

/* Invalid URLs and those beyond the maximum are counted and skipped. */
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
