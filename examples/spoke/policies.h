/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a call when an attempt fails: the policies by their names. */
#ifndef COMMAND_POLICIES_H
#define COMMAND_POLICIES_H

#include <spoke/policy.h>

#include <stdbool.h>

struct options;

/* The policy that the last option names. If there is none, that is said, and false returned. */
bool policies_take(const struct options *options, const struct spoke_policy **ret_policy);

#endif
