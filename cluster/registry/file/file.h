/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in a file that the processes of one machine share. */
#ifndef SPOKEI_CLUSTER_REGISTRY_FILE_FILE_H
#define SPOKEI_CLUSTER_REGISTRY_FILE_FILE_H

#include <spoke/registry.h>

extern const struct spoke_registry spokei_registry_file;

#endif
