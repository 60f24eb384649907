/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a request has as text: the values of its query, and its header lines. */
#include "transport/wire/http/parts.h"

#include "core/text/encoding.h"
#include "core/text/option.h"
#include "core/value/builder.h"
#include "transport/http/request.h"
#include "transport/wire/message.h"

#include <spoke/json.h>

/* --- the query
 *
 * Makes arguments of a query: the values of "name=value", in their order. */

/* Packs JSON, or else a text. Overwrites `text`. */
static int pack_argument(struct spoke_builder *builder, char *text, size_t len)
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
	return pack_argument(builder, text, len);
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

/* --- header lines
 *
 * Reads the header lines of an HTTP request that concern the call: its time, the service's version
 * and group, and attachments. */

#define OK 200
#define BAD_REQUEST 400
#define TIME_MAX 32u /* bytes of a time as text */
#define NS_PER_MS UINT64_C(1000000)
#define GRPC_DIGITS 8u
#define NAME_MAX_LEN 256u   /* bytes of an attachment's name */
#define TOKEN "token"       /* the attachment that "Authorization: Bearer" becomes */
#define VALUE_MAX_LEN 8192u /* bytes of its value; a head has no more */

static const char attachment_mark[] = "spoke-attachment-";
#define ATTACHMENT_MARK (sizeof(attachment_mark) - 1)

static bool take_once(bool *seen)
{
	bool first = !*seen;

	*seen = true;
	return first;
}

static const char bearer[] = "bearer ";
#define BEARER (sizeof(bearer) - 1)

/* Cuts the token out of the value of "Authorization"; other schemes are not for spoke. */
static bool take_bearer(struct spoke_span *value)
{
	if (value->len <= BEARER ||
	    !spokei_span_is_any_case(spokei_span(value->data, BEARER), bearer))
		return false;
	*value = spokei_span_after(*value, BEARER);
	while (value->len > 0 && *(const char *)value->data == ' ')
		*value = spokei_span_after(*value, 1);
	return value->len > 0;
}

/* Returns the name of the attachment in this header; { 0 }: it is none. Leaves its value in
 * *value. */
static struct spoke_span attachment_of(struct spoke_span name, struct spoke_span *value,
				       struct spokei_http_foreign *seen)
{
	static const struct spoke_span none;

	if (spokei_span_is_any_case(name, "traceparent"))
		return take_once(&seen->parent) ? name : none;
	if (spokei_span_is_any_case(name, "tracestate"))
		return take_once(&seen->state) ? name : none;
	if (spokei_span_is_any_case(name, "authorization"))
		return take_bearer(value) ? spokei_span(TOKEN, strlen(TOKEN)) : none;
	if (name.len <= ATTACHMENT_MARK ||
	    !spokei_span_is_any_case(spokei_span(name.data, ATTACHMENT_MARK), attachment_mark))
		return none;
	return spokei_span_after(name, ATTACHMENT_MARK);
}

/* Returns whether a value is as it is, without %XX: such a header has rules of its own. */
static bool is_foreign(struct spoke_span name)
{
	return !spokei_span_is_any_case(spokei_span(name.data, name.len < ATTACHMENT_MARK
								       ? name.len
								       : ATTACHMENT_MARK),
					attachment_mark);
}

/* Rounds up; a time that is over is below 0. */
static int64_t to_ms(uint64_t ns)
{
	return ns == 0 ? -1 : (int64_t)(ns / NS_PER_MS + (ns % NS_PER_MS != 0));
}

/* Reads e.g. "250ms". */
static bool read_time(struct spoke_span value, int64_t *ret_ms)
{
	static const struct spokei_option row = {
		.name = "Spoke-Timeout",
		.kind = SPOKEI_OPTION_DURATION,
		.max = UINT64_C(1000) * 86400 * 1000000000,
		.or_none = true,
	};
	char text[TIME_MAX];
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t ns;

	if (value.len >= sizeof(text))
		return false;
	memcpy(text, value.data, value.len);
	text[value.len] = '\0';
	if (spokei_option_read(&row, text, false, &ns, why, sizeof(why)))
		return false;
	*ret_ms = to_ms(ns);
	return true;
}

/* Reads gRPC's form: at most eight digits, and a unit. */
static bool read_grpc_time(struct spoke_span value, int64_t *ret_ms)
{
	static const char units[] = "numSMH";
	static const uint64_t ns_of[] = {
		1, 1000, 1000000, 1000000000, UINT64_C(60000000000), UINT64_C(3600000000000),
	};
	const char *text = value.data;
	const char *unit;
	uint64_t number = 0;
	uint64_t ns;

	if (value.len < 2 || value.len > GRPC_DIGITS + 1)
		return false;
	unit = memchr(units, text[value.len - 1], sizeof(units) - 1);
	for (size_t i = 0; i + 1 < value.len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	if (unit == NULL)
		return false;
	ns = ns_of[unit - units];
	*ret_ms = to_ms(number > UINT64_MAX / ns ? UINT64_MAX : number * ns);
	return true;
}

static const char twice[] = "a header of spoke, or one about the body or the site, is there twice";

/* Takes the value of a header that may occur only once. */
static const char *take(struct spoke_span value, struct spoke_span *ret)
{
	if (ret->data != NULL)
		return twice;
	*ret = value;
	return NULL;
}

/* Reads the time of one of two headers, of which a request has at most one. */
static const char *take_time(struct spoke_span value, struct spokei_http_fields *ret,
			     bool (*parse)(struct spoke_span value, int64_t *ret_ms),
			     const char *bad)
{
	if (ret->timed)
		return "Spoke-Timeout or grpc-timeout: the time is there twice";
	ret->timed = true;
	return parse(value, &ret->timeout_ms) ? NULL : bad;
}

/* Reads one line. Returns NULL, or why it is refused. */
static const char *read_field(struct spoke_span name, struct spoke_span value,
			      struct spokei_http_fields *ret)
{
	switch (name.len) {
	case 11:
		return spokei_span_is_any_case(name, "spoke-group") ? take(value, &ret->group)
								    : NULL;
	case 12:
		if (spokei_span_is_any_case(name, "content-type"))
			return take(value, &ret->type);
		if (spokei_span_is_any_case(name, "grpc-timeout"))
			return take_time(value, ret, read_grpc_time,
					 "grpc-timeout: write at most eight digits and one of H, "
					 "M, S, m, u and n, e.g. 250m");
		return NULL;
	case 13:
		if (spokei_span_is_any_case(name, "spoke-version"))
			return take(value, &ret->version);
		if (spokei_span_is_any_case(name, "spoke-timeout"))
			return take_time(value, ret, read_time,
					 "Spoke-Timeout: write a number and a unit, e.g. 250ms or "
					 "1.5s");
		return NULL;
	case 14:
		return spokei_span_is_any_case(name, "sec-fetch-site") ? take(value, &ret->site)
								       : NULL;
	case 16:
		return spokei_span_is_any_case(name, "content-encoding")
			       ? take(value, &ret->encoding)
			       : NULL;
	default:
		return NULL;
	}
}

void spokei_http_fields_note(void *arg, struct spoke_span name, struct spoke_span value)
{
	struct spokei_http_fields *fields = arg;
	const char *why = read_field(name, value, fields);

	if (fields->why == NULL)
		fields->why = why;
	fields->attachments += attachment_of(name, &value, &fields->seen).len > 0;
}

int spokei_http_fields_check(const struct spokei_wire_limits *limits,
			     struct spokei_http_fields *fields)
{
	if (fields->why == NULL &&
	    (fields->version.len > limits->name_max || fields->group.len > limits->name_max))
		fields->why = "Spoke-Version or Spoke-Group is too long";
	if (fields->why == NULL && fields->attachments > SPOKEI_ATTACHMENTS_MAX)
		fields->why = "at most 256 attachments are allowed";
	return fields->why ? BAD_REQUEST : OK;
}

/* Returns whether the type, without parameters, is this one. */
static bool is_type(struct spoke_span type, const char *name)
{
	const char *text = type.data;
	size_t len = strlen(name);

	if (type.len < len || !spokei_span_is_any_case(spokei_span(text, len), name))
		return false;
	while (len < type.len && (text[len] == ' ' || text[len] == '\t'))
		len++;
	return len == type.len || text[len] == ';';
}

/* The type that curl sends by default is taken as JSON, too, if no page can have sent it. */
const char *spokei_http_fields_type(const struct spokei_http_fields *fields, bool of_page)
{
	if (fields->encoding.data && !spokei_span_is_any_case(fields->encoding, "identity"))
		return "Content-Encoding: only identity is supported";
	if (fields->type.data == NULL || is_type(fields->type, "application/json"))
		return NULL;
	if (!of_page && is_type(fields->type, "application/x-www-form-urlencoded"))
		return NULL;
	return "Content-Type: send application/json";
}

/* Names of headers have no case, so an attachment's name is in lower case. */
static int pack_name(struct spoke_builder *builder, struct spoke_span name)
{
	char text[NAME_MAX_LEN];

	if (name.len > sizeof(text))
		return SPOKE_ETOOLARGE;
	for (size_t i = 0; i < name.len; i++)
		text[i] = spokei_lower(((const char *)name.data)[i]);
	spoke_pack_str(builder, text, name.len);
	return SPOKE_OK;
}

/* A value may have %XX for bytes that a header cannot have; one by foreign rules has none. */
static int pack_value(struct spoke_builder *builder, struct spoke_span value, bool foreign)
{
	char text[VALUE_MAX_LEN];
	size_t len = value.len;

	if (len > sizeof(text))
		return SPOKE_ESYNTAX;
	if (foreign)
		memcpy(text, value.data, len);
	else if (spokei_percent_decode(value.data, value.len, text, &len) != SPOKEI_PERCENT_FINE)
		return SPOKE_ESYNTAX;
	if (!spokei_utf8_all((const unsigned char *)text, len))
		return SPOKE_ESYNTAX;
	spoke_pack_str(builder, text, len);
	return SPOKE_OK;
}

int spokei_http_fields_attach(const struct spokei_wire_limits *limits, struct spoke_span lines,
			      size_t count, struct spokei_buffer *out)
{
	struct spokei_http_foreign seen = { false, false };
	struct spoke_builder builder;
	struct spoke_span name;
	struct spoke_span value;
	struct spoke_value map;
	int error = SPOKE_OK;

	spokei_builder_init_buffer(&builder, out, &limits->value);
	spoke_pack_map(&builder, count);
	while (error == SPOKE_OK && spokei_http_next_field(&lines, &name, &value)) {
		struct spoke_span key = attachment_of(name, &value, &seen);

		if (key.len == 0)
			continue;
		error = pack_name(&builder, key);
		if (error == SPOKE_OK)
			error = pack_value(&builder, value, is_foreign(name));
	}
	if (error == SPOKE_OK)
		error = spoke_builder_finish_value(&builder, &map);
	if (error == SPOKE_OK)
		error = spokei_attachments_check(map, false);
	else
		spokei_builder_drop(&builder);
	return error;
}
