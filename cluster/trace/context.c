/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and makes trace contexts, as W3C Trace Context specifies them. */
#include "cluster/trace/context.h"

#include <string.h>

#define PARENT_LEN (SPOKE_TRACE_PARENT_TEXT - 1)
#define SAMPLE_ALL 1000000u

/* --- the text */

/* Returns the value of a lower-case hexadecimal digit, or -1. */
static int digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads `count` bytes from twice as many digits. */
static bool read_bytes(const unsigned char *text, unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int high = digit(text[2 * i]);
		int low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (unsigned char)(high * 16 + low);
	}
	return true;
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
	while (count > 0)
		if (bytes[--count] != 0)
			return false;
	return true;
}

static bool read_parent(struct spoke_span text, struct spoke_trace_context *context)
{
	const unsigned char *at = text.data;
	unsigned char version;
	unsigned char flags;

	if (text.len < PARENT_LEN || at[2] != '-' || at[35] != '-' || at[52] != '-')
		return false;
	if (!read_bytes(at, &version, 1) || version == 0xff ||
	    !read_bytes(at + 3, context->trace_id, 16) ||
	    !read_bytes(at + 36, context->span_id, 8) || !read_bytes(at + 53, &flags, 1))
		return false;
	/* Later versions may append fields. */
	if (text.len > PARENT_LEN && (version == 0 || at[PARENT_LEN] != '-'))
		return false;
	context->sampled = flags & 1;
	return !is_zero(context->trace_id, 16) && !is_zero(context->span_id, 8);
}

/* --- the check of a tracestate: a list of members "key=value", separated by commas */

#define MEMBERS_MAX 32u
#define PART_MAX 256u /* bytes of a key, and of a value */

struct part {
	const unsigned char *data;
	size_t len;
};

static bool is_alnum(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_space(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static bool is_key(struct part key)
{
	if (key.len == 0 || key.len > PART_MAX || !is_alnum(key.data[0]))
		return false;
	for (size_t i = 1; i < key.len; i++)
		if (!is_alnum(key.data[i]) &&
		    (key.data[i] == '\0' || strchr("_-*/@", key.data[i]) == NULL))
			return false;
	return true;
}

static bool is_value(struct part value)
{
	if (value.len == 0 || value.len > PART_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.data[i] < 0x20 || value.data[i] > 0x7e || value.data[i] == '=')
			return false;
	return true;
}

/* Cuts the next member off, without the spaces around it. */
static struct part next_member(struct part *rest)
{
	const unsigned char *comma = memchr(rest->data, ',', rest->len);
	size_t len = comma ? (size_t)(comma - rest->data) : rest->len;
	struct part member = { rest->data, len };

	rest->data += len + (comma != NULL);
	rest->len -= len + (comma != NULL);
	for (; member.len > 0 && is_space(member.data[0]); member.len--)
		member.data++;
	while (member.len > 0 && is_space(member.data[member.len - 1]))
		member.len--;
	return member;
}

/* Returns whether a tracestate may be passed on: at most 512 bytes and 32 members, each "key=value"
 * with valid characters, and no key twice. */
static bool check_state(struct spoke_span text)
{
	struct part rest = { text.data, text.len };
	struct part keys[MEMBERS_MAX];
	size_t count = 0;

	if (text.len > SPOKE_TRACE_STATE_MAX)
		return false;
	while (rest.len > 0) {
		struct part member = next_member(&rest);
		const unsigned char *equals;
		struct part key;

		if (member.len == 0)
			continue; /* empty members are allowed */
		equals = memchr(member.data, '=', member.len);
		if (equals == NULL || count == MEMBERS_MAX)
			return false;
		key = (struct part){ member.data, (size_t)(equals - member.data) };
		member = (struct part){ equals + 1, member.len - key.len - 1 };
		if (!is_key(key) || !is_value(member))
			return false;
		for (size_t i = 0; i < count; i++)
			if (keys[i].len == key.len && memcmp(keys[i].data, key.data, key.len) == 0)
				return false;
		keys[count++] = key;
	}
	return count > 0;
}

bool spoke_trace_parse(struct spoke_span traceparent, struct spoke_span tracestate,
		       struct spoke_trace_context *ret_context)
{
	*ret_context = (struct spoke_trace_context){ .state_len = 0 };
	if (!read_parent(traceparent, ret_context))
		return false;
	if (tracestate.len == 0 || !check_state(tracestate))
		return true;
	memcpy(ret_context->state, tracestate.data, tracestate.len);
	ret_context->state_len = (uint16_t)tracestate.len;
	return true;
}

static char *put_bytes(char *at, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		*at++ = "0123456789abcdef"[bytes[i] >> 4];
		*at++ = "0123456789abcdef"[bytes[i] & 15];
	}
	return at;
}

void spoke_trace_print(const struct spoke_trace_context *context,
		       char text[SPOKE_TRACE_PARENT_TEXT])
{
	const unsigned char version = 0;
	const unsigned char flags = context->sampled;
	char *at = put_bytes(text, &version, 1);

	*at++ = '-';
	at = put_bytes(at, context->trace_id, 16);
	*at++ = '-';
	at = put_bytes(at, context->span_id, 8);
	*at++ = '-';
	at = put_bytes(at, &flags, 1);
	*at = '\0';
}

/* --- attachments */

static struct spoke_span text_of(struct spoke_value map, const char *key)
{
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;

	if (map.len == 0 || spoke_value_get(map, key, &value) != 0 ||
	    spoke_value_str(value, &text) != 0)
		return (struct spoke_span){ NULL, 0 };
	return text;
}

bool spokei_trace_read(struct spoke_value attachments, struct spoke_trace_context *ret_context)
{
	struct spoke_span parent = text_of(attachments, "traceparent");

	if (parent.len == 0)
		return false;
	return spoke_trace_parse(parent, text_of(attachments, "tracestate"), ret_context);
}

struct spoke_value spokei_trace_write(const struct spoke_trace_context *context,
				      unsigned char bytes[SPOKEI_TRACE_MAP])
{
	char parent[SPOKE_TRACE_PARENT_TEXT];
	struct spoke_builder builder;
	struct spoke_value map;

	spoke_trace_print(context, parent);
	spoke_builder_init_fixed(&builder, bytes, SPOKEI_TRACE_MAP, NULL);
	spoke_pack_map(&builder, context->state_len ? 2 : 1);
	spoke_pack_text(&builder, "traceparent");
	spoke_pack_text(&builder, parent);
	if (context->state_len) {
		spoke_pack_text(&builder, "tracestate");
		spoke_pack_str(&builder, context->state, context->state_len);
	}
	if (spoke_builder_finish_value(&builder, &map) != 0)
		return (struct spoke_value){ NULL, 0 };
	return map;
}

/* --- new spans */

static void make_id(const struct spoke_env *env, unsigned char *id, size_t len)
{
	env->dice(env->ctx, id, len);
	if (is_zero(id, len))
		id[len - 1] = 1;
}

static bool is_sampled(const struct spoke_env *env, uint32_t sample)
{
	uint64_t number;

	if (sample >= SAMPLE_ALL)
		return true;
	env->dice(env->ctx, &number, sizeof(number));
	return number % SAMPLE_ALL < sample;
}

void spokei_trace_begin(const struct spoke_trace_context *parent, uint32_t sample,
			const struct spoke_env *env, struct spoke_trace_context *ret_context)
{
	if (parent) {
		*ret_context = *parent;
	} else {
		*ret_context = (struct spoke_trace_context){ .state_len = 0 };
		make_id(env, ret_context->trace_id, sizeof(ret_context->trace_id));
		ret_context->sampled = is_sampled(env, sample);
	}
	make_id(env, ret_context->span_id, sizeof(ret_context->span_id));
}
