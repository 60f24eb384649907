/* SPDX-License-Identifier: Apache-2.0 */
/* The memo of Dubbo's requests: keeps the last request and compares the next one with it. */
#include "transport/wire/dubbo/memo.h"

bool spokei_dubbo_said_again(const struct spokei_memo *memo, const struct spokei_dubbo_said *said)
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
	    spokei_hop_small(body->last, body->end, spokei_hop_containers(body->depth_max),
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

void spokei_dubbo_remember_said(struct spokei_memo *memo, const struct spokei_dubbo_body *body,
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
void spokei_dubbo_remember(struct spokei_memo *memo, const unsigned char *at,
			   const unsigned char *args, const struct spokei_message *message,
			   const struct spokei_dubbo_stood *stood)
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
bool spokei_dubbo_read_alike(const struct spokei_memo *memo, struct spoke_span values,
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
