/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what services there are, which registries tell to who subscribes to "*". Judges only;
 * any thread. */
#ifndef SPOKEI_CLUSTER_REGISTRY_SERVICES_H
#define SPOKEI_CLUSTER_REGISTRY_SERVICES_H

#include <stdbool.h>
#include <stddef.h>

/* Is it this list that is subscribed to? */
bool spokei_services_wanted(const char *service);

/* Prints how a service stands in it, as "consumer://any/demo.EchoService". As snprintf(). */
size_t spokei_services_print(const char *service, char *out, size_t size);

#endif
