/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a document as the arguments of a call. */
#include "core/json/json.h"

#include "core/value/builder.h"
#include "core/value/shape.h"

/* Replaces a single array by its items. A typed array is an argument itself. */
static void open_list(struct spoke_span *args, size_t *count)
{
	const unsigned char *at = args->data;
	const struct spokei_shape *shape;

	if (*count != 1 || spokei_shapes[*at].each != 1)
		return;
	shape = &spokei_shapes[*at];
	*count = (size_t)spokei_shape_number(shape, at);
	*args = (struct spoke_span){ at + 1 + shape->width, args->len - 1 - shape->width };
}

/* Results and limits are the caller's; a struct would only be taken apart again. */
/* NOLINTNEXTLINE(readability-function-size) */
int spokei_json_read_args(char *text, size_t len, const struct spoke_value_limits *limits,
			  struct spokei_buffer *out, struct spoke_span *ret_args, size_t *ret_count,
			  struct spoke_json_error *ret_error)
{
	struct spoke_span args;
	struct spoke_builder builder;
	size_t count;
	int error;

	spokei_builder_init_buffer(&builder, out, limits);
	error = spoke_json_read(text, len, &builder, &count, ret_error);
	if (!error && count > 1) {
		error = SPOKE_ESYNTAX;
		*ret_error = (struct spoke_json_error){ len,
							"more than one value; write an array" };
	}
	if (error) {
		spokei_builder_drop(&builder);
		return error;
	}
	error = spoke_builder_finish(&builder, &args);
	SPOKE_ASSERT(error == SPOKE_OK);
	open_list(&args, &count);
	*ret_args = args;
	*ret_count = count;
	return SPOKE_OK;
}
