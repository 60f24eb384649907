/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a settings file as a start would, without its addresses. */
#ifndef COMMAND_STARTABLE_H
#define COMMAND_STARTABLE_H

#include <spoke/config.h>

/* Makes the objects that programs make of the file. Reports values that do not fit together, and
 * files that cannot be used, to `told`. Returns whether there are none. */
bool startable(const char *path, struct spoke_config *config, spoke_config_message_fn told,
	       void *arg);

#endif
