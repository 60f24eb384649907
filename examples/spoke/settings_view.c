/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the settings of an engine: a paragraph for each file and each owner. */
#include "examples/spoke/settings_view.h"

#include "examples/spoke/fields.h"

#include <inttypes.h>
#include <string.h>

#define KEY_WIDTH 28
#define VALUE_WIDTH 24

bool settings_view_is_one(struct spoke_value value)
{
	size_t len;

	return spoke_value_array_len(field_child(value, "owners"), &len) == SPOKE_OK;
}

static void draw_file(struct screen *screen, struct spoke_value file)
{
	uint64_t reloads = field_count(file, "reloads");
	uint64_t messages = field_count(file, "messages");
	bool failed = *field_text(file, "error") != '\0';

	screen_print(screen, "%s: ", field_text(file, "name"));
	if (reloads == 0)
		screen_print(screen, "not reloaded since the start\n");
	else
		screen_print(screen, "%s %.0f s ago, reload %" PRIu64 "\n",
			     failed ? "rejected" : "reloaded", field_number(file, "ago_ms") / 1000,
			     reloads);
	if (messages == 0)
		return;
	screen_colour(screen, failed ? TERMINAL_RED : TERMINAL_NORMAL);
	screen_print(screen, "  %s\n", field_text(file, "text"));
	screen_colour(screen, TERMINAL_NORMAL);
	if (messages > 1)
		screen_print(screen, "  and %" PRIu64 " more\n", messages - 1);
}

static void draw_setting(struct screen *screen, struct spoke_value setting, const char *file)
{
	const char *origin = field_text(setting, "origin");
	const char *value = field_text(setting, "value");

	screen_print(screen, "  %-*s %-*s ", KEY_WIDTH, field_text(setting, "key"), VALUE_WIDTH,
		     *value ? value : "-");
	if (strcmp(origin, "file") == 0)
		screen_print(screen, "%s:%" PRIu64 "\n", file, field_count(setting, "line"));
	else
		screen_print(screen, "%s\n", origin);
}

static void draw_owner(struct screen *screen, struct spoke_value owner)
{
	struct spoke_cursor settings = field_list(owner, "settings");
	struct spoke_value setting;
	const char *name;

	screen_colour(screen, TERMINAL_BOLD);
	name = field_text(owner, "name");
	screen_print(screen, "\n%s%s%s\n", field_text(owner, "kind"), *name ? " " : "", name);
	screen_colour(screen, TERMINAL_NORMAL);
	while (spoke_cursor_next(&settings, &setting))
		draw_setting(screen, setting, field_text(owner, "file"));
}

void settings_view_draw(struct screen *screen, struct spoke_value settings, const char *address)
{
	struct spoke_cursor files = field_list(settings, "files");
	struct spoke_cursor owners = field_list(settings, "owners");
	uint64_t more = field_count(settings, "more");
	struct spoke_value one;

	screen_print(screen, "settings in force at %s\n", address);
	while (spoke_cursor_next(&files, &one))
		draw_file(screen, one);
	while (spoke_cursor_next(&owners, &one))
		draw_owner(screen, one);
	if (more > 0)
		screen_print(screen, "\n%" PRIu64 " more are not shown\n", more);
}
