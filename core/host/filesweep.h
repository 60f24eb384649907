/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the files that dead processes left beside a file. */
#ifndef SPOKEI_CORE_HOST_FILESWEEP_H
#define SPOKEI_CORE_HOST_FILESWEEP_H

#include <spoke/env.h>

/* sweep() of struct spoke_files. */
SPOKE_MUST_USE int spokei_filesweep(void *ctx, const char *path);

#endif
