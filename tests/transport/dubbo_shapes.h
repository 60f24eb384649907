/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes that the golden frames in msgpack have: what was called with which values, and what
 * was answered. Values are packed by the builder that users have.
 */
#ifndef TESTS_TRANSPORT_DUBBO_SHAPES_H
#define TESTS_TRANSPORT_DUBBO_SHAPES_H

#include "tests/transport/dubbo_frames.h"

#define SHAPES 57

typedef void pack_fn(struct spoke_builder *to);

/* Who calls, and with what attachment beside. */
enum from {
	FIRST, /* application interop-consumer */
	FIRST_K1,
	SECOND, /* application interop-consumer2 */
};

struct shape {
	unsigned uses; /* how often it was sent */
	enum spokei_kind kind;
	bool one_way;
	enum from from;
	const char *method; /* of requests */
	const char *types;
	size_t arg_count;
	pack_fn *pack;       /* arguments, or the result, or the fields of an exception */
	pack_fn *type_names; /* of generic calls */
	const char *version;
	const char *group;
	const char *error_class; /* of exceptions */
	unsigned completed;      /* refused when so many tasks were, if not 0 */
};

extern const struct shape shapes[SHAPES];

#endif
