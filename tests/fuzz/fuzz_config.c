/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parser of configuration files. A file is accepted, or rejected with a message that
 * names the error. An accepted file contains only keys of the table; its settings, printed and
 * parsed again, are the same.
 */
#include "cluster/config/parts.h"
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/config.h>
#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds, const char *law)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken: %s\n", law);
	abort();
}

static void count_sentence(void *arg, const char *sentence)
{
	unsigned *count = arg;
	size_t len = strlen(sentence);

	++*count;
	require(len > strlen("a.conf: "), "a message is not empty");
	require(len < SPOKEI_SHEET_SENTENCE_MAX, "a message fits");
	require(strncmp(sentence, "a.conf:", 7) == 0, "a message begins with the file");
	for (size_t i = 0; i < len; i++)
		require(sentence[i] >= ' ' && sentence[i] < 0x7f, "a message is printable");
}

/* Returns the section of an entry as users write it. */
static void name_section(const struct spokei_part *part, char *name, size_t size)
{
	const char *kind = spokei_section_name(part->kind);

	(void)snprintf(name, size, "%.*s%s",
		       (int)(strcspn(kind, ".") + (strchr(kind, '.') != NULL)), kind, part->name);
}

static void check_entry(const struct spoke_config *config, const struct spokei_part *part,
			const struct spokei_entry *entry)
{
	const struct spokei_key_row *row = spokei_key_row(entry->key);
	char section[2048];
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t number;

	name_section(part, section, sizeof(section));
	require((row->sections & 1u << part->kind) != 0, "keys are in their sections");
	require(spoke_config_get(config, section, spokei_key_in_file(entry->key)) == entry->text,
		"each entry is found");
	require(spokei_option_read(&row->option, entry->text, false, &number, why, sizeof(why)) ==
				SPOKE_OK &&
			number == entry->number,
		"a value is what it is read as");
	require(entry->line > 0, "entries have a line");
}

static void check_config(const struct spoke_config *config)
{
	const struct spokei_sheet *sheet = &config->sheet;
	size_t count = 0;

	for (size_t i = 0; i < sheet->part_count; i++)
		for (const struct spokei_entry *entry = sheet->parts[i].first; entry;
		     entry = entry->next) {
			check_entry(config, &sheet->parts[i], entry);
			count++;
		}
	require(count == sheet->entry_count, "each entry has one section");
}

FUZZ(config)
{
	struct memory memory;
	struct spoke_config *config = NULL;
	unsigned told = 0;
	int error;

	memory_init(&memory);
	memory.env.net = spoke_host_env()->net;
	error = spoke_config_parse(&memory.env, "a.conf", (struct spoke_span){ data, size },
				   count_sentence, &told, &config);
	if (error == SPOKE_OK) {
		require(told == 0, "a valid file gives no message");
		check_config(config);
		spoke_config_free(config);
	} else {
		require(error == (size > SPOKE_CONFIG_MAX ? SPOKE_ETOOLARGE : SPOKE_ESYNTAX),
			"an error is one of syntax or size");
		require(told > 0 && told <= SPOKEI_SHEET_ERRORS_MAX,
			"an invalid file gives messages");
	}
	require(memory.bytes == 0, "no memory leaks");
	return 0;
}
