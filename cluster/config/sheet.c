/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up sections and values of a parsed configuration file, and formats messages about
 * them. */
#include "cluster/config/sheet.h"

#include "core/base/log.h"
#include "core/text/hide.h"
#include "core/text/secret.h"
#include "core/text/similar.h"

#include <stdio.h>

#define SHOWN 96u /* bytes of a value in a message, with the NUL */

static bool is_same(const char *text, struct spoke_span span)
{
	return strlen(text) == span.len &&
	       (span.len == 0 || memcmp(text, span.data, span.len) == 0);
}

const struct spokei_part *spokei_sheet_part(const struct spokei_sheet *sheet,
					    enum spokei_section kind, struct spoke_span name)
{
	for (size_t i = 0; i < sheet->part_count; i++) {
		const struct spokei_part *part = &sheet->parts[i];

		if (part->kind == kind && is_same(part->name, name))
			return part;
	}
	return NULL;
}

const struct spokei_part *spokei_sheet_method(const struct spokei_sheet *sheet,
					      struct spoke_span service, const char *method)
{
	for (size_t i = 0; i < sheet->part_count && service.len > 0; i++) {
		const struct spokei_part *part = &sheet->parts[i];

		if (part->kind == SPOKEI_IN_METHOD && strlen(part->name) > service.len + 1 &&
		    memcmp(part->name, service.data, service.len) == 0 &&
		    part->name[service.len] == '.' &&
		    strcmp(part->name + service.len + 1, method) == 0)
			return part;
	}
	return NULL;
}

const struct spokei_entry *spokei_sheet_entry(const struct spokei_part *part, enum spokei_key key)
{
	const struct spokei_entry *entry = part ? part->first : NULL;

	while (entry && entry->key != key)
		entry = entry->next;
	return entry;
}

void spokei_sheet_show(const char *value, char *out, size_t size)
{
	const char *colon = strchr(value, ':');
	bool hides = colon && (strchr(colon, '@') || strstr(colon, "pass"));
	const char *shown = hides ? "..." : value;
	const char *at = out;

	(void)spokei_log_escape(out, size, shown, strlen(shown));
	/* The value is shown without quotation marks, so its own are not escaped. */
	while (*at) {
		at += *at == '\\' && (at[1] == '\\' || at[1] == '"');
		*out++ = *at++;
	}
	*out = '\0';
}

static const char *key_at(const void *of, size_t i)
{
	(void)of;
	return spokei_key_in_file((enum spokei_key)i);
}

/* Returns whether there is a key of this name; `*ret_secret`: one of that name is a secret. */
static bool is_key(const char *name, bool *ret_secret)
{
	bool found = false;

	*ret_secret = false;
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (strcmp(key_at(NULL, i), name) != 0)
			continue;
		found = true;
		*ret_secret |= spokei_key_row((enum spokei_key)i)->secret;
	}
	return found;
}

bool spokei_sheet_is_secret(const char *name)
{
	const char *nearest;
	bool secret;

	if (is_key(name, &secret))
		return secret;
	if (spokei_hide_may_be_secret(name))
		return true;
	nearest = spokei_similar_nearest(name, key_at, NULL, SPOKEI_KEYS);
	return nearest && is_key(nearest, &secret) && secret;
}

void spokei_sheet_sentence(const char *name, const struct spokei_entry *entry, const char *what,
			   char *out, size_t size)
{
	char value[SHOWN];
	size_t len;

	spokei_sheet_show(spokei_key_row(entry->key)->secret ? SPOKEI_SHEET_HIDDEN : entry->text,
			  value, sizeof(value));
	len = (size_t)snprintf(out, size, "%s", name);
	if (len >= size)
		return;
	(void)snprintf(out + len, size - len, ":%u: %s = %s: %s", entry->line,
		       spokei_key_in_file(entry->key), value, what);
	spokei_hide_secrets(out + len);
}

/* Returns the length of the constant part of a section's name, e.g. "method."; `ret_named`: a
 * name must follow. */
static size_t fixed_part(enum spokei_section section, bool *ret_named)
{
	const char *name = spokei_section_name(section);
	const char *dot = strchr(name, '.');

	*ret_named = dot != NULL;
	return dot ? (size_t)(dot - name) + 1 : strlen(name);
}

bool spokei_sheet_heading(const char *heading, enum spokei_section *ret_kind, const char **ret_name)
{
	for (unsigned i = 0; i < SPOKEI_SECTIONS; i++) {
		enum spokei_section section = (enum spokei_section)i;
		bool named;
		size_t len = fixed_part(section, &named);

		if (strncmp(heading, spokei_section_name(section), len) != 0 ||
		    (heading[len] != '\0') != named)
			continue;
		*ret_kind = section;
		*ret_name = heading + len;
		return true;
	}
	return false;
}

/* Returns a section's name up to its dot, for spelling suggestions. */
static const char *section_at(const void *of, size_t i)
{
	static const char *const names[SPOKEI_SECTIONS] = {
		[SPOKEI_IN_CONSUMER] = "consumer", [SPOKEI_IN_SERVICE] = "service",
		[SPOKEI_IN_METHOD] = "method",     [SPOKEI_IN_PROVIDER] = "provider",
		[SPOKEI_IN_REGISTRY] = "registry", [SPOKEI_IN_LEASE] = "lease",
		[SPOKEI_IN_COMET] = "comet",       [SPOKEI_IN_ENGINE] = "engine",
	};

	(void)of;
	return names[i];
}

bool spokei_sheet_guess(const char *heading, enum spokei_section *ret_kind)
{
	char first[SHOWN];
	const char *nearest;

	(void)spokei_log_escape(first, sizeof(first), heading, strcspn(heading, "."));
	nearest = spokei_similar_nearest(first, section_at, NULL, SPOKEI_SECTIONS);
	for (unsigned i = 0; i < SPOKEI_SECTIONS && nearest; i++) {
		if (strcmp(section_at(NULL, i), nearest) != 0)
			continue;
		*ret_kind = (enum spokei_section)i;
		return true;
	}
	return false;
}

void spokei_sheet_fini(struct spokei_sheet *sheet)
{
	const struct spoke_env *env = sheet->env;

	spokei_free(env, sheet->entries, sheet->entry_room, sizeof(*sheet->entries));
	spokei_free(env, sheet->parts, sheet->part_room, sizeof(*sheet->parts));
	if (sheet->text)
		spokei_secret_wipe(sheet->text, sheet->text_size);
	spokei_free(env, sheet->text, 1, sheet->text_size);
	*sheet = (struct spokei_sheet){ .env = env };
}
