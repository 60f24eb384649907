/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the values of a body, and reads texts and attachments. */
#include "transport/wire/dubbo/body.h"

#include "transport/wire/dubbo/head.h"

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

int spokei_dubbo_body_start(const struct spokei_wire_limits *limits, struct spoke_span values,
			    int bad, struct spokei_dubbo_body *ret)
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
	unsigned containers = spokei_hop_containers(body->depth_max);
	uint32_t items = body->items;
	size_t count = 0;

	while (at < end) {
		uint32_t inside;
		size_t len = spokei_hop_small(at, end, containers, &inside);

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

int spokei_dubbo_body_walk(struct spokei_dubbo_body *body)
{
	if (body->places) {
		take_places(body);
		return 0;
	}
	return walk(body);
}

/* --- texts */

int spokei_dubbo_read_text(const struct spokei_dubbo_body *body, struct spoke_value value,
			   bool may_be_null, struct spoke_span *ret)
{
	if (may_be_null && spoke_value_is_nil(value)) {
		*ret = spokei_span(value.data, 0);
		return 0;
	}
	return spokei_hop_str(value, ret) == 0 ? 0 : body->bad;
}

int spokei_dubbo_read_name(const struct spokei_dubbo_body *body, struct spoke_value value,
			   bool may_be_null, struct spoke_span *ret)
{
	int result = spokei_dubbo_read_text(body, value, may_be_null, ret);

	if (result == 0 && ret->len > body->limits->name_max)
		return SPOKE_ETOOLARGE;
	return result;
}

int spokei_dubbo_next_name(struct spokei_dubbo_body *body, bool may_be_null, struct spoke_span *ret)
{
	struct spoke_value value;

	if (!spokei_dubbo_next(body, &value))
		return body->bad;
	return spokei_dubbo_read_name(body, value, may_be_null, ret);
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

int spokei_dubbo_read_marks(const struct spokei_dubbo_body *body, struct spokei_message *message,
			    struct spokei_dubbo_marks *ret_marks)
{
	struct spoke_span keys[SPOKEI_DUBBO_ATTACHMENTS_MAX];
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;

	clear_marks(ret_marks);
	if (spokei_hop_map(message->attachments, &pairs) != 0)
		return body->bad;
	if (pairs.left / 2 > SPOKEI_DUBBO_ATTACHMENTS_MAX)
		return too_large(message, MANY_ATTACHMENTS);
	while (spokei_hop_next(&pairs, &key) && spokei_hop_next(&pairs, &value)) {
		struct spoke_value *mark;
		struct spoke_span text;

		if (spokei_hop_str(key, &text) != 0)
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
	if (spokei_hop_str(value, &text) != 0)
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

int64_t spokei_dubbo_time_left(const struct spokei_dubbo_marks *marks)
{
	int64_t ms;

	if (read_ms(marks->countdown, &ms))
		return ms > 0 ? ms : -1;
	/* Callers set "timeout" to 0 or less to express that there is none. */
	return read_ms(marks->timeout, &ms) && ms > 0 ? ms : 0;
}
