/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the configuration file of --config. */
#include "examples/spoke/settings.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_MAX 1048576u
#define SENTENCE_MAX 4608u

static void show_error(void *arg, const char *sentence)
{
	(void)ending_say(VERB_USAGE, arg, "%s", sentence);
}

bool settings_is_file(const char *verb, const char *path)
{
	if (!target_has_scheme(path))
		return true;
	(void)ending_say(VERB_USAGE, verb, "%s: a URL; write a path instead", shown_of(path).text);
	return false;
}

int settings_load(const char *verb, const char *path, struct spoke_config **ret_config)
{
	union {
		const char *verb;
		void *arg;
	} cast = { .verb = verb };

	if (!path)
		return VERB_OK;
	if (!settings_is_file(verb, path))
		return VERB_USAGE;
	return spoke_config_load(NULL, path, show_error, cast.arg, ret_config) ? VERB_USAGE
									       : VERB_OK;
}

bool settings_page(const char *path, const struct spoke_config *config,
		   spoke_config_message_fn told, void *arg, char **ret_page)
{
	const char *name = spoke_config_get(config, "comet", "page");
	FILE *file = name ? fopen(name, "rb") : NULL;
	const char *wrong = NULL;
	char sentence[SENTENCE_MAX];
	size_t len = 0;

	*ret_page = file ? calloc(1, PAGE_MAX + 2) : NULL;
	if (*ret_page)
		len = fread(*ret_page, 1, PAGE_MAX + 1, file);
	if (name && !file)
		wrong = "the file cannot be read";
	else if (name && !*ret_page)
		wrong = "out of memory";
	else if (name && (len > PAGE_MAX || strlen(*ret_page) != len))
		wrong = "not a text of at most 1048576 bytes";
	if (file)
		(void)fclose(file);
	if (!wrong)
		return true;
	(void)snprintf(sentence, sizeof(sentence), "%s: page = %s: %s", path, name, wrong);
	told(arg, sentence);
	return false;
}
