/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parser of configuration files. A file is accepted, or rejected with a message that
 * names the error. An accepted file contains only keys of the table; its settings, printed and
 * parsed again, are the same.
 */
#include "cluster/config/file.h"
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/config.h>
#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

static void count_sentence(void *arg, const char *sentence)
{
	unsigned *count = arg;
	size_t len = strlen(sentence);

	++*count;
	demand(len > strlen("a.conf: "), "a message is not empty");
	demand(len < SPOKEI_CONFIG_SENTENCE_MAX, "a message fits");
	demand(strncmp(sentence, "a.conf:", 7) == 0, "a message begins with the file");
	for (size_t i = 0; i < len; i++)
		demand(sentence[i] >= ' ' && sentence[i] < 0x7f, "a message is printable");
}

/* Returns the section of an entry as users write it. */
static void name_section(const struct spokei_config_section *section, char *name, size_t size)
{
	(void)snprintf(name, size, "%s%s%s", spokei_section_word(section->kind),
		       spokei_section_is_named(section->kind) ? "." : "", section->name);
}

static void check_entry(const struct spoke_config *config,
			const struct spokei_config_section *section,
			const struct spokei_config_entry *entry)
{
	const struct spokei_key_row *row = spokei_key_row(entry->key);
	char name[2048];
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t number;

	name_section(section, name, sizeof(name));
	demand((row->sections & 1u << section->kind) != 0, "keys are in their sections");
	demand(spoke_config_get(config, name, spokei_key_in_file(entry->key)) == entry->text,
	       "each entry is found");
	demand(spokei_option_read(&row->option, entry->text, false, &number, why, sizeof(why)) ==
			       SPOKE_OK &&
		       number == entry->number,
	       "a value is what it is read as");
	demand(entry->line > 0, "entries have a line");
}

static void check_config(const struct spoke_config *config)
{
	const struct spokei_config_file *file = &config->file;
	size_t count = 0;

	for (size_t i = 0; i < file->section_count; i++)
		for (const struct spokei_config_entry *entry = file->sections[i].first; entry;
		     entry = entry->next) {
			check_entry(config, &file->sections[i], entry);
			count++;
		}
	demand(count == file->entry_count, "each entry has one section");
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
		demand(told == 0, "a valid file gives no message");
		check_config(config);
		spoke_config_free(config);
	} else {
		demand(error == (size > SPOKE_CONFIG_MAX ? SPOKE_ETOOLARGE : SPOKE_ESYNTAX),
		       "an error is one of syntax or size");
		demand(told > 0 && told <= SPOKEI_CONFIG_ERRORS_MAX,
		       "an invalid file gives messages");
	}
	demand(memory.bytes == 0, "no memory leaks");
	return 0;
}
