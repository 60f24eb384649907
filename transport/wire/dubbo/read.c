/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bodies of requests and replies, value by value. */
#include "transport/wire/dubbo/read.h"

#include "transport/codec/codec.h"
#include "transport/wire/dubbo/exception.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/memo.h"
#include "transport/wire/message.h"
#include "transport/wire/skip.h"

/* --- the values of a body
 *
 * Walks over the values of a body, and reads texts and attachments. */

/* The attachments with a meaning; NONE if the key is absent. */
struct spokei_dubbo_marks {
	struct spoke_value path;
	struct spoke_value version;
	struct spoke_value group;
	struct spoke_value generic;
	struct spoke_value timeout;
	struct spoke_value countdown;
};

#define MANY_ATTACHMENTS "too many attachments; at most 256 are allowed"
#define LONG_KEY "an attachment's key is too long; at most 256 bytes are allowed"

_Static_assert(SPOKEI_DUBBO_ATTACHMENTS_MAX == 256 && SPOKEI_DUBBO_KEY_MAX == 256, "see the texts");

/* --- the walk */

/* Settled limits are neither 0 nor above their maximum; most are settled already. */
static bool are_settled(const struct spoke_value_limits *limits)
{
	return limits->depth_max - 1 < SPOKE_VALUE_DEPTH_MAX && limits->items_max > 0 &&
	       limits->object_bytes_max > 0 && limits->bytes_max > 0;
}

/* Prepares the walk. `bad`: the error for values of a wrong type. Returns 0, or the error of the
 * limits or of the length. */
static int body_start(const struct spokei_wire_limits *limits, struct spoke_span values, int bad,
		      struct spokei_dubbo_body *ret)
{
	struct spoke_value_limits settled = limits->value;

	if (!are_settled(&settled)) {
		int result = spokei_limits_settle(&limits->value, &settled);

		if (result != 0)
			return result;
	}
	if (values.len > settled.bytes_max)
		return SPOKE_ETOOLARGE;
	ret->limits = limits;
	ret->at = values.data;
	ret->end = ret->at + values.len;
	ret->depth_max = settled.depth_max;
	ret->items = spokei_limits_items(&settled);
	ret->bad = bad;
	ret->checked = false;
	ret->places = NULL;
	ret->begin = ret->at;
	ret->passed = 0;
	ret->count = 0;
	ret->used = 0;
	return 0;
}

/* Determines the length of a value that is not a small one. The values inside references, of which
 * there may be many, are not looked at again if they are checked. */
static int measure(const struct spokei_dubbo_body *body, const unsigned char *at, uint32_t *items,
		   size_t *ret_len)
{
	const unsigned char *next;

	if (!body->checked)
		return spokei_skim_first(at, (size_t)(body->end - at), body->depth_max, items,
					 ret_len);
	next = spokei_shape_skip(at, body->end);
	SPOKE_ASSERT(next != NULL);
	*ret_len = (size_t)(next - at);
	return 0;
}

static int walk(struct spokei_dubbo_body *body)
{
	const unsigned char *end = body->end;
	const unsigned char *at = body->at;
	const unsigned char *last = at;
	unsigned containers = spokei_skip_containers(body->depth_max);
	uint32_t items = body->items;
	size_t count = 0;

	while (at < end) {
		uint32_t inside;
		size_t len = spokei_skip_small(at, end, containers, &inside);

		if (SPOKEI_LIKELY(len > 0 && inside <= items)) {
			items -= inside;
		} else {
			int result = measure(body, at, &items, &len);

			if (result != 0)
				return result;
		}
		if (count <= SPOKEI_DUBBO_NAMES)
			body->first[count] = at;
		count++;
		last = at;
		at += len;
	}
	if (count <= SPOKEI_DUBBO_NAMES)
		body->first[count] = end;
	body->last = last;
	body->count = count;
	return 0;
}

/* Takes the starts of the values from the codec. Those that follow known names have one only. */
static void take_places(struct spokei_dubbo_body *body)
{
	const struct spokei_codec_places *places = body->places;

	body->count = places->count > body->passed ? places->count - body->passed : 0;
	for (size_t i = 0; i <= SPOKEI_DUBBO_NAMES && i <= body->count; i++) {
		size_t number = body->passed + i;

		if (i == body->count)
			body->first[i] = body->end;
		else if (number < SPOKEI_CODEC_FIRST)
			body->first[i] = body->begin + places->first[number];
	}
	body->last = body->count > 0 ? body->begin + places->last : body->at;
}

/* Validates all values from `at` on, unless they are checked, and stores the starts of the first
 * ones. Values with known places are not looked at. Returns 0 or an error of the validator. */
static int body_walk(struct spokei_dubbo_body *body)
{
	if (body->places) {
		take_places(body);
		return 0;
	}
	return walk(body);
}

/* --- texts */

/* Reads the text of a value; null is the empty text if `may_be_null`. */
static int read_text(const struct spokei_dubbo_body *body, struct spoke_value value,
		     bool may_be_null, struct spoke_span *ret)
{
	if (may_be_null && spoke_value_is_nil(value)) {
		*ret = spokei_span(value.data, 0);
		return 0;
	}
	return spokei_skip_str(value, ret) == 0 ? 0 : body->bad;
}

/* Do the same with a limit for the length of names, the second for the next of the first values. */
static int read_name(const struct spokei_dubbo_body *body, struct spoke_value value,
		     bool may_be_null, struct spoke_span *ret)
{
	int result = read_text(body, value, may_be_null, ret);

	if (result == 0 && ret->len > body->limits->name_max)
		return SPOKE_ETOOLARGE;
	return result;
}

int spokei_dubbo_next_name(struct spokei_dubbo_body *body, bool may_be_null, struct spoke_span *ret)
{
	struct spoke_value value;

	if (!spokei_dubbo_next(body, &value))
		return body->bad;
	return read_name(body, value, may_be_null, ret);
}

/* --- attachments */

static struct spoke_value *mark_of(struct spokei_dubbo_marks *marks, struct spoke_span key)
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

static int compare_keys(struct spoke_span a, struct spoke_span b)
{
	if (a.len != b.len)
		return a.len < b.len ? -1 : 1;
	return memcmp(a.data, b.data, a.len);
}

/* Inserts a key into an ordered array, so that many keys need few comparisons. Returns false if the
 * key is there already. */
static bool insert_key(struct spoke_span key, struct spoke_span *keys, size_t count)
{
	size_t from = 0;
	size_t to = count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = compare_keys(key, keys[middle]);

		if (order == 0)
			return false;
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	memmove(keys + from + 1, keys + from, (count - from) * sizeof(*keys));
	keys[from] = key;
	return true;
}

static void clear_marks(struct spokei_dubbo_marks *marks)
{
	const struct spoke_value none = { 0 };

	marks->path = none;
	marks->version = none;
	marks->group = none;
	marks->generic = none;
	marks->timeout = none;
	marks->countdown = none;
}

/* Explains to the peer which bound of attachments its request exceeds. */
static int too_large(struct spokei_message *message, const char *why)
{
	message->error_text = spokei_span(why, strlen(why));
	return SPOKE_ETOOLARGE;
}

/* Reads the attachments of a message: a map with a bounded number of bounded keys, no two of them
 * equal. Sets the message's error text if a bound is exceeded. */
static int read_marks(const struct spokei_dubbo_body *body, struct spokei_message *message,
		      struct spokei_dubbo_marks *ret_marks)
{
	struct spoke_span keys[SPOKEI_DUBBO_ATTACHMENTS_MAX];
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;

	clear_marks(ret_marks);
	if (spokei_skip_map(message->attachments, &pairs) != 0)
		return body->bad;
	if (pairs.left / 2 > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return too_large(message, MANY_ATTACHMENTS);
	while (spokei_skip_next(&pairs, &key) && spokei_skip_next(&pairs, &value)) {
		struct spoke_value *mark;
		struct spoke_span text;

		if (spokei_skip_str(key, &text) != 0)
			return body->bad;
		if (text.len > SPOKEI_DUBBO_KEY_MAX)
			return too_large(message, LONG_KEY);
		if (!insert_key(text, keys, count++))
			return body->bad;
		mark = mark_of(ret_marks, text);
		if (mark)
			*mark = value;
	}
	return 0;
}

/* Reads milliseconds from a number or from decimal digits. Returns false for anything else. */
static bool read_ms(struct spoke_value value, int64_t *ret)
{
	struct spoke_span text;
	const unsigned char *at;
	bool negative;
	int64_t ms = 0;

	if (value.len == 0)
		return false;
	if (spokei_skip_str(value, &text) != 0)
		return spoke_value_i64(value, ret) == 0;
	if (text.len == 0)
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

/* Returns the remaining time as in struct spokei_message. */
static int64_t time_left(const struct spokei_dubbo_marks *marks)
{
	int64_t ms;

	if (read_ms(marks->countdown, &ms))
		return ms > 0 ? ms : -1;
	/* Callers set "timeout" to 0 or less to express that there is none. */
	return read_ms(marks->timeout, &ms) && ms > 0 ? ms : 0;
}

/* --- the memo
 *
 * The memo of Dubbo's requests: keeps the last request and compares the next one with it. */

/* The names that attachments override: path, version and group; data NULL: not set. */
struct spokei_dubbo_said {
	struct spoke_span name[3];
};

/* Service and version as they stand before the arguments, without the attachments. */
struct spokei_dubbo_stood {
	struct spoke_span service;
	struct spoke_span version;
};

/* Returns whether the attachments of the previous request override the same names. */
static bool said_again(const struct spokei_memo *memo, const struct spokei_dubbo_said *said)
{
	for (unsigned i = 0; i < 3; i++) {
		const struct spokei_memo_part *part = &memo->said[i];
		const struct spoke_span *name = &said->name[i];

		if (name->data == NULL && part->at == 0)
			continue;
		if (name->data == NULL || part->at == 0 || part->len != name->len ||
		    memcmp(memo->bytes + part->at, name->data, name->len) != 0)
			return false;
	}
	return true;
}

/* Keeps everything after the arguments, if it fits and consists of small values. */
static bool remember_tail(struct spokei_memo *memo, const struct spokei_dubbo_body *body,
			  const struct spokei_dubbo_said *said, int64_t timeout_ms)
{
	size_t len = (size_t)(body->end - body->last);
	size_t free_len = body->limits->free_len;

	/* spokei_shape_is_told() may read the first two bytes after the arguments. */
	if (len < 2 || len > sizeof(memo->bytes) - memo->len ||
	    spokei_skip_small(body->last, body->end, spokei_skip_containers(body->depth_max),
			      &memo->tail_items) != len)
		return false;
	memcpy(memo->bytes + memo->len, body->last, len);
	memo->tail = (uint16_t)len;
	memo->used = (uint16_t)(memo->len + len);
	memo->free_len = free_len > memo->used ? (uint32_t)(free_len - memo->used) : 0;
	memo->timeout_ms = timeout_ms;
	for (unsigned i = 0; i < 3; i++) {
		memo->said[i] = (struct spokei_memo_part){ 0 };
		if (said->name[i].data == NULL)
			continue;
		memo->said[i] = spokei_memo_part(body->last, said->name[i]);
		memo->said[i].at = (uint16_t)(memo->said[i].at + memo->len);
	}
	return true;
}

/* Keeps the attachments of the body, or the names that they override, after the names. */
static void remember_said(struct spokei_memo *memo, const struct spokei_dubbo_body *body,
			  const struct spokei_dubbo_said *said, int64_t timeout_ms)
{
	if (memo->len == 0 || remember_tail(memo, body, said, timeout_ms))
		return;
	memo->tail = 0;
	memo->free_len = 0;
	memo->used = memo->len;
	for (unsigned i = 0; i < 3; i++) {
		const struct spoke_span *name = &said->name[i];

		memo->said[i] = (struct spokei_memo_part){ 0 };
		if (name->data == NULL)
			continue;
		if (name->len > sizeof(memo->bytes) - memo->used) {
			spokei_memo_forget(memo);
			return;
		}
		memo->said[i] = (struct spokei_memo_part){ memo->used, (uint16_t)name->len };
		memcpy(memo->bytes + memo->used, name->data, name->len);
		memo->used = (uint16_t)(memo->used + name->len);
	}
}

/* The names begin at `at`, the arguments at `args`. */
static void remember(struct spokei_memo *memo, const unsigned char *at, const unsigned char *args,
		     const struct spokei_message *message, const struct spokei_dubbo_stood *stood)
{
	if (!spokei_memo_begin(memo, at, (size_t)(args - at)))
		return;
	memo->service = spokei_memo_part(at, stood->service);
	memo->version = spokei_memo_part(at, stood->version);
	memo->method = spokei_memo_part(at, message->method);
	memo->types = spokei_memo_part(at, message->types);
	memo->bare = message->bare;
}

/* Returns the number of scalars before a tail; SIZE_MAX if a value is not a scalar or is
 * incomplete. */
static inline size_t count_plain(const unsigned char *at, const unsigned char *end)
{
	size_t count = 0;

	if (SPOKEI_LIKELY(spokei_shape_is_told(at, (size_t)(end - at))))
		return 1;
	for (; at < end; count++) {
		size_t len = spokei_shape_hop(at, end);

		if (len == 0)
			return SIZE_MAX;
		at += len;
	}
	return count;
}

/*
 * The arguments must be too few bytes to exceed the limits.
 */
static bool read_alike(const struct spokei_memo *memo, struct spoke_span values,
		       struct spokei_message *message)
{
	const unsigned char *at = values.data;
	const unsigned char *args = at + memo->len;
	const unsigned char *tail;
	size_t count;

	if (values.len - memo->used >= memo->free_len)
		return false;
	tail = at + values.len - memo->tail;
	if (memcmp(tail, memo->bytes + memo->len, memo->tail) != 0)
		return false;
	count = count_plain(args, tail);
	if (count == SIZE_MAX)
		return false;
	spokei_dubbo_recall_all(memo, memo->len, at, tail, message);
	message->args = spokei_span(args, (size_t)(tail - args));
	message->arg_count = count;
	return true;
}

/* --- messages */

/* Reads a name that an attachment overrides; null overrides nothing. */
static int override_name(const struct spokei_dubbo_body *body, struct spoke_value mark,
			 struct spoke_span *said)
{
	if (mark.len == 0 || spoke_value_is_nil(mark))
		return 0;
	return read_name(body, mark, false, said);
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
	message->timeout_ms = time_left(marks);
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
	struct spoke_span name = { NULL, 0 };
	int result = 0;

	*ret_count = 0;
	if (spoke_value_is_nil(names))
		return 0;
	if (spoke_cursor_array(names, &cursor) != 0)
		return body->bad;
	for (; result == 0 && spoke_cursor_next(&cursor, &value); ++*ret_count)
		result = read_name(body, value, false, &name);
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
	result = read_name(body, value[0], false, &message->method);
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
	result = body_walk(body);
	if (result == 0)
		result = split_args(body, 0, message);
	if (result == 0)
		result = read_marks(body, message, &marks);
	if (result == 0)
		result = read_said(body, &marks, &said);
	if (result == 0)
		result = apply_marks(body, &marks, &said, message);
	if (result != 0)
		return result;
	message->repeat = said_again(memo, &said);
	remember_said(memo, body, &said, message->timeout_ms);
	return 0;
}

static int read_unknown(struct spokei_dubbo_body *body, struct spokei_memo *memo,
			struct spokei_message *message)
{
	const unsigned char *at = body->at;
	struct spokei_dubbo_marks marks;
	struct spokei_dubbo_said said = { 0 };
	struct spokei_dubbo_stood stood;
	int result = body_walk(body);

	if (result == 0)
		result = read_names(body, message);
	if (result == 0)
		result = split_args(body, SPOKEI_DUBBO_NAMES, message);
	if (result == 0)
		result = read_marks(body, message, &marks);
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
			remember(memo, at, body->first[SPOKEI_DUBBO_NAMES], message, &stood);
			remember_said(memo, body, &said, message->timeout_ms);
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
	int result = body_start(limits, values, SPOKE_EBADREQUEST, &body);

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

	if (SPOKEI_LIKELY(known && read_alike(memo, values, message)))
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

	if (!spokei_dubbo_next(body, &value) || spokei_skip_u64(value, &marker) != 0 || marker > 5)
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
	return read_marks(body, message, &unused);
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
	result = body_start(limits, values, SPOKE_EBADREPLY, &body);
	if (result != 0)
		return result;
	body.checked = checked;
	result = body_walk(&body);
	if (result != 0)
		return result;
	if (message->status == SPOKEI_DUBBO_OK)
		result = read_marked(&body, message);
	else if (spokei_dubbo_next(&body, &value))
		result = read_text(&body, value, true, &message->error_text);
	else
		result = body.bad;
	return result == 0 && body.used < body.count ? body.bad : result;
}
