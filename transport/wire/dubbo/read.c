/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bodies of requests and replies, value by value. */
#include "transport/wire/dubbo/read.h"

#include "transport/wire/dubbo/body.h"
#include "transport/wire/dubbo/exception.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/dubbo/memo.h"

/* Reads a name that an attachment overrides; null overrides nothing. */
static int override_name(const struct spokei_dubbo_body *body, struct spoke_value mark,
			 struct spoke_span *said)
{
	if (mark.len == 0 || spoke_value_is_nil(mark))
		return 0;
	return spokei_dubbo_read_name(body, mark, false, said);
}

/* --- requests */

/* Returns whether a peer with this protocol version accepts attachments in replies: 2.0.2 to
 * 2.0.99. */
static bool takes_attachments(struct spoke_span protocol)
{
	const char *text = protocol.data;

	if (protocol.len < 5 || protocol.len > 6 || memcmp(text, "2.0.", 4) != 0)
		return false;
	if (protocol.len == 5)
		return text[4] >= '2' && text[4] <= '9';
	return text[4] >= '1' && text[4] <= '9' && text[5] >= '0' && text[5] <= '9';
}

static int read_names(struct spokei_dubbo_body *body, struct spokei_message *message)
{
	struct spoke_span protocol = { 0 };
	int result = spokei_dubbo_next_name(body, true, &protocol);

	if (result == 0)
		result = spokei_dubbo_next_name(body, false, &message->service);
	if (result == 0)
		result = spokei_dubbo_next_name(body, true, &message->version);
	if (result == 0)
		result = spokei_dubbo_next_name(body, false, &message->method);
	if (result == 0)
		result = spokei_dubbo_next_name(body, true, &message->types);
	if (result == 0)
		message->bare = !takes_attachments(protocol);
	return result;
}

/* Everything between the names and the last value, the attachments, is arguments. */
static int split_args(const struct spokei_dubbo_body *body, size_t names,
		      struct spokei_message *message)
{
	const unsigned char *args = body->first[names];

	if (body->count <= names)
		return body->bad;
	message->args = spokei_span(args, (size_t)(body->last - args));
	message->arg_count = body->count - names - 1;
	message->attachments.data = body->last;
	message->attachments.len = (size_t)(body->end - body->last);
	return 0;
}

static int read_said(const struct spokei_dubbo_body *body, const struct spokei_dubbo_marks *marks,
		     struct spokei_dubbo_said *said)
{
	int result = override_name(body, marks->path, &said->name[0]);

	if (result == 0)
		result = override_name(body, marks->version, &said->name[1]);
	if (result == 0)
		result = override_name(body, marks->group, &said->name[2]);
	return result;
}

/* Applies the attachments over the names before the arguments. */
static int apply_marks(const struct spokei_dubbo_body *body, const struct spokei_dubbo_marks *marks,
		       const struct spokei_dubbo_said *said, struct spokei_message *message)
{
	if (said->name[0].len > 0)
		message->service = said->name[0];
	if (said->name[1].data)
		message->version = said->name[1];
	if (said->name[2].data)
		message->group = said->name[2];
	if (spokei_span_is(message->version, SPOKEI_DUBBO_NO_VERSION))
		message->version.len = 0;
	message->timeout_ms = spokei_dubbo_time_left(marks);
	return message->service.len > 0 && message->method.len > 0 ? 0 : body->bad;
}

/* Checks the form of generic arguments; "gson", "bean" and others are for Java only. */
static int check_form(const struct spokei_dubbo_body *body, struct spoke_value mark,
		      struct spokei_message *message)
{
	static const char why[] = "this form of generic calls is for Java providers only; "
				  "use generic=true";
	struct spoke_span form = { 0 };
	int result = override_name(body, mark, &form);

	if (result != 0 || form.len == 0 || spokei_span_is(form, "true") ||
	    spokei_span_is(form, "raw.return"))
		return result;
	message->error_text = spokei_span(why, sizeof(why) - 1);
	return SPOKE_EUNSUPPORTED;
}

/* Reads the names of types: null, or an array of texts. */
static int read_type_names(const struct spokei_dubbo_body *body, struct spoke_value names,
			   size_t *ret_count)
{
	struct spoke_cursor cursor;
	struct spoke_value value;
	struct spoke_span name;
	int result = 0;

	*ret_count = 0;
	if (spoke_value_is_nil(names))
		return 0;
	if (spoke_cursor_array(names, &cursor) != 0)
		return body->bad;
	for (; result == 0 && spoke_cursor_next(&cursor, &value); ++*ret_count)
		result = spokei_dubbo_read_name(body, value, false, &name);
	return result;
}

/* Converts $invoke("name", types, arguments) into that call. */
static int unfold_generic(const struct spokei_dubbo_body *body, struct spokei_message *message)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(message->args);
	struct spoke_cursor args = { 0 };
	struct spoke_value value[3];
	size_t names;
	int result;

	for (unsigned i = 0; i < 3; i++)
		if (message->arg_count != 3 || !spoke_cursor_next(&cursor, &value[i]))
			return body->bad;
	result = spokei_dubbo_read_name(body, value[0], false, &message->method);
	if (result == 0)
		result = read_type_names(body, value[1], &names);
	if (result != 0)
		return result;
	if (spoke_value_is_nil(value[2]))
		args = spoke_cursor_bytes(spokei_span(value[2].data, 0));
	else if (spoke_cursor_array(value[2], &args) != 0)
		return body->bad;
	message->arg_count = spoke_value_is_nil(value[2]) ? 0 : (size_t)args.left;
	message->args = spoke_cursor_rest(&args);
	message->types.len = 0;
	if (!spoke_value_is_nil(value[1]))
		message->type_names = value[1];
	message->generic = true;
	if (message->method.len == 0 || (names > 0 && names != message->arg_count))
		return body->bad;
	return 0;
}

/* --- with the memo */

/* Reads a request whose names equal those of the previous one, except for the attachments. */
static int read_known(struct spokei_dubbo_body *body, struct spokei_memo *memo,
		      struct spokei_message *message)
{
	struct spokei_dubbo_marks marks;
	struct spokei_dubbo_said said = { 0 };
	int result;

	spokei_dubbo_recall(memo, body->at, message);
	body->at += memo->len;
	body->passed = SPOKEI_DUBBO_NAMES;
	body->items -= SPOKEI_DUBBO_NAMES;
	result = spokei_dubbo_body_walk(body);
	if (result == 0)
		result = split_args(body, 0, message);
	if (result == 0)
		result = spokei_dubbo_read_marks(body, message, &marks);
	if (result == 0)
		result = read_said(body, &marks, &said);
	if (result == 0)
		result = apply_marks(body, &marks, &said, message);
	if (result != 0)
		return result;
	message->repeat = spokei_dubbo_said_again(memo, &said);
	spokei_dubbo_remember_said(memo, body, &said, message->timeout_ms);
	return 0;
}

static int read_unknown(struct spokei_dubbo_body *body, struct spokei_memo *memo,
			struct spokei_message *message)
{
	const unsigned char *at = body->at;
	struct spokei_dubbo_marks marks;
	struct spokei_dubbo_said said = { 0 };
	struct spokei_dubbo_stood stood;
	int result = spokei_dubbo_body_walk(body);

	if (result == 0)
		result = read_names(body, message);
	if (result == 0)
		result = split_args(body, SPOKEI_DUBBO_NAMES, message);
	if (result == 0)
		result = spokei_dubbo_read_marks(body, message, &marks);
	if (result == 0)
		result = read_said(body, &marks, &said);
	if (result != 0)
		return result;
	stood = (struct spokei_dubbo_stood){ message->service, message->version };
	result = apply_marks(body, &marks, &said, message);
	if (result != 0)
		return result;
	if (!spokei_dubbo_is_generic(message->method)) {
		if (memo) {
			spokei_dubbo_remember(memo, at, body->first[SPOKEI_DUBBO_NAMES], message,
					      &stood);
			spokei_dubbo_remember_said(memo, body, &said, message->timeout_ms);
		}
		return 0;
	}
	result = check_form(body, marks.generic, message);
	if (result == 0)
		result = unfold_generic(body, message);
	if (result == 0)
		spokei_memo_forget(memo);
	return result;
}

int spokei_dubbo_read_named(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			    bool known, const struct spokei_codec_places *places,
			    struct spoke_span values, struct spokei_message *message)
{
	struct spokei_dubbo_body body;
	int result = spokei_dubbo_body_start(limits, values, SPOKE_EBADREQUEST, &body);

	if (result != 0)
		return result;
	body.places = places;
	if (body.items >= SPOKEI_DUBBO_NAMES && known)
		return read_known(&body, memo, message);
	return read_unknown(&body, memo, message);
}

int spokei_dubbo_read_request(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			      struct spoke_span values, struct spokei_message *message)
{
	bool known = spokei_memo_knows(memo, values.data, values.len);

	if (SPOKEI_LIKELY(known && spokei_dubbo_read_alike(memo, values, message)))
		return 0;
	return spokei_dubbo_read_named(limits, memo, known, NULL, values, message);
}

/* --- replies */

/* 0 exception, 1 value, 2 null; 3 to 5 are the same with attachments. */
static int read_marked(struct spokei_dubbo_body *body, struct spokei_message *message)
{
	struct spokei_dubbo_marks unused;
	struct spoke_value value;
	uint64_t marker = 0;
	int result = 0;

	if (!spokei_dubbo_next(body, &value) || spokei_hop_u64(value, &marker) != 0 || marker > 5)
		return body->bad;
	if (marker % 3 == 0)
		result = spokei_dubbo_read_exception(body, message);
	else if (marker % 3 == 1 && !spokei_dubbo_next(body, &message->value))
		result = body->bad;
	message->bare = marker < 3;
	if (result != 0 || message->bare)
		return result;
	if (!spokei_dubbo_next(body, &message->attachments))
		return body->bad;
	return spokei_dubbo_read_marks(body, message, &unused);
}

/* Reads a scalar result without attachments. False: the reply must be read completely. */
static bool read_plain(const struct spokei_wire_limits *limits, struct spoke_span values,
		       struct spokei_message *message)
{
	const unsigned char *at = values.data;

	if (message->status != SPOKEI_DUBBO_OK || values.len < 2 || at[0] != 1 ||
	    !spokei_shape_is_one(at + 1, values.len - 1) ||
	    !spokei_dubbo_allows(limits, values.len, 2))
		return false;
	message->value = (struct spoke_value){ at + 1, values.len - 1 };
	message->bare = true;
	return true;
}

int spokei_dubbo_read_reply(const struct spokei_wire_limits *limits, bool checked,
			    struct spoke_span values, struct spokei_message *message)
{
	struct spokei_dubbo_body body;
	struct spoke_value value;
	int result;

	if (SPOKEI_LIKELY(read_plain(limits, values, message)))
		return 0;
	result = spokei_dubbo_body_start(limits, values, SPOKE_EBADREPLY, &body);
	if (result != 0)
		return result;
	body.checked = checked;
	result = spokei_dubbo_body_walk(&body);
	if (result != 0)
		return result;
	if (message->status == SPOKEI_DUBBO_OK)
		result = read_marked(&body, message);
	else if (spokei_dubbo_next(&body, &value))
		result = spokei_dubbo_read_text(&body, value, true, &message->error_text);
	else
		result = body.bad;
	return result == 0 && body.used < body.count ? body.bad : result;
}
