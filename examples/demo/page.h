/* SPDX-License-Identifier: Apache-2.0 */
/* The admin page of a process of the demo, with actions to freeze, kill or drain it. */
#ifndef DEMO_PAGE_H
#define DEMO_PAGE_H

#include "examples/demo/report.h"

#include <stdbool.h>

/* Opens the page, with the token of the environment, and reports its address to the driver.
 * `drains`: offer the action drain. Returns the address, or prints an error and returns NULL. */
const char *page_open(struct report *report, const char *name, const char *listen, bool drains);

#endif
