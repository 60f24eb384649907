/* SPDX-License-Identifier: Apache-2.0 */
/* Server-Sent Events: the bytes of events, and what a browser's parser reads from them. */
#include "tests/support/test.h"
#include "transport/http/response.h"

#include "tests/transport/dice.h"

#include <spoke/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 64u
#define STREAM_MAX 1024u
#define ROUNDS 20000u

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, text ? strlen(text) : 0 };
}

/* Writes into a block of exactly the size that was announced. */
static char *write_event(const struct spokei_sse_event *event, size_t *ret_len)
{
	char *out;

	assert_int_equal(spokei_sse_size(event, ret_len), SPOKE_OK);
	out = malloc(*ret_len);
	assert_non_null(out);
	assert_int_equal(spokei_sse_write(event, out), *ret_len);
	return out;
}

TEST(events_have_their_bytes)
{
	static const struct {
		const char *id;
		const char *name;
		uint32_t retry_ms;
		const char *data;
		const char *bytes;
	} rows[] = {
		{ NULL, NULL, 0, "hello", "data: hello\n\n" },
		{ NULL, NULL, 0, "", "data: \n\n" },
		{ NULL, NULL, 0, NULL, "\n" },
		{ "a1.7", "offer", 1500, "x", "id: a1.7\nevent: offer\nretry: 1500\ndata: x\n\n" },
		{ "", "", 0, "x", "id: \nevent: \ndata: x\n\n" },
		{ NULL, "reconnect", 4294967295u, NULL, "event: reconnect\nretry: 4294967295\n\n" },
		{ NULL, NULL, 0, "a\nb", "data: a\ndata: b\n\n" },
		{ NULL, NULL, 0, "a\rb\r\nc", "data: a\ndata: b\ndata: c\n\n" },
		{ NULL, NULL, 0, "a\n\rb", "data: a\ndata: \ndata: b\n\n" },
		{ NULL, NULL, 0, "\n", "data: \ndata: \n\n" },
		{ NULL, NULL, 0, "a\r\n", "data: a\ndata: \n\n" },
		{ NULL, NULL, 0, " a: b", "data:  a: b\n\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_sse_event event = { span(rows[i].id), span(rows[i].name),
						  span(rows[i].data), rows[i].retry_ms };
		size_t len;
		char *out = write_event(&event, &len);

		assert_int_equal(len, strlen(rows[i].bytes));
		assert_memory_equal(out, rows[i].bytes, len);
		free(out);
	}
}

TEST(line_end_or_nul_in_id_or_name_is_rejected)
{
	static const struct spoke_span bad[] = {
		{ "\n", 1 }, { "a\r", 2 }, { "a\nb", 3 }, { "\0", 1 }, { "a\0b", 3 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct spokei_sse_event with_id = { .id = bad[i], .data = span("x") };
		struct spokei_sse_event with_name = { .name = bad[i], .data = span("x") };
		size_t len = 7;

		assert_int_equal(spokei_sse_size(&with_id, &len), SPOKE_EINVAL);
		assert_int_equal(spokei_sse_size(&with_name, &len), SPOKE_EINVAL);
		assert_int_equal(len, 7);
	}
}

/* --- the parser of the HTML standard, section 9.2.6 */

struct page {
	char id[TEXT_MAX];
	char name[TEXT_MAX];
	char data[STREAM_MAX];
	size_t data_len;
	uint32_t retry_ms;
	bool has_data;
	unsigned events;
	char event_name[TEXT_MAX];
	char event_data[STREAM_MAX];
	size_t event_len;
};

static void take_field(struct page *page, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : len;
	const char *value = colon ? colon + 1 : line + len;
	size_t value_len = len - (size_t)(value - line);

	if (value_len > 0 && *value == ' ') {
		value++;
		value_len--;
	}
	if (name == 4 && memcmp(line, "data", 4) == 0) {
		memcpy(page->data + page->data_len, value, value_len);
		page->data_len += value_len;
		page->data[page->data_len++] = '\n';
		page->has_data = true;
	} else if (name == 2 && memcmp(line, "id", 2) == 0) {
		(void)snprintf(page->id, sizeof(page->id), "%.*s", (int)value_len, value);
	} else if (name == 5 && memcmp(line, "event", 5) == 0) {
		(void)snprintf(page->name, sizeof(page->name), "%.*s", (int)value_len, value);
	} else if (name == 5 && memcmp(line, "retry", 5) == 0) {
		page->retry_ms = (uint32_t)strtoul(value, NULL, 10);
	}
}

static void dispatch(struct page *page)
{
	if (page->has_data) {
		page->events++;
		memcpy(page->event_name, page->name, sizeof(page->name));
		memcpy(page->event_data, page->data, page->data_len - 1);
		page->event_len = page->data_len - 1;
	}
	page->has_data = false;
	page->data_len = 0;
	page->name[0] = '\0';
}

static void parse(struct page *page, const char *bytes, size_t len)
{
	const char *line = bytes;

	for (const char *at = bytes; at < bytes + len; at++) {
		if (*at != '\n' && *at != '\r')
			continue;
		if (at == line)
			dispatch(page);
		else
			take_field(page, line, (size_t)(at - line));
		if (*at == '\r' && at + 1 < bytes + len && at[1] == '\n')
			at++;
		line = at + 1;
	}
	assert_ptr_equal(line, bytes + len);
}

static size_t throw_text(uint64_t *dice, const char *letters, char *out)
{
	size_t len = dice_below(dice, 12);

	for (size_t i = 0; i < len; i++)
		out[i] = letters[dice_below(dice, strlen(letters))];
	out[len] = '\0';
	return len;
}

/* Replaces each line end by LF, as a page sees it. */
static size_t join_lines(const char *text, size_t len, char *out)
{
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		out[at++] = text[i] == '\r' ? '\n' : text[i];
		if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n')
			i++;
	}
	return at;
}

TEST(page_reads_the_event_that_was_written)
{
	uint64_t dice = 1;
	char id[TEXT_MAX];
	char name[TEXT_MAX];
	char data[TEXT_MAX];
	char seen[TEXT_MAX];

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct spokei_sse_event event = { .retry_ms = (uint32_t)dice_below(&dice, 3) };
		struct page page = { .events = 0 };
		size_t len;
		char *out;

		event.id = (struct spoke_span){ id, throw_text(&dice, "a1. :", id) };
		event.name = (struct spoke_span){ name, throw_text(&dice, "b: ", name) };
		event.data = (struct spoke_span){ data, throw_text(&dice, "d: \r\n", data) };
		out = write_event(&event, &len);
		parse(&page, out, len);
		free(out);
		assert_int_equal(page.events, 1);
		assert_string_equal(page.id, id);
		assert_string_equal(page.event_name, name);
		assert_int_equal(page.retry_ms, event.retry_ms);
		assert_int_equal(page.event_len, join_lines(data, event.data.len, seen));
		assert_memory_equal(page.event_data, seen, page.event_len);
	}
}

TEST(keepalive_is_no_event)
{
	struct page page = { .events = 0 };

	parse(&page, SPOKEI_SSE_KEEPALIVE, strlen(SPOKEI_SSE_KEEPALIVE));
	assert_int_equal(page.events, 0);
	assert_string_equal(page.id, "");
}
