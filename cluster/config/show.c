/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the table of keys for users. */
#include "cluster/config/table.h"

#include <spoke/config.h>

#include <stdio.h>

static const char *const kinds[] = {
	[SPOKEI_OPTION_DURATION] = "duration",
	[SPOKEI_OPTION_SIZE] = "size",
	[SPOKEI_OPTION_COUNT] = "count",
	[SPOKEI_OPTION_BOOL] = "boolean",
	[SPOKEI_OPTION_NAME] = "name",
	[SPOKEI_OPTION_TEXT] = "text",
	[SPOKEI_OPTION_LIST] = "list",
	[SPOKEI_OPTION_DELAY] = "duration or percentile",
	[SPOKEI_OPTION_SPIN] = "duration, auto or off",
};

static bool is_measure(enum spokei_option_kind kind)
{
	return kind == SPOKEI_OPTION_DURATION || kind == SPOKEI_OPTION_DELAY ||
	       kind == SPOKEI_OPTION_SPIN || kind == SPOKEI_OPTION_SIZE ||
	       kind == SPOKEI_OPTION_COUNT;
}

static void print_range(const struct spokei_option *option, char *out, size_t size)
{
	char min[32];
	char max[32];

	*out = '\0';
	if (option->kind == SPOKEI_OPTION_NAME)
		spokei_option_list_names(option->names, out, size);
	if (!is_measure(option->kind))
		return;
	spokei_option_print(option->kind, option->min, min, sizeof(min));
	spokei_option_print_max(option, max, sizeof(max));
	(void)snprintf(out, size, "%s%s to %s", option->or_none && option->min ? "0, or " : "", min,
		       max);
}

void spokei_key_print(enum spokei_key key, uint64_t number, bool preset, char *out, size_t size)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const struct spokei_option *option = &row->option;

	if (preset && row->preset)
		(void)snprintf(out, size, "%s", row->preset);
	else if (option->kind == SPOKEI_OPTION_NAME)
		(void)snprintf(out, size, "%s", option->names((unsigned)number));
	else if (option->kind == SPOKEI_OPTION_TEXT || option->kind == SPOKEI_OPTION_LIST)
		*out = '\0';
	else
		spokei_option_print(option->kind, number, out, size);
}

bool spoke_config_key(size_t index, struct spoke_config_key *ret_key)
{
	const struct spokei_key_row *row;
	enum spokei_key key = (enum spokei_key)index;

	if (index >= SPOKEI_KEYS)
		return false;
	row = spokei_key_row(key);
	*ret_key = (struct spoke_config_key){
		.name = spokei_key_in_file(key),
		.kind = kinds[row->option.kind],
		.sentence = row->option.sentence,
		.live = row->live,
	};
	spokei_key_sections(key, "", "", ret_key->sections, sizeof(ret_key->sections));
	spokei_key_print(key, row->option.preset, true, ret_key->preset, sizeof(ret_key->preset));
	print_range(&row->option, ret_key->range, sizeof(ret_key->range));
	return true;
}
