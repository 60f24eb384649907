/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the arguments (JSON) and attachments (KEY=VALUE) of a call from the command line. */
#ifndef COMMAND_VALUES_H
#define COMMAND_VALUES_H

#include <spoke/value.h>

#define VALUES_INPUT_MAX 33554432u /* limit of the JSON input, in bytes */
#define VALUES_ATTACHMENTS_MAX 64u

struct values {
	struct spoke_builder args_builder;
	struct spoke_builder attachments_builder;
	struct spoke_span args;         /* concatenated values */
	struct spoke_value attachments; /* { 0 }: none */
	const char *pairs[VALUES_ATTACHMENTS_MAX];
	size_t pair_count;
	char *type_names; /* Java names of the types, separated by commas; NULL: none */
};

void values_init(struct values *values);

void values_fini(struct values *values);

/*
 * Read the arguments: the items of a single JSON array, or one or more JSON values. Call only one
 * of them, once. `data` is "@FILE", "@-" (stdin), or JSON text. Return VERB_OK, or print an error
 * and return an exit code.
 */
int values_args(struct values *values, const char *verb, char **operands, int count);
int values_data(struct values *values, const char *verb, const char *data);

/* Checks that `types` has one Java descriptor per argument. Returns as above. */
int values_check_types(const struct values *values, const char *verb, const char *types);

/* Makes `type_names` from type descriptors that were checked. Returns as above. */
int values_type_names(struct values *values, const char *verb, const char *types);

/* Adds an attachment "KEY=VALUE", borrowed. Returns VERB_OK or VERB_USAGE, as above. */
int values_attach(struct values *values, const char *verb, const char *pair);

/* Builds the map of attachments. */
int values_finish(struct values *values, const char *verb);

#endif
