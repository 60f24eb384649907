/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a directory have of each other: directory_list.c keeps the list,
 * directory_pick.c says who takes a call, directory_life.c has the rest.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_PARTS_H
#define SPOKEI_CLUSTER_ENDPOINTS_PARTS_H

#include "cluster/endpoints/directory.h"

/* What the directory hears of its endpoints. */
extern const struct spokei_endpoint_up spokei_directory_endpoint_up;

/* Frees a removed endpoint once nothing uses it. */
void spokei_directory_bury_if_over(struct spokei_endpoint *endpoint);

/* An endpoint that sits nowhere any more goes, as soon as nothing holds it. */
void spokei_directory_remove(struct spokei_directory *directory, struct spokei_endpoint *endpoint);

/* Nobody is listed any more; none of them has an attempt under way. */
void spokei_directory_forget(struct spokei_directory *directory);

/* A random number. Nobody needs to be kept from foreseeing it. */
static inline uint64_t spokei_directory_dice(struct spokei_directory *directory)
{
	uint64_t z = directory->dice += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
