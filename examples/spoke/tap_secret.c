/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the secrets of messages before spoke tap prints them. */
#include "examples/spoke/tap_secret.h"

#include <spoke/host.h>
#include <spoke/url.h>

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HIDDEN "***"
#define NEAR                                                                                       \
	272u     /* bytes after a name that may be its value: a token with its length or "Bearer" */
#define TAIL 16u /* bytes of a name that are read, more than the longest secret one */
#define SEARCHES_MAX 8u /* values for which all bytes are searched */
#define KEY_MAX 256u    /* bytes of an encoded key of a query; a longer one counts as a secret */

static bool is_any_case(struct spoke_span span, const char *text)
{
	return span.len == strlen(text) && strncasecmp(span.data, text, span.len) == 0;
}

/* Does a name end like that of a secret? The library has the list, and hides such parameters. */
static bool is_secret(struct spoke_span name)
{
	size_t len = name.len < TAIL ? name.len : TAIL;
	const char *tail = name.data;
	char key[TAIL + 1];
	char text[3 * TAIL + 16];
	const struct spoke_url_parameter parameter = { key, "" };
	const struct spoke_url url = {
		.scheme = "",
		.socket = "",
		.port = -1,
		.parameter_count = 1,
		.parameters = &parameter,
	};
	size_t text_len;

	for (size_t i = 0; i < len; i++) {
		char byte = tail[name.len - len + i];

		key[i] = (char)(byte ? byte : '.');
	}
	key[len] = '\0';
	text_len = spoke_url_print(&url, SPOKE_URL_DISPLAY, text, sizeof(text));
	return text_len > 0 && text[text_len - 1] == '*';
}

/* Is the key of a query a secret? It may be encoded. */
static bool is_secret_key(struct spoke_span key)
{
	char text[KEY_MAX];
	size_t len;

	if (key.len >= sizeof(text))
		return true;
	if (spoke_url_decode(key.data, key.len, text, sizeof(text), &len))
		return is_secret(key);
	return is_secret((struct spoke_span){ text, len });
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

/* Covers visible bytes that follow a secret name, where nothing tells which of them are its value.
 * Goes backwards, so that no name is covered before it is found. Names end with letters. */
static void cover_near(char *bytes, size_t len)
{
	for (size_t begin = len; begin > 1; begin--) {
		size_t end = len - begin < NEAR ? len : begin + NEAR;

		if (!isalpha((unsigned char)bytes[begin - 1]) ||
		    !isalpha((unsigned char)bytes[begin - 2]) ||
		    !is_secret((struct spoke_span){ bytes, begin }))
			continue;
		for (size_t i = begin; i < end; i++)
			if (bytes[i] > ' ' && bytes[i] < 0x7f)
				bytes[i] = '*';
	}
}

/* A copy of bytes that is being covered. */
struct covering {
	char *copy;
	struct spoke_span bytes;
	unsigned searches;
	bool guesses; /* there are more values than searches */
};

/* Covers a text wherever it stands. */
static void cover(struct covering *covering, struct spoke_span text)
{
	char *end = covering->copy + covering->bytes.len;
	char *at = covering->copy;

	while (text.len > 0 && (at = memmem(at, (size_t)(end - at), text.data, text.len)) != NULL) {
		memset(at, '*', text.len);
		at += text.len;
	}
}

/* Covers a text that is a part of the bytes. Returns whether it is one. */
static bool cover_in_place(struct covering *covering, struct spoke_span text)
{
	size_t at = (size_t)((uintptr_t)text.data - (uintptr_t)covering->bytes.data);

	if (text.len > covering->bytes.len || at > covering->bytes.len - text.len)
		return false;
	memset(covering->copy + at, '*', text.len);
	return true;
}

/* Covers a value: the content of a text, which all serializations write as it is; else its bytes in
 * msgpack. The peer decides how many values there are, so only the first are searched for. */
static void cover_value(struct covering *covering, struct spoke_value value)
{
	struct spoke_span text;
	bool in_place;

	if (spoke_value_bytes(value, &text))
		text = (struct spoke_span){ value.data, value.len };
	in_place = cover_in_place(covering, text);
	if (covering->searches < SEARCHES_MAX)
		cover(covering, text);
	else if (!in_place)
		covering->guesses = true;
	covering->searches++;
}

static void cover_values(char *bytes, const struct spoke_frame *frame)
{
	struct covering covering = { .copy = bytes, .bytes = frame->bytes };
	struct spoke_cursor args = spoke_cursor_bytes(frame->args);
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	while (is_proof(frame) && spoke_cursor_next(&args, &value))
		cover_value(&covering, value);
	if (frame->attachments.len > 0 &&
	    spoke_cursor_map(value_of(frame->attachments), &pairs) == 0)
		while (spoke_cursor_next_pair(&pairs, &key, &value))
			if (spoke_value_str(key, &name) == 0 && is_secret(name))
				cover_value(&covering, value);
	if (covering.guesses)
		cover_near(bytes, frame->bytes.len);
}

/* --- lines of HTTP */

static bool is_secret_header(struct spoke_span name)
{
	static const char cookie[] = "cookie"; /* also "Set-Cookie" */
	const char *text = name.data;
	size_t len = sizeof(cookie) - 1;

	while (name.len > 0 && (text[name.len - 1] == ' ' || text[name.len - 1] == '\t'))
		name.len--;
	return is_secret(name) ||
	       (name.len >= len && strncasecmp(text + name.len - len, cookie, len) == 0);
}

static bool is_blank(char byte)
{
	return (unsigned char)byte <= ' ';
}

/* Covers the values of secret parameters of the URL in a line. `copy` is the same line, or NULL to
 * look only. Returns whether there is one. */
static bool cover_query(const char *line, size_t len, char *copy)
{
	const char *end = line + len;
	const char *at = memchr(line, '?', len);
	bool found = false;

	while (at && at < end && !is_blank(*at)) {
		const char *key = at + 1;
		const char *equals = NULL;

		for (at = key; at < end && *at != '&' && !is_blank(*at); at++)
			if (*at == '=' && !equals)
				equals = at;
		if (!equals || !is_secret_key((struct spoke_span){ key, (size_t)(equals - key) }))
			continue;
		found = true;
		if (copy)
			memset(copy + (equals + 1 - line), '*', (size_t)(at - equals - 1));
	}
	return found;
}

static size_t line_len(const char *line, const char *end)
{
	const char *feed = memchr(line, '\n', (size_t)(end - line));

	return (size_t)((feed ? feed : end) - line);
}

/* Covers the values of secret header lines, e.g. "Spoke-Attachment-token", and of secret parameters
 * in the first line and in others, e.g. "Referer". They may be encoded, so they differ from the
 * attachments. */
static void cover_lines(char *bytes, size_t len)
{
	char *end = bytes + len;

	for (char *line = bytes; line < end;) {
		char *stop = line + line_len(line, end);
		char *colon = memchr(line, ':', (size_t)(stop - line));

		if (stop - line <= 1)
			return; /* the body comes */
		(void)cover_query(line, (size_t)(stop - line), line);
		if (colon && is_secret_header((struct spoke_span){ line, (size_t)(colon - line) }))
			for (char *byte = colon + 1; byte < stop; byte++)
				*byte = (char)(is_blank(*byte) ? *byte : '*');
		line = stop + 1;
	}
}

/* Does the first line of a request of HTTP have a secret parameter? It is an argument. */
static bool has_secret_query(const struct spoke_frame *frame)
{
	const char *bytes = frame->bytes.data;

	return frame->bytes.len > 0 && frame->kind <= SPOKE_FRAME_ONEWAY &&
	       strcmp(frame->wire, "http") == 0 &&
	       cover_query(bytes, line_len(bytes, bytes + frame->bytes.len), NULL);
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
	if (!frame->bad && (is_proof(frame) || has_secret_query(frame)))
		ret->frame.args = copy_args(frame, &ret->args);
	if (!frame->bad && attachments)
		ret->frame.attachments = copy_attachments(frame, &ret->attachments);
	if (!bytes)
		return;
	ret->bytes = frame->bad ? tap_secret_guess(frame->bytes) : copy_bytes(frame->bytes);
	ret->frame.bytes = (struct spoke_span){ ret->bytes, ret->bytes ? frame->bytes.len : 0 };
	if (ret->bytes && !frame->bad)
		cover_values(ret->bytes, frame);
	if (ret->bytes && strcmp(frame->wire, "http") == 0)
		cover_lines(ret->bytes, frame->bytes.len);
}

void tap_secret_fini(struct tap_secret *secret)
{
	spoke_builder_fini(&secret->args);
	spoke_builder_fini(&secret->attachments);
	free(secret->bytes);
}
