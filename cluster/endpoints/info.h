/* SPDX-License-Identifier: Apache-2.0 */
/* State of endpoints as users see it. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_INFO_H
#define SPOKEI_CLUSTER_ENDPOINTS_INFO_H

#include <spoke/consumer.h>

struct spoke_tls_info;
struct spokei_directory;
struct spokei_endpoint;

/* Returns the state of an endpoint. */
enum spoke_endpoint_state spokei_endpoint_state(const struct spokei_endpoint *endpoint);

/* Describes an endpoint. */
void spokei_endpoint_info(const struct spokei_endpoint *endpoint, struct spoke_endpoint_info *ret);

/* Describes the TLS of a connection of an endpoint; `ret_info` may be NULL. Returns false if it has
 * none. */
bool spokei_endpoint_tls(const struct spokei_endpoint *endpoint, struct spoke_tls_info *ret_info);

/* Returns the endpoint after `before` in the order of spoke_consumer_endpoints(), or the first if
 * `before` is NULL; NULL at the end. */
const struct spokei_endpoint *spokei_directory_next(const struct spokei_directory *directory,
						    const struct spokei_endpoint *before);

/* Implement spoke_consumer_ready() and spoke_consumer_endpoints(). */
size_t spokei_directory_ready(const struct spokei_directory *directory);
size_t spokei_directory_infos(const struct spokei_directory *directory,
			      struct spoke_endpoint_info *infos, size_t max);

#endif
