/* SPDX-License-Identifier: Apache-2.0 */
/* The list of services that registries send to subscribers to "*". Pure. */
#ifndef SPOKEI_CLUSTER_REGISTRY_SERVICES_H
#define SPOKEI_CLUSTER_REGISTRY_SERVICES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether a subscription is for the list of services. */
bool spokei_services_wanted(const char *service);

/* Prints a service's entry, e.g. "consumer://any/demo.EchoService". As snprintf(). */
size_t spokei_services_print(const char *service, char *out, size_t size);

#endif
