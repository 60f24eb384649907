/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up policies by name. */
#ifndef COMMAND_POLICIES_H
#define COMMAND_POLICIES_H

#include <spoke/policy.h>

#include <stdbool.h>

struct options;

/* Converts the value of the last option. Prints an error and returns false if it is unknown. */
bool policies_take(const struct options *options, const struct spoke_policy **ret_policy);

#endif
