/* SPDX-License-Identifier: Apache-2.0 */
/* The balancers of the library. */
#ifndef SPOKEI_CLUSTER_BALANCER_BALANCERS_H
#define SPOKEI_CLUSTER_BALANCER_BALANCERS_H

#include <spoke/balancer.h>

/* In the order of their names in documents; NULL after the last. */
extern const struct spoke_balancer *const spokei_balancers[];

#endif
