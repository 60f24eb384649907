/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the settings of an engine, as served by its admin page (/settings), with the source of each
 * value. The input is not trusted, see fields.h.
 */
#ifndef COMMAND_SETTINGS_VIEW_H
#define COMMAND_SETTINGS_VIEW_H

#include "examples/spoke/screen.h"

#include <spoke/value.h>

/* Is the value such a document? */
bool settings_view_is_one(struct spoke_value value);

/* Draws it. `address` is that of the page. */
void settings_view_draw(struct screen *screen, struct spoke_value settings, const char *address);

#endif
