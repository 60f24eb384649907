/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads bodies whose bytes were checked: that the values are of the right types and count is what
 * remains to be seen. Everything points into the body.
 */
#include "transport/wire/dubbo_read.h"

#include "transport/wire/dubbo_head.h"

struct reader {
	const struct spokei_wire_limits *limits;
	struct spoke_cursor at;
	int bad; /* the error for values that are not as they should be */
};

/* The attachments that mean something here; NONE where there is no such key. */
struct marks {
	struct spoke_value path;
	struct spoke_value version;
	struct spoke_value group;
	struct spoke_value generic;
	struct spoke_value timeout;
	struct spoke_value countdown;
};

static bool is_map(struct spoke_value value)
{
	return spoke_value_type(value) == SPOKE_VALUE_MAP;
}

/* The text of a value, null being the empty one if that may be. */
static int read_text(const struct reader *reader, struct spoke_value value, bool may_be_null,
		     struct spoke_span *ret)
{
	if (may_be_null && spoke_value_is_nil(value)) {
		*ret = spokei_span(value.data, 0);
		return 0;
	}
	return spoke_value_str(value, ret) == 0 ? 0 : reader->bad;
}

static int read_name(const struct reader *reader, struct spoke_value value, bool may_be_null,
		     struct spoke_span *ret)
{
	int result = read_text(reader, value, may_be_null, ret);

	if (result == 0 && ret->len > reader->limits->name_max)
		return SPOKE_ETOOLARGE;
	return result;
}

static int next_name(struct reader *reader, bool may_be_null, struct spoke_span *ret)
{
	struct spoke_value value;

	if (!spoke_cursor_next(&reader->at, &value))
		return reader->bad;
	return read_name(reader, value, may_be_null, ret);
}

/* --- attachments */

static struct spoke_value *mark_of(struct marks *marks, struct spoke_span key)
{
	switch (key.len) {
	case 3:
		return spokei_span_is(key, "_TO") ? &marks->countdown : NULL;
	case 4:
		return spokei_span_is(key, "path") ? &marks->path : NULL;
	case 5:
		return spokei_span_is(key, "group") ? &marks->group : NULL;
	case 7:
		if (spokei_span_is(key, "version"))
			return &marks->version;
		if (spokei_span_is(key, "timeout"))
			return &marks->timeout;
		return spokei_span_is(key, "generic") ? &marks->generic : NULL;
	default:
		return NULL;
	}
}

static bool is_among(struct spoke_span key, const struct spoke_span *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keys[i].len == key.len && memcmp(keys[i].data, key.data, key.len) == 0)
			return true;
	return false;
}

/* A map of a bounded number of bounded keys, no two of them equal. */
static int read_attachments(const struct reader *reader, struct spoke_value map,
			    struct marks *marks)
{
	struct spoke_span keys[SPOKEI_DUBBO_ATTACHMENTS_MAX];
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;

	if (spoke_cursor_map(map, &pairs) != 0)
		return reader->bad;
	if (pairs.left / 2 > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return SPOKE_ETOOLARGE;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		struct spoke_value *mark;

		if (spoke_value_str(key, &keys[count]) != 0)
			return reader->bad;
		if (keys[count].len > SPOKEI_DUBBO_KEY_MAX)
			return SPOKE_ETOOLARGE;
		if (is_among(keys[count], keys, count))
			return reader->bad;
		mark = mark_of(marks, keys[count]);
		if (mark)
			*mark = value;
		count++;
	}
	return 0;
}

/* A name that an attachment tells anew; null does not. */
static int override_name(const struct reader *reader, struct spoke_value mark,
			 struct spoke_span *name)
{
	if (mark.len == 0 || spoke_value_is_nil(mark))
		return 0;
	return read_name(reader, mark, false, name);
}

/* Milliseconds, as a number or as its digits; what is neither was not told. */
static bool read_ms(struct spoke_value value, int64_t *ret)
{
	struct spoke_span text;
	const unsigned char *at;
	bool negative;
	int64_t ms = 0;

	if (spoke_value_i64(value, ret) == 0)
		return true;
	if (spoke_value_str(value, &text) != 0 || text.len == 0)
		return false;
	at = text.data;
	negative = at[0] == '-';
	if (negative && text.len == 1)
		return false;
	for (size_t i = negative; i < text.len; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
		ms = ms > (INT64_MAX - 9) / 10 ? INT64_MAX : ms * 10 + (at[i] - '0');
	}
	*ret = negative ? -ms : ms;
	return true;
}

static int64_t time_left(const struct marks *marks)
{
	int64_t ms;

	if (read_ms(marks->countdown, &ms))
		return ms > 0 ? ms : -1;
	/* Not above 0, "timeout" is a caller's way to say that it set none. */
	return read_ms(marks->timeout, &ms) && ms > 0 ? ms : 0;
}

/* --- requests */

/* Does a peer that says this version take attachments in replies? Those from 2.0.2 to 2.0.99. */
static bool takes_attachments(struct spoke_span protocol)
{
	const char *text = protocol.data;

	if (protocol.len < 5 || protocol.len > 6 || memcmp(text, "2.0.", 4) != 0)
		return false;
	if (protocol.len == 5)
		return text[4] >= '2' && text[4] <= '9';
	return text[4] >= '1' && text[4] <= '9' && text[5] >= '0' && text[5] <= '9';
}

static int read_names(struct reader *reader, struct spokei_message *message)
{
	struct spoke_span protocol = { 0 };
	int result = next_name(reader, true, &protocol);

	if (result == 0)
		result = next_name(reader, false, &message->service);
	if (result == 0)
		result = next_name(reader, true, &message->version);
	if (result == 0)
		result = next_name(reader, false, &message->method);
	if (result == 0)
		result = next_name(reader, true, &message->types);
	if (result == 0)
		message->bare = !takes_attachments(protocol);
	return result;
}

/* All that follows is arguments, but for the last value, which has to be the attachments. */
static int split_args(struct reader *reader, struct spokei_message *message)
{
	const unsigned char *begin = reader->at.at;
	struct spoke_value last = { 0 };
	size_t count = 0;

	while (spoke_cursor_next(&reader->at, &last))
		count++;
	if (count == 0)
		return reader->bad;
	message->args = spokei_span(begin, (size_t)(last.data - begin));
	message->arg_count = count - 1;
	message->attachments = last;
	return 0;
}

/* Puts what the attachments say over what was said before the arguments. */
static int apply_marks(const struct reader *reader, const struct marks *marks,
		       struct spokei_message *message)
{
	struct spoke_span path = { 0 };
	int result = override_name(reader, marks->path, &path);

	if (result == 0 && path.len > 0)
		message->service = path;
	if (result == 0)
		result = override_name(reader, marks->version, &message->version);
	if (result == 0)
		result = override_name(reader, marks->group, &message->group);
	if (result != 0)
		return result;
	if (spokei_span_is(message->version, SPOKEI_DUBBO_NO_VERSION))
		message->version.len = 0;
	message->timeout_ms = time_left(marks);
	return message->service.len > 0 && message->method.len > 0 ? 0 : reader->bad;
}

static bool is_generic(const struct spokei_message *message)
{
	return spokei_span_is(message->method, SPOKEI_DUBBO_GENERIC) ||
	       spokei_span_is(message->method, SPOKEI_DUBBO_GENERIC_ASYNC);
}

/* The attachment says in which form the arguments are; "gson", "bean" and so on are for Java. */
static int check_form(const struct reader *reader, struct spoke_value mark)
{
	struct spoke_span form = { 0 };
	int result = override_name(reader, mark, &form);

	if (result != 0)
		return result;
	return form.len == 0 || spokei_span_is(form, "true") || spokei_span_is(form, "raw.return")
		       ? 0
		       : SPOKE_EUNSUPPORTED;
}

/* Names of types: null, or an array of texts. */
static int read_type_names(const struct reader *reader, struct spoke_value names, size_t *ret_count)
{
	struct spoke_cursor cursor;
	struct spoke_value value;
	struct spoke_span name;
	int result = 0;

	*ret_count = 0;
	if (spoke_value_is_nil(names))
		return 0;
	if (spoke_cursor_array(names, &cursor) != 0)
		return reader->bad;
	for (; result == 0 && spoke_cursor_next(&cursor, &value); ++*ret_count)
		result = read_name(reader, value, false, &name);
	return result;
}

/* Makes the call that $invoke("name", types, arguments) means. */
static int unfold_generic(const struct reader *reader, struct spokei_message *message)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(message->args);
	struct spoke_cursor args = { 0 };
	struct spoke_value value[3];
	size_t names;
	int result;

	for (unsigned i = 0; i < 3; i++)
		if (message->arg_count != 3 || !spoke_cursor_next(&cursor, &value[i]))
			return reader->bad;
	result = read_name(reader, value[0], false, &message->method);
	if (result == 0)
		result = read_type_names(reader, value[1], &names);
	if (result != 0)
		return result;
	if (spoke_value_is_nil(value[2]))
		args = spoke_cursor_bytes(spokei_span(value[2].data, 0));
	else if (spoke_cursor_array(value[2], &args) != 0)
		return reader->bad;
	message->arg_count = spoke_value_is_nil(value[2]) ? 0 : (size_t)args.left;
	message->args = spoke_cursor_rest(&args);
	message->types.len = 0;
	if (!spoke_value_is_nil(value[1]))
		message->type_names = value[1];
	message->generic = true;
	if (message->method.len == 0 || (names > 0 && names != message->arg_count))
		return reader->bad;
	return 0;
}

int spokei_dubbo_read_request(const struct spokei_wire_limits *limits, struct spoke_span values,
			      struct spokei_message *message)
{
	struct reader reader = { limits, spoke_cursor_bytes(values), SPOKE_EBADREQUEST };
	struct marks marks = { 0 };
	int result = read_names(&reader, message);

	if (result == 0)
		result = split_args(&reader, message);
	if (result == 0)
		result = read_attachments(&reader, message->attachments, &marks);
	if (result == 0)
		result = apply_marks(&reader, &marks, message);
	if (result != 0 || !is_generic(message))
		return result;
	result = check_form(&reader, marks.generic);
	return result == 0 ? unfold_generic(&reader, message) : result;
}

/* --- replies */

/* A class and its fields; {message, code} of them is what spoke and Dubbo's own exception have. */
static int read_exception(struct reader *reader, struct spokei_message *message)
{
	struct spoke_value field;
	struct spoke_span said;
	int32_t code;
	int result = next_name(reader, false, &message->error_class);

	if (result != 0)
		return result;
	if (!spoke_cursor_next(&reader->at, &message->value) || !is_map(message->value))
		return reader->bad;
	message->error = SPOKE_EREMOTE;
	if (spoke_value_get(message->value, "message", &field) == 0 &&
	    spoke_value_str(field, &said) == 0)
		message->error_text = said;
	if (spoke_value_get(message->value, "code", &field) == 0 &&
	    spoke_value_i32(field, &code) == 0)
		message->error_code = code;
	return 0;
}

/* 0 exception, 1 value, 2 null; 3 to 5 the same, with attachments. */
static int read_marked(struct reader *reader, struct spokei_message *message)
{
	struct marks unused = { 0 };
	struct spoke_value value;
	uint32_t marker;
	int result = 0;

	if (!spoke_cursor_next(&reader->at, &value) || spoke_value_u32(value, &marker) != 0 ||
	    marker > 5)
		return reader->bad;
	if (marker % 3 == 0)
		result = read_exception(reader, message);
	else if (marker % 3 == 1 && !spoke_cursor_next(&reader->at, &message->value))
		result = reader->bad;
	message->bare = marker < 3;
	if (result != 0 || message->bare)
		return result;
	if (!spoke_cursor_next(&reader->at, &message->attachments))
		return reader->bad;
	return read_attachments(reader, message->attachments, &unused);
}

int spokei_dubbo_read_reply(const struct spokei_wire_limits *limits, struct spoke_span values,
			    struct spokei_message *message)
{
	struct reader reader = { limits, spoke_cursor_bytes(values), SPOKE_EBADREPLY };
	struct spoke_value value;
	int result;

	if (message->status == SPOKEI_DUBBO_OK)
		result = read_marked(&reader, message);
	else if (spoke_cursor_next(&reader.at, &value))
		result = read_text(&reader, value, true, &message->error_text);
	else
		result = reader.bad;
	return result == 0 && spoke_cursor_next(&reader.at, &value) ? reader.bad : result;
}
