/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bodies of requests and replies, value by value. */
#include "transport/wire/dubbo/read.h"

#include "transport/wire/codecs.h"
#include "transport/wire/dubbo/head.h"
#include "transport/wire/memo.h"
#include "transport/wire/skip.h"

/* --- the values of a body
 *
 * One walk validates the values and counts them; afterwards they are read by position. Also reads
 * texts and the attachments with a meaning. All results point into the body. */

/* The versions, the service, the method and the types: the values before the arguments. */
#define NAMES SPOKEI_CODEC_TEXTS

struct body {
	const struct spokei_wire_limits *limits;
	const unsigned char *at;
	const unsigned char *end;
	uint32_t depth_max;
	uint32_t items; /* number of values allowed */
	int bad;        /* the error for values of a wrong type */
	/* The values that a codec has made of the bytes from `part` on, within the limits; NULL:
	 * the body itself has values. */
	const struct spokei_codec_values *made;
	const unsigned char *part;
	struct spoke_span raw; /* the body in its own serialization */
	uint8_t codec;
	/* The results of the walk. */
	size_t count;
	size_t used; /* number of first values that were read */
	/* The starts of the first values, and the end of the last of them. Only pointers are
	 * stored, because reading back a value that was stored in two halves is slow. */
	const unsigned char *first[NAMES + 1];
	const unsigned char *last; /* the start of the last value */
};

/* Returns whether settled limits allow `items` values in `len` bytes; each value has at least one
 * byte. */
static inline bool allows(const struct spokei_wire_limits *limits, size_t len, size_t items)
{
	const struct spoke_value_limits *value = &limits->value;

	if (SPOKEI_LIKELY(len <= limits->free_len))
		return true;
	return value->depth_max - 1 < SPOKE_VALUE_DEPTH_MAX && len <= value->bytes_max &&
	       items <= value->items_max &&
	       items <= value->object_bytes_max / SPOKE_VALUE_OBJECT_BYTES;
}

/* Reads the next of the first values; false: there are no more. */
static inline bool next_value(struct body *body, struct spoke_value *ret)
{
	const unsigned char *const *first = &body->first[body->used];

	if (body->used == NAMES || body->used == body->count)
		return false;
	ret->data = first[0];
	ret->len = (size_t)(first[1] - first[0]);
	body->used++;
	return true;
}

/* The attachments with a meaning; NONE if the key is absent. */
struct marks {
	struct spoke_value path;
	struct spoke_value version;
	struct spoke_value group;
	struct spoke_value generic;
	struct spoke_value timeout;
	struct spoke_value countdown;
	struct spoke_value id;
};

#define MANY_ATTACHMENTS "too many attachments; at most 256 are allowed"
#define LONG_KEY "an attachment's key is too long; at most 256 bytes are allowed"

_Static_assert(SPOKEI_DUBBO_ATTACHMENTS_MAX == 256 && SPOKEI_DUBBO_KEY_MAX == 256, "see the texts");

/* --- the walk */

/* Prepares the walk. `bad`: the error for values of a wrong type. Returns 0, or the error of the
 * limits or of the length. */
static int body_start(const struct spokei_wire_limits *limits, struct spoke_span values, int bad,
		      struct body *ret)
{
	struct spoke_value_limits settled = limits->value;

	if (!spokei_limits_are_settled(&settled)) {
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
	ret->made = NULL;
	ret->raw = values;
	ret->codec = SPOKEI_CODEC_MSGPACK;
	ret->count = 0;
	ret->used = 0;
	return 0;
}

static int walk(struct body *body)
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
			int result = spokei_validator_first(at, (size_t)(end - at), body->depth_max,
							    &items, &len);

			if (result != 0)
				return result;
		}
		if (count <= NAMES)
			body->first[count] = at;
		count++;
		last = at;
		at += len;
	}
	if (count <= NAMES)
		body->first[count] = end;
	body->last = last;
	body->count = count;
	return 0;
}

/* Takes the starts of the values from the codec. */
static void take_places(struct body *body)
{
	const struct spokei_codec_values *made = body->made;

	body->count = made->count;
	for (size_t i = 0; i <= NAMES && i <= body->count; i++)
		body->first[i] = i < body->count ? body->at + made->first[i] : body->end;
	body->last = body->count > 0 ? body->at + made->last : body->at;
}

/* Finds the starts of the first values, and validates all of them unless a codec has made them.
 * Returns 0 or an error of the validator. */
static int body_walk(struct body *body)
{
	if (body->made) {
		take_places(body);
		return 0;
	}
	return walk(body);
}

/* --- texts */

/* Reads the text of a value; null is the empty text if `may_be_null`. */
static int read_text(const struct body *body, struct spoke_value value, bool may_be_null,
		     struct spoke_span *ret)
{
	if (may_be_null && spoke_value_is_nil(value)) {
		*ret = spokei_span(value.data, 0);
		return 0;
	}
	return spokei_skip_str(value, ret) == 0 ? 0 : body->bad;
}

/* Do the same with a limit for the length of names, the second for the next of the first values. */
static int read_name(const struct body *body, struct spoke_value value, bool may_be_null,
		     struct spoke_span *ret)
{
	int result = read_text(body, value, may_be_null, ret);

	if (result == 0 && ret->len > body->limits->name_max)
		return SPOKE_ETOOLARGE;
	return result;
}

static int next_name(struct body *body, bool may_be_null, struct spoke_span *ret)
{
	struct spoke_value value;

	if (!next_value(body, &value))
		return body->bad;
	return read_name(body, value, may_be_null, ret);
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
	case sizeof(SPOKEI_MESSAGE_ID) - 1:
		return spokei_span_is(key, SPOKEI_MESSAGE_ID) ? &marks->id : NULL;
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

static void clear_marks(struct marks *marks)
{
	const struct spoke_value none = { 0 };

	marks->path = none;
	marks->version = none;
	marks->group = none;
	marks->generic = none;
	marks->timeout = none;
	marks->countdown = none;
	marks->id = none;
}

/* Explains to the peer which bound of attachments its request exceeds. */
static int too_large(struct spokei_message *message, const char *why)
{
	message->error_text = spokei_span(why, strlen(why));
	return SPOKE_ETOOLARGE;
}

/* Reads the attachments of a message: a map with a bounded number of bounded keys, no two of them
 * equal. Sets the message's error text if a bound is exceeded. */
static int read_marks(const struct body *body, struct spokei_message *message,
		      struct marks *ret_marks)
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
static int64_t time_left(const struct marks *marks)
{
	int64_t ms;

	if (read_ms(marks->countdown, &ms))
		return ms > 0 ? ms : -1;
	/* Callers set "timeout" to 0 or less to express that there is none. */
	return read_ms(marks->timeout, &ms) && ms > 0 ? ms : 0;
}

/* --- the memo
 *
 * The memo of Dubbo's requests: the names before the arguments and the attachments after them. In
 * most requests of a connection both equal those of the previous one. */

/* Fills in the names at the start of the body at `at`; the memo knows their bytes. */
static inline void recall(const struct spokei_memo *memo, const unsigned char *at,
			  struct spokei_message *message)
{
	message->service = spokei_memo_span(at, memo->service);
	message->version = spokei_memo_span(at, memo->version);
	message->method = spokei_memo_span(at, memo->method);
	message->types = spokei_memo_span(at, memo->types);
	message->bare = memo->bare;
}

/* Does the same, and fills in the attachments at `tail`, which the memo also knows. */
static inline void recall_all(const struct spokei_memo *memo, const unsigned char *at,
			      const unsigned char *tail, struct spokei_message *message)
{
	struct spoke_span *name[3] = { &message->service, &message->version, &message->group };

	recall(memo, at, message);
	for (unsigned i = 0; i < 3; i++)
		if (memo->said[i].at > 0 && (i > 0 || memo->said[i].len > 0))
			*name[i] = spokei_memo_span(tail - memo->len, memo->said[i]);
	if (spokei_span_is(message->version, SPOKEI_DUBBO_NO_VERSION))
		message->version.len = 0;
	message->attachments = (struct spoke_value){ tail, memo->tail };
	message->timeout_ms = memo->timeout_ms;
	message->repeat = true;
}

/* The names that attachments override: path, version and group; data NULL: not set. */
struct said {
	struct spoke_span name[3];
	const unsigned char *id; /* the digits of an id that spoke has made; NULL: none */
};

/* Service and version as they stand before the arguments, without the attachments. */
struct stood {
	struct spoke_span service;
	struct spoke_span version;
};

/* Returns whether the attachments of the previous request override the same names. */
static bool said_again(const struct spokei_memo *memo, const struct said *said)
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

/* Keeps the raw bytes after the arguments, too, if they mean the same after any others: no value
 * inside the map refers to one before it. */
static void remember_raw(struct spokei_memo *memo, const struct body *body)
{
	const unsigned char *end = (const unsigned char *)body->raw.data + body->raw.len;
	size_t len;

	memo->raw_tail = 0;
	if (body->made == NULL || body->made->body_last == SPOKEI_CODEC_NOWHERE)
		return;
	len = (size_t)(end - body->part) - body->made->body_last;
	if (len > sizeof(memo->bytes) - memo->used)
		return;
	memcpy(memo->bytes + memo->used, end - len, len);
	memo->raw_tail = (uint16_t)len;
}

/* Keeps everything after the arguments, if it fits and consists of small values. */
static bool remember_tail(struct spokei_memo *memo, const struct body *body,
			  const struct said *said, int64_t timeout_ms)
{
	unsigned containers = body->made ? 1 : spokei_skip_containers(body->depth_max);
	size_t len = (size_t)(body->end - body->last);
	size_t free_len = body->limits->free_len;

	/* spokei_shape_is_told() may read the first two bytes after the arguments. */
	if (len < 2 || len > sizeof(memo->bytes) - memo->len ||
	    spokei_skip_small(body->last, body->end, containers, &memo->tail_items) != len)
		return false;
	memcpy(memo->bytes + memo->len, body->last, len);
	memo->tail = (uint16_t)len;
	memo->used = (uint16_t)(memo->len + len);
	memo->free_len = free_len > memo->used ? (uint32_t)(free_len - memo->used) : 0;
	memo->id_at = 0;
	if (said->id && body->made == NULL) {
		memo->id_at = (uint16_t)(said->id - body->last);
		memo->free_len = 0;
	}
	memo->timeout_ms = timeout_ms;
	for (unsigned i = 0; i < 3; i++) {
		memo->said[i] = (struct spokei_memo_part){ 0 };
		if (said->name[i].data == NULL)
			continue;
		memo->said[i] = spokei_memo_part(body->last, said->name[i]);
		memo->said[i].at = (uint16_t)(memo->said[i].at + memo->len);
	}
	remember_raw(memo, body);
	return true;
}

/* Keeps the attachments of the body, or the names that they override, after the names. */
static void remember_said(struct spokei_memo *memo, const struct body *body,
			  const struct said *said, int64_t timeout_ms)
{
	if (memo->len == 0 || remember_tail(memo, body, said, timeout_ms))
		return;
	memo->tail = 0;
	memo->id_at = 0;
	memo->raw_tail = 0;
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

/* Returns the length of the names in the raw body; 0 if they must not be kept, because they depend
 * on their place, or because a text is not at the same place in the values. */
static size_t raw_names(const struct body *body, const struct spoke_span *texts, size_t count)
{
	size_t len = (size_t)(body->first[NAMES] - body->at);

	if (body->made == NULL)
		return len;
	if (body->made->body_args != len)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const unsigned char *text = texts[i].data;

		if (texts[i].len > 0 &&
		    memcmp((const unsigned char *)body->raw.data + (text - body->at), text,
			   texts[i].len) != 0)
			return 0;
	}
	return len;
}

static void remember(struct spokei_memo *memo, const struct body *body,
		     const struct spokei_message *message, const struct stood *stood)
{
	const struct spoke_span texts[] = { stood->service, stood->version, message->method,
					    message->types };
	size_t len = raw_names(body, texts, 4);

	if (!spokei_memo_begin(memo, body->codec, body->raw.data, len))
		return;
	memo->service = spokei_memo_part(body->at, texts[0]);
	memo->version = spokei_memo_part(body->at, texts[1]);
	memo->method = spokei_memo_part(body->at, texts[2]);
	memo->types = spokei_memo_part(body->at, texts[3]);
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
		size_t len = spokei_shape_len(at, end);

		if (len == 0)
			return SIZE_MAX;
		at += len;
	}
	return count;
}

/* Reads a request whose tail is like that of the last one. Returns false if an argument is not a
 * scalar. */
static inline bool read_before(const struct spokei_memo *memo, const unsigned char *at,
			       const unsigned char *tail, struct spokei_message *message)
{
	const unsigned char *args = at + memo->len;
	size_t count = count_plain(args, tail);

	if (count == SIZE_MAX)
		return false;
	recall_all(memo, at, tail, message);
	message->args = spokei_span(args, (size_t)(tail - args));
	message->arg_count = count;
	return true;
}

/* The arguments must be too few bytes to exceed the limits. */
static bool read_alike(const struct spokei_memo *memo, struct spoke_span values,
		       struct spokei_message *message)
{
	const unsigned char *at = values.data;
	const unsigned char *tail;

	if (values.len - memo->used >= memo->free_len)
		return false;
	tail = at + values.len - memo->tail;
	return memcmp(tail, memo->bytes + memo->len, memo->tail) == 0 &&
	       read_before(memo, at, tail, message);
}

/* Does the same for a request that bears an id. Its digits, the content of a text, may be any
 * bytes. */
static bool read_identified(const struct spokei_wire_limits *limits, const struct spokei_memo *memo,
			    struct spoke_span values, struct spokei_message *message)
{
	const size_t after = memo->id_at + SPOKEI_MESSAGE_ID_LEN;
	const unsigned char *last = memo->bytes + memo->len;
	const unsigned char *at = values.data;
	const unsigned char *tail;

	if (values.len < memo->used || values.len >= limits->free_len)
		return false;
	tail = at + values.len - memo->tail;
	return memcmp(tail, last, memo->id_at) == 0 &&
	       memcmp(tail + after, last + after, memo->tail - after) == 0 &&
	       read_before(memo, at, tail, message);
}

/* --- messages */

/* Reads a name that an attachment overrides; null overrides nothing. */
static int override_name(const struct body *body, struct spoke_value mark, struct spoke_span *said)
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

static int read_names(struct body *body, struct spokei_message *message)
{
	struct spoke_span protocol = { 0 };
	int result = next_name(body, true, &protocol);

	if (result == 0)
		result = next_name(body, false, &message->service);
	if (result == 0)
		result = next_name(body, true, &message->version);
	if (result == 0)
		result = next_name(body, false, &message->method);
	if (result == 0)
		result = next_name(body, true, &message->types);
	if (result == 0)
		message->bare = !takes_attachments(protocol);
	return result;
}

/* Everything between the names and the last value, the attachments, is arguments. */
static int split_args(const struct body *body, size_t names, struct spokei_message *message)
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

static int read_said(const struct body *body, const struct marks *marks, struct said *said)
{
	int result = override_name(body, marks->path, &said->name[0]);

	if (result == 0)
		result = override_name(body, marks->version, &said->name[1]);
	if (result == 0)
		result = override_name(body, marks->group, &said->name[2]);
	/* A text with its length in one byte. */
	if (marks->id.len == 2 + SPOKEI_MESSAGE_ID_LEN && marks->id.data[0] == 0xd9)
		said->id = marks->id.data + 2;
	return result;
}

/* Applies the attachments over the names before the arguments. */
static int apply_marks(const struct body *body, const struct marks *marks, const struct said *said,
		       struct spokei_message *message)
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
static int check_form(const struct body *body, struct spoke_value mark,
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
static int read_type_names(const struct body *body, struct spoke_value names, size_t *ret_count)
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
static int unfold_generic(const struct body *body, struct spokei_message *message)
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

/* Reads the arguments and the attachments of a request whose names equal those of the previous one.
 */
static int read_known(struct body *body, struct spokei_memo *memo, struct spokei_message *message)
{
	struct marks marks;
	struct said said = { 0 };
	int result;

	recall(memo, body->raw.data, message);
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

static int read_unknown(struct body *body, struct spokei_memo *memo, struct spokei_message *message)
{
	struct marks marks;
	struct said said = { 0 };
	struct stood stood;
	int result = body_walk(body);

	if (result == 0)
		result = read_names(body, message);
	if (result == 0)
		result = split_args(body, NAMES, message);
	if (result == 0)
		result = read_marks(body, message, &marks);
	if (result == 0)
		result = read_said(body, &marks, &said);
	if (result != 0)
		return result;
	stood = (struct stood){ message->service, message->version };
	result = apply_marks(body, &marks, &said, message);
	if (result != 0)
		return result;
	if (!spokei_dubbo_is_generic(message->method)) {
		if (memo) {
			remember(memo, body, message, &stood);
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

/* Reads a request that is not like the last one, or not in all. */
static SPOKEI_NOINLINE int read_different(const struct spokei_wire_limits *limits,
					  struct spokei_memo *memo, struct spoke_span raw,
					  struct spokei_message *message)
{
	const bool known = spokei_memo_knows(memo, SPOKEI_CODEC_MSGPACK, raw);
	struct body body;
	int result;

	if (known && memo->id_at > 0 && read_identified(limits, memo, raw, message))
		return 0;
	result = body_start(limits, raw, SPOKE_EBADREQUEST, &body);
	if (result != 0)
		return result;
	if (body.items < NAMES || !known)
		return read_unknown(&body, memo, message);
	body.at += memo->len;
	body.items -= NAMES;
	return read_known(&body, memo, message);
}

/* Reads a request in msgpack. */
static SPOKEI_NOINLINE int read_request(const struct spokei_wire_limits *limits,
					struct spokei_memo *memo, struct spoke_span raw,
					struct spokei_message *message)
{
	if (SPOKEI_LIKELY(spokei_memo_knows(memo, SPOKEI_CODEC_MSGPACK, raw) &&
			  read_alike(memo, raw, message)))
		return 0;
	return read_different(limits, memo, raw, message);
}

/* --- replies */

/* Returns whether the fields are those of a refusal. */
static bool is_refusal(const struct spokei_message *message)
{
	struct spoke_value field;
	bool forbidden;

	return spokei_span_is(message->error_class, SPOKEI_DUBBO_EXCEPTION) &&
	       spoke_value_get(message->value, SPOKEI_DUBBO_FORBIDDEN, &field) == 0 &&
	       spoke_value_bool(field, &forbidden) == 0 && forbidden;
}

/* The exceptions of spoke and of Dubbo have {message, code}. */
static int read_exception(struct body *body, struct spokei_message *message)
{
	struct spoke_value field;
	struct spoke_span said;
	int32_t code;
	int result = next_name(body, false, &message->error_class);

	if (result != 0)
		return result;
	if (!next_value(body, &message->value) ||
	    spoke_value_type(message->value) != SPOKE_VALUE_MAP)
		return body->bad;
	message->error = SPOKE_EREMOTE;
	if (spoke_value_get(message->value, "message", &field) == 0 &&
	    spoke_value_str(field, &said) == 0)
		message->error_text = said;
	if (spoke_value_get(message->value, "code", &field) == 0 &&
	    spoke_value_i32(field, &code) == 0)
		message->error_code = code;
	if (is_refusal(message))
		message->error = SPOKE_EFORBIDDEN;
	return 0;
}

/* 0 exception, 1 value, 2 null; 3 to 5 are the same with attachments. */
static int read_marked(struct body *body, struct spokei_message *message)
{
	struct marks unused;
	struct spoke_value value;
	uint64_t marker = 0;
	int result = 0;

	if (!next_value(body, &value) || spokei_skip_u64(value, &marker) != 0 || marker > 5)
		return body->bad;
	if (marker % 3 == 0)
		result = read_exception(body, message);
	else if (marker % 3 == 1 && !next_value(body, &message->value))
		result = body->bad;
	message->bare = marker < 3;
	if (result != 0 || message->bare)
		return result;
	if (!next_value(body, &message->attachments))
		return body->bad;
	return read_marks(body, message, &unused);
}

/* Reads a scalar result without attachments. False: the reply must be read completely. */
static bool read_plain(const struct spokei_wire_limits *limits, struct spoke_span values,
		       struct spokei_message *message)
{
	const unsigned char *at = values.data;

	if (message->status != SPOKEI_DUBBO_OK || values.len < 2 || at[0] != 1 ||
	    !spokei_shape_is_one(at + 1, values.len - 1) || !allows(limits, values.len, 2))
		return false;
	message->value = (struct spoke_value){ at + 1, values.len - 1 };
	message->bare = true;
	return true;
}

/* Reads the values of a reply. */
static int read_reply_body(struct body *body, struct spokei_message *message)
{
	struct spoke_value value;
	int result = body_walk(body);

	if (result != 0)
		return result;
	if (message->status == SPOKEI_DUBBO_OK)
		result = read_marked(body, message);
	else if (next_value(body, &value))
		result = read_text(body, value, true, &message->error_text);
	else
		result = body->bad;
	return result == 0 && body->used < body->count ? body->bad : result;
}

/* Reads a reply in msgpack. */
static SPOKEI_NOINLINE int read_any_reply(const struct spokei_wire_limits *limits,
					  struct spoke_span values, struct spokei_message *message)
{
	struct body body;
	int result = body_start(limits, values, SPOKE_EBADREPLY, &body);

	return result ? result : read_reply_body(&body, message);
}

static SPOKEI_NOINLINE int read_reply(const struct spokei_wire_limits *limits,
				      struct spoke_span values, struct spokei_message *message)
{
	if (SPOKEI_LIKELY(read_plain(limits, values, message)))
		return 0;
	return read_any_reply(limits, values, message);
}

/* --- other serializations
 *
 * Bodies that a codec makes values of. Of a request that begins and ends like the last one, only
 * the arguments are read. */

#define SCALARS_LEN_MAX 4096u /* bytes of values that are read without state */

#define SWOLLEN                                                                                    \
	"the body repeats too much: its values may have 32 times its bytes, and references may "   \
	"repeat 4 values for each byte"

_Static_assert(SPOKEI_CODEC_GROWTH == 32 && SPOKEI_CODEC_VALUE == 8, "see the text");

/* Adds the bytes that a body earns to those that earlier ones have left. */
static void earn(const struct spokei_wire_limits *limits, size_t len, struct spokei_buffer *scratch)
{
	size_t most = limits->value.bytes_max ? limits->value.bytes_max : SPOKE_VALUE_BYTES_MAX;
	size_t spare = scratch->max < limits->spare_max ? scratch->max : limits->spare_max;

	scratch->max = most;
	if (spare < most && len < (most - spare) / SPOKEI_CODEC_GROWTH)
		scratch->max = spare + len * SPOKEI_CODEC_GROWTH;
}

/* A body, the part of it that a codec reads, and the way to do so. */
struct source {
	const struct spokei_wire_limits *limits;
	const struct spokei_codec *codec;
	struct spokei_memo *memo;
	struct spoke_span raw;
	enum spokei_codec_part part;
	struct spoke_span bytes;
	struct spokei_buffer *scratch;
	struct spokei_message *message;
};

/* Has the codec make values. */
static int make_values(const struct source *source, struct spokei_codec_values *made)
{
	struct spokei_buffer *scratch = source->scratch;
	int error;

	spokei_buffer_clear(scratch); /* the last message is no longer used */
	earn(source->limits, source->raw.len, scratch);
	error = source->codec->to_values(&source->limits->value, source->part, source->bytes,
					 scratch, made);
	if (error == SPOKE_ETOOLARGE && scratch->max == 0)
		source->message->swollen = SWOLLEN;
	return error;
}

/* Reads the values that a codec has made. */
static int read_made(const struct source *source, const struct spokei_codec_values *made)
{
	struct spokei_message *message = source->message;
	struct body body = {
		.limits = source->limits,
		.at = made->values.data,
		.end = (const unsigned char *)made->values.data + made->values.len,
		.bad = message->kind == SPOKEI_REQUEST ? SPOKE_EBADREQUEST : SPOKE_EBADREPLY,
		.made = made,
		.part = source->bytes.data,
		.raw = source->raw,
		.codec = message->codec,
	};

	if (message->kind != SPOKEI_REQUEST)
		return read_reply_body(&body, message);
	return source->part == SPOKEI_CODEC_REQUEST ? read_unknown(&body, source->memo, message)
						    : read_known(&body, source->memo, message);
}

/* Returns whether the body ends like the last request, which it begins like. */
static bool ends_alike(const struct spokei_memo *memo, struct spoke_span raw)
{
	const unsigned char *end = (const unsigned char *)raw.data + raw.len;

	return memo->raw_tail > 0 && memo->raw_tail <= raw.len - memo->len &&
	       memcmp(end - memo->raw_tail, memo->bytes + memo->used, memo->raw_tail) == 0;
}

/* Has the codec make values of scalars alone. They are too few bytes to exceed a limit if they are
 * below `max`. Returns false if the body must be read in another way. */
static inline bool make_scalars(const struct spokei_codec *codec, struct spoke_span bytes,
				size_t max, struct spokei_buffer *scratch, struct spoke_span *ret,
				uint32_t *ret_count)
{
	unsigned char *start;
	unsigned char *end;

	if (codec->take_scalars == NULL || bytes.len > SCALARS_LEN_MAX)
		return false;
	spokei_buffer_clear(scratch); /* the last message is no longer used */
	start = spokei_buffer_reserve(scratch, bytes.len + SPOKEI_CODEC_ROOM);
	end = start ? codec->take_scalars(bytes, start, ret_count) : NULL;
	if (end == NULL || (size_t)(end - start) >= max)
		return false;
	spokei_buffer_commit(scratch, (size_t)(end - start));
	*ret = spokei_span(start, (size_t)(end - start));
	return true;
}

/* Fills in a request that begins and ends like the last one. */
static inline void fill_again(const struct spokei_memo *memo, struct spoke_span raw,
			      struct spoke_span args, size_t count, struct spokei_message *message)
{
	recall_all(memo, raw.data, memo->bytes + memo->len, message);
	message->args = args;
	message->arg_count = count;
}

/* Reads a message that does not consist of scalars. */
static SPOKEI_NOINLINE int read_any(const struct source *source)
{
	const struct spokei_memo *memo = source->memo;
	struct spokei_codec_values made;
	int result;

	made.items_before = 0;
	made.bytes_before = 0;
	if (source->codec->to_values == NULL)
		return SPOKE_EUNSUPPORTED;
	if (source->part == SPOKEI_CODEC_ARGS || source->part == SPOKEI_CODEC_VALUES) {
		made.items_before = NAMES;
		made.bytes_before = memo->len;
	}
	if (source->part == SPOKEI_CODEC_VALUES) {
		made.items_before += memo->tail_items;
		made.bytes_before = memo->used;
	}
	result = make_values(source, &made);
	if (result != 0)
		return result;
	if (source->part != SPOKEI_CODEC_VALUES)
		return read_made(source, &made);
	fill_again(memo, source->raw, made.values, made.count, source->message);
	return 0;
}

static SPOKEI_NOINLINE int read_by_codec(const struct spokei_wire_limits *limits,
					 struct spokei_memo *memo, struct spoke_span raw,
					 struct spokei_buffer *scratch,
					 struct spokei_message *message)
{
	const struct spokei_codec *codec = spokei_wire_codec(limits, message->codec);
	enum spokei_codec_part part = SPOKEI_CODEC_REQUEST;
	struct spoke_span bytes = raw;
	struct spoke_span values;
	uint32_t count;

	if (codec == NULL)
		return SPOKE_EUNSUPPORTED;
	if (message->kind != SPOKEI_REQUEST) {
		part = message->status == SPOKEI_DUBBO_OK ? SPOKEI_CODEC_REPLY : SPOKEI_CODEC_TEXT;
		if (SPOKEI_LIKELY(part == SPOKEI_CODEC_REPLY && raw.len > 0 &&
				  *(const unsigned char *)raw.data == codec->heads.value &&
				  make_scalars(codec, spokei_span_after(raw, 1), limits->free_len,
					       scratch, &values, &count) &&
				  count == 1)) {
			message->value = (struct spoke_value){ values.data, values.len };
			message->bare = true;
			return 0;
		}
	} else if (spokei_memo_knows(memo, codec->id, raw)) {
		part = SPOKEI_CODEC_ARGS;
		bytes = spokei_span_after(raw, memo->len);
		if (SPOKEI_LIKELY(ends_alike(memo, raw))) {
			part = SPOKEI_CODEC_VALUES;
			bytes.len -= memo->raw_tail;
			if (SPOKEI_LIKELY(make_scalars(codec, bytes, memo->free_len, scratch,
						       &values, &count))) {
				fill_again(memo, raw, values, count, message);
				return 0;
			}
		}
	}
	return read_any(
		&(struct source){ limits, codec, memo, raw, part, bytes, scratch, message });
}

int spokei_dubbo_read_body(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			   struct spoke_span body, struct spokei_buffer *scratch,
			   struct spokei_message *message)
{
	if (SPOKEI_UNLIKELY(message->codec != SPOKEI_CODEC_MSGPACK))
		return read_by_codec(limits, memo, body, scratch, message);
	if (message->kind == SPOKEI_REQUEST)
		return read_request(limits, memo, body, message);
	return read_reply(limits, body, message);
}
