/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up policies and serializations by name. */
#ifndef COMMAND_POLICIES_H
#define COMMAND_POLICIES_H

#include <spoke/call.h>
#include <spoke/policy.h>

#include <stdbool.h>

struct options;

/* Convert the value of the last option. Print an error and return false if it is unknown. */
bool policies_take(const struct options *options, const struct spoke_policy **ret_policy);
bool policies_serialization(const struct options *options, enum spoke_serialization *ret);

#endif
