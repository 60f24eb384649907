/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the secrets of messages before spoke tap prints them. */
#include "examples/spoke/tap_secret.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HIDDEN "***"
#define NEAR                                                                                       \
	272u /* bytes after a name that may be its value: a token with its length or "Bearer" */

static const char *const names[] = { "token", "signature", "authorization", "password" };

#define NAMES (sizeof(names) / sizeof(names[0]))

static bool is_any_case(struct spoke_span span, const char *text)
{
	return span.len == strlen(text) && strncasecmp(span.data, text, span.len) == 0;
}

static bool is_secret(struct spoke_span name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (is_any_case(name, names[i]))
			return true;
	return false;
}

/* Is it the request by which a connection of MessagePack-RPC shows its token? */
static bool is_proof(const struct spoke_frame *frame)
{
	return frame->kind <= SPOKE_FRAME_ONEWAY && is_any_case(frame->method, "$token");
}

static struct spoke_value value_of(struct spoke_span span)
{
	return (struct spoke_value){ span.data, span.len };
}

/* --- values */

static struct spoke_span copy_attachments(const struct spoke_frame *frame,
					  struct spoke_builder *builder)
{
	struct spoke_span copy = { NULL, 0 };
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	if (frame->attachments.len == 0 || spoke_cursor_map(value_of(frame->attachments), &pairs))
		return copy;
	spoke_pack_map(builder, (size_t)pairs.left / 2);
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		spoke_pack_raw(builder, (struct spoke_span){ key.data, key.len });
		if (spoke_value_str(key, &name) == 0 && is_secret(name))
			spoke_pack_text(builder, HIDDEN);
		else
			spoke_pack_raw(builder, (struct spoke_span){ value.data, value.len });
	}
	if (spoke_builder_finish(builder, &copy))
		copy = (struct spoke_span){ NULL, 0 };
	return copy;
}

static struct spoke_span copy_args(const struct spoke_frame *frame, struct spoke_builder *builder)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(frame->args);
	struct spoke_span copy = { NULL, 0 };
	struct spoke_value value;

	while (spoke_cursor_next(&cursor, &value))
		spoke_pack_text(builder, HIDDEN);
	if (spoke_builder_finish(builder, &copy))
		copy = (struct spoke_span){ NULL, 0 };
	return copy;
}

/* --- bytes */

/* Covers a text wherever it stands. */
static void cover(char *bytes, size_t len, struct spoke_span text)
{
	char *end = bytes + len;
	char *at = bytes;

	while (text.len > 0 && (at = memmem(at, (size_t)(end - at), text.data, text.len)) != NULL) {
		memset(at, '*', text.len);
		at += text.len;
	}
}

/* Covers a value: the content of a text, which all serializations write as it is; else its bytes in
 * msgpack. */
static void cover_value(char *bytes, size_t len, struct spoke_value value)
{
	struct spoke_span text;

	if (spoke_value_bytes(value, &text))
		text = (struct spoke_span){ value.data, value.len };
	cover(bytes, len, text);
}

static void cover_values(char *bytes, size_t len, const struct spoke_frame *frame)
{
	struct spoke_cursor args = spoke_cursor_bytes(frame->args);
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	while (is_proof(frame) && spoke_cursor_next(&args, &value))
		cover_value(bytes, len, value);
	if (frame->attachments.len == 0 || spoke_cursor_map(value_of(frame->attachments), &pairs))
		return;
	while (spoke_cursor_next_pair(&pairs, &key, &value))
		if (spoke_value_str(key, &name) == 0 && is_secret(name))
			cover_value(bytes, len, value);
}

/* Returns the secret name at the beginning of some bytes; NULL: there is none. */
static const char *name_at(const char *bytes, size_t len)
{
	for (size_t i = 0; i < NAMES; i++)
		if (strlen(names[i]) <= len && strncasecmp(bytes, names[i], strlen(names[i])) == 0)
			return names[i];
	return NULL;
}

/* Covers the values of header lines whose name ends with a secret one, e.g.
 * "Spoke-Attachment-token". They may be encoded, so they differ from the attachments. */
static void cover_lines(char *bytes, size_t len)
{
	const char *end = bytes + len;

	for (char *line = bytes; line && line < end;) {
		char *feed = memchr(line, '\n', (size_t)(end - line));
		char *stop = feed ? feed : bytes + len;
		char *colon = memchr(line, ':', (size_t)(stop - line));

		if (stop - line <= 1)
			return; /* the body comes */
		for (char *at = line; colon && at < colon; at++) {
			const char *name = name_at(at, (size_t)(colon - at));

			if (!name || strlen(name) != (size_t)(colon - at))
				continue;
			for (char *byte = colon + 1; byte < stop; byte++)
				*byte = *byte > ' ' ? '*' : *byte;
		}
		line = feed ? feed + 1 : NULL;
	}
}

/* Covers visible bytes that follow a secret name, where nothing tells which of them are its value.
 * Goes backwards, so that no name is covered before it is found. */
static void cover_near(char *bytes, size_t len)
{
	for (size_t at = len; at-- > 0;) {
		const char *name = name_at(bytes + at, len - at);
		size_t begin;
		size_t end;

		if (!name)
			continue;
		begin = at + strlen(name);
		end = len - begin < NEAR ? len : begin + NEAR;
		for (size_t i = begin; i < end; i++)
			if (bytes[i] > ' ' && bytes[i] < 0x7f)
				bytes[i] = '*';
	}
}

static char *copy_bytes(struct spoke_span bytes)
{
	char *copy = malloc(bytes.len + 1);

	if (copy && bytes.len > 0)
		memcpy(copy, bytes.data, bytes.len);
	return copy;
}

char *tap_secret_guess(struct spoke_span bytes)
{
	char *copy = copy_bytes(bytes);

	if (copy)
		cover_near(copy, bytes.len);
	return copy;
}

/* --- a message */

void tap_secret_hide(const struct spoke_frame *frame, bool attachments, bool bytes,
		     struct tap_secret *ret)
{
	*ret = (struct tap_secret){ .frame = *frame };
	spoke_builder_init(&ret->args, spoke_host_env(), NULL);
	spoke_builder_init(&ret->attachments, spoke_host_env(), NULL);
	if (!frame->bad && is_proof(frame))
		ret->frame.args = copy_args(frame, &ret->args);
	if (!frame->bad && attachments)
		ret->frame.attachments = copy_attachments(frame, &ret->attachments);
	if (!bytes)
		return;
	ret->bytes = frame->bad ? tap_secret_guess(frame->bytes) : copy_bytes(frame->bytes);
	ret->frame.bytes = (struct spoke_span){ ret->bytes, ret->bytes ? frame->bytes.len : 0 };
	if (ret->bytes && !frame->bad)
		cover_values(ret->bytes, frame->bytes.len, frame);
	if (ret->bytes && strcmp(frame->wire, "http") == 0)
		cover_lines(ret->bytes, frame->bytes.len);
}

void tap_secret_fini(struct tap_secret *secret)
{
	spoke_builder_fini(&secret->args);
	spoke_builder_fini(&secret->attachments);
	free(secret->bytes);
}
