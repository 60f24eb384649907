/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a directory: list.c applies lists, pick.c chooses endpoints, changes.c handles
 * their changes, life.c has the rest.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_PARTS_H
#define SPOKEI_CLUSTER_ENDPOINTS_PARTS_H

#include "cluster/endpoints/directory.h"

/* Callbacks of endpoints. */
extern const struct spokei_endpoint_up spokei_directory_endpoint_up;

/* Frees a removed endpoint once nothing uses it. */
void spokei_directory_bury_if_over(struct spokei_endpoint *endpoint);

/* Removes an endpoint without a place, and frees it once nothing uses it. */
void spokei_directory_remove(struct spokei_directory *directory, struct spokei_endpoint *endpoint);

/* Frees all listed endpoints, which have no attempts in flight. */
void spokei_directory_forget(struct spokei_directory *directory);

/* Returns a random number, which may be predictable. */
uint64_t spokei_directory_dice(struct spokei_directory *directory);

#endif
