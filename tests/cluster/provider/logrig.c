/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the access log: see logrig.h. */
#include "tests/cluster/provider/logrig.h"

#include <stdlib.h>
#include <string.h>

const struct spoke_provider_options log_to_file = { .access_log = LOG_PATH };

static unsigned checks; /* calls for nothing, at the begin */

void log_begin(const struct spoke_provider_options *options)
{
	assert_int_equal(filterrig_begin(options), 0);
	checks = spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_APPEND);
}

const char *log_file(void)
{
	return spokei_vfiles_get(rig.world.files, LOG_PATH);
}

unsigned log_appends(void)
{
	return spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_APPEND) - checks;
}

unsigned log_count_lines(unsigned *ret_missing)
{
	const char *at = log_file();
	unsigned lines = 0;

	*ret_missing = 0;
	while (at && *at) {
		if (strncmp(at, "... ", 4) == 0)
			*ret_missing += (unsigned)strtoul(at + 4, NULL, 10);
		else
			lines++;
		at = strchr(at, '\n');
		assert_non_null(at);
		at++;
	}
	return lines;
}

unsigned log_count_events(const char *words)
{
	struct spoke_event event = { 0 };
	unsigned count = 0;

	while (spoke_event_get(rig.engines[SERVER], event.number + 1, &event) == 0)
		count += strstr(event.text, words) != NULL;
	return count;
}

void log_serve(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)filterrig_call(rig.echo);
	filterrig_pass(20 * MS);
}
