/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine's status, as its admin page tells it (/status), drawn for people. Whatever is there is
 * taken as a stranger's: what is missing or of another type is shown as nothing, texts are escaped.
 */
#ifndef COMMAND_STATUS_VIEW_H
#define COMMAND_STATUS_VIEW_H

#include "examples/spoke/screen.h"

#include <spoke/value.h>

#include <stdbool.h>

/* Is it a status, and not what somebody else answers? */
bool status_view_is_one(struct spoke_value value);

/* One line: who it is, and how it does. */
void status_view_head(struct screen *screen, struct spoke_value status, const char *address);

/* All else: the wheel, consumers and providers, tickets, events. On a live screen as much as has
 * room. */
void status_view_body(struct screen *screen, struct spoke_value status);

#endif
