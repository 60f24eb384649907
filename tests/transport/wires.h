/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a wire's next(), for tests that look at one of them. */
#ifndef TESTS_TRANSPORT_WIRES_H
#define TESTS_TRANSPORT_WIRES_H

#include "transport/wire/message.h"

#include <spoke/host.h>

/* Finds the end of the frame at the start of `bytes`, whatever its body is. */
static inline int wire_cut(const struct spokei_wire *wire, const struct spokei_wire_limits *limits,
			   struct spokei_cut *cut, struct spoke_span bytes, size_t *ret_len)
{
	struct spokei_reader reader = { .limits = limits, .cut = *cut };
	struct spokei_message message;
	int status;

	spokei_buffer_init(&reader.scratch, spoke_host_env(), SPOKE_VALUE_BYTES_MAX);
	status = wire->next(&reader, bytes, &message);
	spokei_buffer_fini(&reader.scratch);
	*cut = reader.cut;
	*ret_len = reader.len;
	return status == SPOKEI_NEXT_BAD ? 0 : status;
}

/* Reads a complete frame. `memo` and `scratch` may be NULL. Returns 0, or why it cannot be read. */
static inline int wire_read(const struct spokei_wire *wire, const struct spokei_wire_limits *limits,
			    struct spokei_memo *memo, struct spoke_span frame,
			    struct spokei_buffer *scratch, struct spokei_message *ret_message)
{
	struct spokei_reader reader = { .limits = limits, .memo = memo };
	int status;

	if (scratch)
		reader.scratch = *scratch;
	status = wire->next(&reader, frame, ret_message);
	if (scratch)
		*scratch = reader.scratch;
	return status == SPOKEI_NEXT_BAD ? reader.error : status;
}

#endif
