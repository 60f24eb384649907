/* SPDX-License-Identifier: Apache-2.0 */
/* Writes log lines to the standard error output. Any thread. */
#ifndef SPOKEI_CORE_HOST_STDERR_H
#define SPOKEI_CORE_HOST_STDERR_H

#include <spoke/env.h>

/* Writes a line with time and level by one system call. Never blocks and never raises SIGPIPE: a
 * line that the reader does not take at once is dropped. */
void spokei_stderr_print(void *ctx, const struct spoke_log_line *line);

/* Returns a variable of the process's environment. */
const char *spokei_stderr_variable(void *ctx, const char *name);

#endif
