/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls behind the golden frames in MessagePack: methods, arguments and replies. Their values
 * are packed by the public builder.
 */
#ifndef TESTS_TRANSPORT_DUBBO_SHAPES_H
#define TESTS_TRANSPORT_DUBBO_SHAPES_H

#include "tests/transport/dubbo_frames.h"

#define SHAPES 57

typedef void pack_fn(struct spoke_builder *to);

/* The calling application and its extra attachment. */
enum from {
	FIRST, /* application interop-consumer */
	FIRST_K1,
	CONSUMER_2, /* application interop-consumer2 */
};

struct shape {
	unsigned uses; /* number of times it was sent */
	enum spokei_kind kind;
	bool one_way;
	enum from from;
	const char *method; /* requests only */
	const char *types;
	size_t arg_count;
	pack_fn *pack;       /* arguments, result, or fields of an exception */
	pack_fn *type_names; /* generic calls only */
	const char *version;
	const char *group;
	const char *error_class; /* exceptions only */
	unsigned completed;      /* if not 0: completed tasks in the text of a rejection */
};

extern const struct shape shapes[SHAPES];

#endif
