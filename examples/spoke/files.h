/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of the process: the standard ones, and their limit. */
#ifndef COMMAND_FILES_H
#define COMMAND_FILES_H

#include <stdint.h>

/* Occupies the numbers of standard files that are closed: the next socket or file would take such a
 * number, and with it the output. Their use stays an error. */
void files_hold_standard(void);

/* Raises the limit to at least `count` files, or as far as the system allows; never lowers it.
 * Returns the limit. */
uint64_t files_raise(uint64_t count);

#endif
