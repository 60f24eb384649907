/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the configuration file of --config. */
#include "examples/spoke/settings.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/shown.h"
#include "examples/spoke/target.h"

#include <spoke/comet.h>

#define RETRY_MAX_NS UINT64_C(15000000000) /* the default */

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

bool settings_retries_fit(const char *verb, const char *path, const struct spoke_config *config)
{
	struct spoke_comet_options with = { .listen = NULL };

	spoke_config_comet(config, &with);
	if (with.retry_min_ns <= (with.retry_max_ns ? with.retry_max_ns : RETRY_MAX_NS))
		return true;
	(void)ending_say(VERB_USAGE, verb, "%s: [comet]: retry.min is greater than retry.max",
			 path);
	return false;
}
