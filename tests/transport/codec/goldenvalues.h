/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of tests/golden/hessian2-values.tsv: for each row a body in Hessian 2 as Java wrote
 * it, and the msgpack values that spoke makes of it. The values are derived from the column `wire`,
 * not by the code under test. A malformed row ends the program.
 */
#ifndef TESTS_TRANSPORT_CODEC_GOLDENVALUES_H
#define TESTS_TRANSPORT_CODEC_GOLDENVALUES_H

#include "transport/codec/codec.h"

#define GOLDEN_VALUES 450u

struct golden_value {
	const char *name; /* e.g. "list.self" */
	/* The body of a row with one value is a reply with marker 1. */
	enum spokei_codec_part part;
	struct spoke_span body;
	struct spoke_span values;
	bool cycle; /* reading needs the limit `cycles` */
};

/* Calls `take` with each row, which is borrowed for the call. Returns the number of rows. */
size_t golden_values_each(void (*take)(const struct golden_value *row, void *arg), void *arg);

#endif
