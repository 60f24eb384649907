/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the status of an engine, as served by its admin page (/status). The input is not trusted:
 * missing values and values of another type are left out, and texts are escaped.
 */
#ifndef COMMAND_STATUS_VIEW_H
#define COMMAND_STATUS_VIEW_H

#include "examples/spoke/screen.h"

#include <spoke/value.h>

#include <stdbool.h>

/* Is the value a status of spoke? */
bool status_view_is_one(struct spoke_value value);

/* Draws one line: name, address and rates. */
void status_view_head(struct screen *screen, struct spoke_value status, const char *address);

/* Draws the rest: the wheel, consumers and providers, tickets, events. On a live screen as many
 * lines as fit. */
void status_view_body(struct screen *screen, struct spoke_value status);

#endif
