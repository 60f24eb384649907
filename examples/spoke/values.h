/* SPDX-License-Identifier: Apache-2.0 */
/* What a verb sends, from its operands: arguments as JSON, attachments as KEY=VALUE. */
#ifndef COMMAND_VALUES_H
#define COMMAND_VALUES_H

#include <spoke/value.h>

#define VALUES_INPUT_MAX 33554432u /* bytes of JSON that are read */
#define VALUES_ATTACHMENTS_MAX 64u

struct values {
	struct spoke_builder args_builder;
	struct spoke_builder attachments_builder;
	struct spoke_span args;         /* values one after another */
	struct spoke_value attachments; /* { 0 }: none */
	const char *pairs[VALUES_ATTACHMENTS_MAX];
	size_t pair_count;
};

void values_init(struct values *values);

void values_fini(struct values *values);

/*
 * Reads arguments: one JSON array, which is all of them, or values one after another, each an
 * argument. Once: from operands, or from `data`: "@FILE", "@-" (stdin), or JSON itself. Returns
 * VERB_OK, or an exit code when it has said what is wrong.
 */
int values_args(struct values *values, const char *verb, char **operands, int count);
int values_data(struct values *values, const char *verb, const char *data);

/* Is there a Java descriptor for each argument? Returns as above. */
int values_check_types(const struct values *values, const char *verb, const char *types);

/* Notes an attachment, "KEY=VALUE", borrowed. Returns VERB_OK or VERB_USAGE, as above. */
int values_attach(struct values *values, const char *verb, const char *pair);

/* Makes a map of the attachments. */
int values_finish(struct values *values, const char *verb);

#endif
