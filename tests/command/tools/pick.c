/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Picks values out of lines of JSON for shell scripts. For each line of stdin, which must be an
 * object, prints the values of the keys, separated by spaces; "a.b" is a nested key, "-" a missing
 * value.
 *
 *     pick KEY... <lines
 */
#include "examples/spoke/json.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1048576

static struct spoke_value find(struct spoke_value value, char *path)
{
	while (path) {
		char *dot = strchr(path, '.');

		if (dot)
			*dot = '\0';
		if (spoke_value_get(value, path, &value) != SPOKE_OK)
			return (struct spoke_value){ 0 };
		path = dot ? dot + 1 : NULL;
	}
	return value;
}

static void print_keys(struct spoke_value line, char **keys, int count)
{
	for (int i = 0; i < count; i++) {
		char path[256];
		struct spoke_value value;

		(void)snprintf(path, sizeof(path), "%s", keys[i]);
		value = find(line, path);
		printf("%s", i > 0 ? " " : "");
		if (value.len > 0)
			json_print(value, SPOKE_JSON_LINE, stdout);
		else
			printf("-");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	static char line[LINE_MAX_BYTES];
	struct spoke_builder builder;
	int number = 0;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	while (fgets(line, sizeof(line), stdin)) {
		struct spoke_json_error error = { 0, "" };
		struct spoke_value value;
		size_t count;

		number++;
		spoke_builder_reset(&builder);
		if (spoke_json_read(line, strlen(line), &builder, &count, &error) ||
		    spoke_builder_finish_value(&builder, &value) ||
		    spoke_value_type(value) != SPOKE_VALUE_MAP) {
			(void)fprintf(stderr, "pick: line %d, byte %zu: %s\n", number, error.at,
				      error.what);
			return 1;
		}
		print_keys(value, argv + 1, argc - 1);
	}
	spoke_builder_fini(&builder);
	return 0;
}
