/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of open files of the process, each connection being one. */
#ifndef COMMAND_FILES_H
#define COMMAND_FILES_H

#include <stdint.h>

/* Raises the limit to at least `count` files, or as far as the system allows; never lowers it.
 * Returns the limit. */
uint64_t files_raise(uint64_t count);

#endif
