/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers that the URL of the registry itself names, of any service:
 * "static://10.0.0.1:20880?backup=10.0.0.2:20880,[::1]:20880" lists
 * "dubbo://10.0.0.1:20880/demo.Echo" and two more to who asks for demo.Echo; the parameter
 * "protocol" names another scheme for them. Nothing can be published there, and who does so is told
 * that it is done. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_STATIC_H
#define SPOKEI_CLUSTER_REGISTRY_STATIC_H

#include <spoke/registry.h>

extern const struct spoke_registry spokei_registry_static;

#endif
