/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files of the machine. A replaced file keeps its permissions, a new one gets those of the
 * umask; owner and group are the process's. A symbolic link is replaced by the file. The temporary
 * file is <path>.<process>-<number>.tmp and remains only if the process dies before the rename. See
 * filelock.h for locks. The context is not used; any thread.
 */
#ifndef SPOKEI_CORE_HOST_FILES_H
#define SPOKEI_CORE_HOST_FILES_H

#include <spoke/env.h>

extern const struct spoke_files spokei_host_files;

#endif
