/* SPDX-License-Identifier: Apache-2.0 */
/* Makes arguments of a query: the values of "name=value", in their order. */
#include "transport/wire/http/parts.h"

#include "core/text/encoding.h"
#include "core/value/builder.h"

#include <spoke/json.h>

/* Packs JSON, or else a text. Overwrites `text`. */
static int pack_value(struct spoke_builder *builder, char *text, size_t len)
{
	char copy[SPOKEI_HTTP_LINE_MAX];
	char packed[3 * SPOKEI_HTTP_LINE_MAX]; /* "1e9," becomes nine bytes */
	struct spoke_json_error wrong;
	struct spoke_builder own;
	struct spoke_span values;
	size_t count;

	memcpy(copy, text, len);
	spoke_builder_init_fixed(&own, packed, sizeof(packed), NULL);
	if (spoke_json_read(copy, len, &own, &count, &wrong) == SPOKE_OK && count == 1 &&
	    spoke_builder_finish(&own, &values) == SPOKE_OK)
		spoke_pack_raw(builder, values);
	else if (spokei_utf8_all((const unsigned char *)text, len))
		spoke_pack_str(builder, text, len);
	else
		return SPOKE_ESYNTAX;
	return SPOKE_OK;
}

/* Decodes "+" and "%XX". */
static int read_value(struct spoke_builder *builder, const char *value, size_t len)
{
	char text[SPOKEI_HTTP_LINE_MAX];

	for (size_t i = 0; i < len; i++)
		text[i] = (char)(value[i] == '+' ? ' ' : value[i]);
	if (spokei_percent_decode(text, len, text, &len) != SPOKEI_PERCENT_FINE)
		return SPOKE_ESYNTAX;
	return pack_value(builder, text, len);
}

int spokei_http_query_read(const struct spokei_wire_limits *limits, struct spoke_span query,
			   struct spokei_buffer *out, struct spoke_span *ret_args,
			   size_t *ret_count)
{
	const char *at = query.data;
	const char *end = at ? at + query.len : NULL;
	struct spoke_builder builder;
	int error = SPOKE_OK;

	*ret_count = 0;
	spokei_builder_init_buffer(&builder, out, &limits->value);
	while (at && at < end && error == SPOKE_OK) {
		const char *next = memchr(at, '&', (size_t)(end - at));
		const char *stop = next ? next : end;
		const char *equals = memchr(at, '=', (size_t)(stop - at));
		const char *value = equals ? equals + 1 : at;

		if (stop > at) {
			error = read_value(&builder, value, (size_t)(stop - value));
			++*ret_count;
		}
		at = stop + 1;
	}
	if (error == SPOKE_OK)
		error = spoke_builder_finish(&builder, ret_args);
	spokei_builder_drop(&builder);
	return error;
}
