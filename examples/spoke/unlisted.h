/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a registry gives no provider. */
#ifndef COMMAND_UNLISTED_H
#define COMMAND_UNLISTED_H

#include <spoke/engine.h>

#include <stdbool.h>

/* Prints what the engine has reported about the registry and its entries on stderr: why it does not
 * answer, and which entries were passed over. `connected`: other errors are about connections, and
 * are left out. */
void unlisted_print(const struct spoke_engine *engine, const char *verb, bool connected);

/* Returns whether a registry has not answered. */
bool unlisted_is_unanswered(const struct spoke_engine *engine);

#endif
