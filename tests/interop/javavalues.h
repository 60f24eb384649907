/* SPDX-License-Identifier: Apache-2.0 */
/* The values of tests/interop/node/values.js as spoke holds them. */
#ifndef TESTS_INTEROP_JAVAVALUES_H
#define TESTS_INTEROP_JAVAVALUES_H

#include <spoke/value.h>

#include <stddef.h>

struct java_value {
	const char *kind;  /* name in values.js */
	const char *bytes; /* MessagePack, in the form that <spoke/value.h> defines */
	size_t len;
	const char *node; /* description that the Node peer prints */
};

/* Copies the value number `index`. Returns false beyond the last one. */
bool java_value(size_t index, struct java_value *ret);

/* Finds a value by its kind. Returns false if there is none. */
bool java_value_find(struct spoke_span kind, struct java_value *ret);

#endif
