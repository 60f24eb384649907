/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registry whose URL contains the providers of all services:
 * "static://10.0.0.1:20880?backup=10.0.0.2:20880,[::1]:20880" lists
 * "dubbo://10.0.0.1:20880/demo.Echo" and two more for demo.Echo. The parameter "protocol" sets
 * another scheme for them. Publishing succeeds and has no effect. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_STATIC_H
#define SPOKEI_CLUSTER_REGISTRY_STATIC_H

#include <spoke/registry.h>

extern const struct spoke_registry spokei_registry_static;

#endif
