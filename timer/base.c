/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed assertions: the only place where the library writes to stderr and aborts.
 */
#include "timer/base.h"

#include <stdio.h>
#include <stdlib.h>

void spokei_assert_failed(const char *condition, const char *file, int line)
{
	(void)fprintf(stderr, "spoke: %s:%d: assertion failed: %s\n", file, line, condition);
	abort();
}
