/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a process of the demo, where a visitor may freeze, kill or drain it. */
#ifndef DEMO_PAGE_H
#define DEMO_PAGE_H

#include "examples/demo/report.h"

#include <stdbool.h>

/* Opens it at that address, with the token that the environment says, and tells the driver.
 * `drains`: it can be drained. Returns its address, or NULL: a sentence was written to standard
 * error. */
const char *page_open(struct report *report, const char *name, const char *listen, bool drains);

#endif
