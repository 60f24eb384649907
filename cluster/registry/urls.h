/* SPDX-License-Identifier: Apache-2.0 */
/* URLs in lists of registries, each with its NUL, and the comparison of providers. Pure. */
#ifndef SPOKEI_CLUSTER_REGISTRY_URLS_H
#define SPOKEI_CLUSTER_REGISTRY_URLS_H

#include "core/memory/buffer.h"

#include <spoke/url.h>

/* Appends a URL to a list. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_urls_put(struct spokei_buffer *list, const struct spoke_url *url);

/* Appends a service to the list of services, e.g. "consumer://any/demo.EchoService". Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_urls_put_service(struct spokei_buffer *list, const char *service);

/* Returns whether a subscription is for the list of services. */
bool spokei_urls_are_services(const char *service);

/* Returns whether two URLs of one service mean the same provider, by scheme, address, group and
 * version. */
bool spokei_urls_same(const struct spoke_url *one, const struct spoke_url *other);

#endif
