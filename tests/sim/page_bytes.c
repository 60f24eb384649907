/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of a gateway's bytes, as browsers have them: heads of HTTP, Server-Sent Events, frames of
 * WebSockets, answers to long polls. Whatever is not of the documented form is a violation.
 */
#define _GNU_SOURCE
#include "tests/sim/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_RESTART 1012u
#define CLOSE_LATER 1013u

static void take(struct sim_page *page, size_t len)
{
	page->in_len -= len;
	memmove(page->in, page->in + len, page->in_len);
}

static void set_retry(struct sim_page *page, uint64_t ms, bool opens)
{
	sim_page_pause(page, ms, opens);
	page->retry_ns = ms * MS;
}

/* --- events of the gateway itself, and messages */

static void give(struct sim_page *page, const struct sim_page_event *event)
{
	if (event->id[0])
		memcpy(page->last, event->id, sizeof(page->last));
	if (strcmp(event->name, "closed") == 0) {
		sim_page_stays_away(page);
		return;
	}
	if (strcmp(event->name, "hello") == 0 || strcmp(event->name, "reconnect") == 0) {
		if (strncmp(event->data, "{\"retry\":", 9) != 0)
			sim_page_broken(page, "no pause before the next connection");
		set_retry(page, strtoul(event->data + 9, NULL, 10),
			  strcmp(event->name, "hello") == 0);
	}
	sim_page_event(page, event);
}

/* --- JSON of messages */

/* Reads a string of JSON and unescapes it in its place. Returns the byte behind it; NULL: it is
 * none. */
static char *read_string(char *at, char **ret_text, size_t *ret_len)
{
	char *out = at + 1;

	if (*at++ != '"')
		return NULL;
	*ret_text = out;
	while (*at != '"') {
		if ((unsigned char)*at < ' ')
			return NULL;
		if (*at == '\\') {
			at++;
			if (*at != 'n' && *at != '"' && *at != '\\')
				return NULL;
			*out++ = *at == 'n' ? '\n' : *at;
			at++;
		} else {
			*out++ = *at++;
		}
	}
	*ret_len = (size_t)(out - *ret_text);
	return at + 1;
}

static char *expect(char *at, const char *text)
{
	size_t len = strlen(text);

	return at && strncmp(at, text, len) == 0 ? at + len : NULL;
}

/* Reads {"id":"...","event":"...","data":"..."}. The text ends with a NUL. */
static char *read_message(char *at, struct sim_page_event *event)
{
	char *id = NULL;
	char *name = NULL;
	size_t id_len = 0;
	size_t name_len = 0;

	at = expect(at, "{\"id\":");
	at = at ? read_string(at, &id, &id_len) : NULL;
	at = expect(at, ",\"event\":");
	at = at ? read_string(at, &name, &name_len) : NULL;
	at = expect(at, ",\"data\":");
	at = at ? read_string(at, &event->data, &event->data_len) : NULL;
	at = expect(at, "}");
	if (at == NULL || id_len >= sizeof(event->id) || name_len >= sizeof(event->name))
		return NULL;
	memset(event->id, 0, sizeof(event->id));
	memset(event->name, 0, sizeof(event->name));
	memcpy(event->id, id, id_len);
	memcpy(event->name, name, name_len);
	event->data[event->data_len] = '\0';
	return at;
}

/* --- Server-Sent Events */

static void read_line(struct sim_page *page, struct sim_page_event *event, char *line,
		      unsigned long *retry_ms)
{
	if (strncmp(line, "id: ", 4) == 0)
		(void)snprintf(event->id, sizeof(event->id), "%s", line + 4);
	else if (strncmp(line, "event: ", 7) == 0)
		(void)snprintf(event->name, sizeof(event->name), "%s", line + 7);
	else if (strncmp(line, "retry: ", 7) == 0)
		*retry_ms = strtoul(line + 7, NULL, 10);
	else if (strcmp(line, "data:") == 0 || strncmp(line, "data: ", 6) == 0) {
		const char *text = line[5] ? line + 6 : line + 5;

		if (event->data_len)
			event->data[event->data_len++] = '\n';
		memcpy(event->data + event->data_len, text, strlen(text) + 1);
		event->data_len += strlen(text);
	} else if (line[0] != ':') {
		sim_page_broken(page, "a line that is no field of an event");
	}
}

/* Reads the event of `len` bytes up to its empty line. */
static void read_event(struct sim_page *page, size_t len)
{
	static char data[SIM_PAGE_IN];
	struct sim_page_event event = { .name = "message", .data = data };
	unsigned long retry_ms = 0;
	char *line = (char *)page->in;

	data[0] = '\0';
	while (line < (char *)page->in + len - 1) {
		char *end = strchr(line, '\n');

		*end = '\0';
		read_line(page, &event, line, &retry_ms);
		line = end + 1;
	}
	take(page, len);
	if (retry_ms && strcmp(event.name, "closed") != 0)
		set_retry(page, retry_ms, false);
	if (data[0])
		give(page, &event);
	else if (event.id[0])
		sim_page_broken(page, "an id without data");
}

static void read_events(struct sim_page *page)
{
	while (page->fd >= 0 && page->in_len >= 2) {
		const unsigned char *at = page->in;
		const unsigned char *end = memmem(at, page->in_len, "\n\n", 2);

		if (end == NULL)
			return;
		read_event(page, (size_t)(end - at) + 2);
	}
}

/* --- WebSockets */

static void answer_frame(struct sim_page *page, unsigned char opcode, const unsigned char *bytes,
			 size_t len)
{
	if (page->out_at < page->out_len)
		return;
	page->out[0] = (unsigned char)(0x80 | opcode);
	page->out[1] = (unsigned char)(0x80 | len);
	memset(page->out + 2, 0, 4);
	memcpy(page->out + 6, bytes, len);
	page->out_at = 0;
	page->out_len = 6 + len;
}

static void read_close(struct sim_page *page, const unsigned char *bytes, size_t len)
{
	unsigned code = len >= 2 ? (unsigned)(bytes[0] << 8 | bytes[1]) : 0;
	char reason[128];

	(void)snprintf(reason, sizeof(reason), "%.*s", len >= 2 ? (int)len - 2 : 0, bytes + 2);
	sim_note(&page->gateway->world, "page %: close code %", page->number, code, 0, 0);
	if (code == CLOSE_RESTART || code == CLOSE_LATER) {
		if (strncmp(reason, "retry=", 6) != 0)
			sim_page_broken(page, "no pause before the next connection");
		set_retry(page, strtoul(reason + 6, NULL, 10), false);
		sim_page_close(page);
	} else {
		sim_page_stays_away(page);
	}
}

static void read_payload(struct sim_page *page, unsigned char opcode, unsigned char *bytes,
			 size_t len)
{
	static char text[SIM_PAGE_IN + 1];
	struct sim_page_event event;
	char *end;

	if (opcode == 9) {
		answer_frame(page, 10, bytes, len);
		return;
	}
	if (opcode == 8) {
		read_close(page, bytes, len);
		return;
	}
	if (opcode != 1)
		sim_page_broken(page, "a frame of another kind");
	memcpy(text, bytes, len);
	text[len] = '\0';
	end = read_message(text, &event);
	if (end == NULL || end != text + len)
		sim_page_broken(page, "a text that is no message");
	give(page, &event);
}

static void read_frames(struct sim_page *page)
{
	static unsigned char payload[SIM_PAGE_IN];

	while (page->fd >= 0 && page->in_len >= 2) {
		const unsigned char opcode = page->in[0] & 15;
		size_t len = page->in[1];
		size_t head = len < 126 ? 2 : len == 126 ? 4 : 10;

		if ((page->in[0] & 0xf0) != 0x80 || len > 127)
			sim_page_broken(page, "a frame that is not whole, or is masked");
		if (page->in_len < head)
			return;
		if (head > 2)
			len = 0;
		for (size_t i = 2; i < head; i++)
			len = len << 8 | page->in[i];
		if (len > sizeof(payload) - 16)
			sim_page_broken(page, "a frame that is too long");
		if (page->in_len < head + len)
			return;
		memcpy(payload, page->in + head, len);
		take(page, head + len);
		read_payload(page, opcode, payload, len);
	}
}

/* --- bodies with a length */

/* A page that has to pause, and has the same id as before, perhaps none, was not admitted. */
static bool is_not_served(struct sim_page *page, const char *last, uint64_t again_ms)
{
	if (strcmp(last, page->last) != 0 || again_ms == 0)
		return false;
	set_retry(page, again_ms, false);
	return true;
}

static void read_poll(struct sim_page *page, char *body)
{
	struct sim_page_event event;
	char last[SPOKE_COMET_ID] = "";
	char *text;
	size_t len;
	char *at = expect(body, "{\"last\":");

	at = at ? read_string(at, &text, &len) : NULL;
	if (at && len < sizeof(last)) {
		memcpy(last, text, len);
		body = at;
		at = expect(body, ",\"retry\":");
		if (at) /* not with "closed" */
			set_retry(page, strtoul(at, &body, 10), true);
		at = expect(body, ",\"again\":");
		if (at && is_not_served(page, last, strtoul(at, NULL, 10)))
			return;
		if (at)
			page->retry_ns = (strtoul(at, NULL, 10) + 1) * MS;
		at = at ? strchr(at, '}') : expect(body, ",\"messages\":[");
	} else {
		at = expect(body, "{\"messages\":[");
	}
	if (at && *at == '}') {
		sim_page_upto(page, last);
		return;
	}
	while (at && *at == '{') {
		at = read_message(at, &event);
		if (at) {
			give(page, &event);
			at += *at == ',';
		}
		page->retry_ns = page->fd >= 0 ? MS : page->retry_ns;
	}
	if (expect(at, "]}") == NULL)
		sim_page_broken(page, "an answer to a poll of another form");
	if (last[0])
		sim_page_upto(page, last);
}

static void read_body(struct sim_page *page)
{
	static char body[SIM_PAGE_IN + 1];

	if (page->in_len < page->body_len)
		return;
	if (page->in_len > page->body_len)
		sim_page_broken(page, "bytes behind the response");
	memcpy(body, page->in, page->body_len);
	body[page->body_len] = '\0';
	take(page, page->body_len);
	page->over = true;
	if (page->status != 200) {
		if (page->status == 403)
			sim_page_stays_away(page);
	} else if (page->kind == SPOKE_COMET_POLL) {
		read_poll(page, body);
	} else if (page->kind == SPOKE_COMET_EVENTS) {
		memcpy(page->in, body, page->body_len);
		page->in_len = page->body_len;
		read_events(page);
	} else {
		sim_page_broken(page, "a WebSocket is answered with 200");
	}
	if (page->fd >= 0)
		sim_page_close(page);
}

/* --- heads */

static void read_head(struct sim_page *page)
{
	const unsigned char *end = memmem(page->in, page->in_len, "\r\n\r\n", 4);
	char head[1024];
	const char *length;
	size_t len;

	if (end == NULL)
		return;
	len = (size_t)(end - page->in) + 4;
	if (len >= sizeof(head) || strncmp((const char *)page->in, "HTTP/1.1 ", 9) != 0)
		sim_page_broken(page, "a head that is none");
	memcpy(head, page->in, len);
	head[len] = '\0';
	take(page, len);
	page->status = (int)strtol(head + 9, NULL, 10);
	length = strstr(head, "Content-Length: ");
	page->by_length = length != NULL;
	page->body_len = length ? strtoul(length + 16, NULL, 10) : 0;
	if (page->body_len >= SIM_PAGE_IN)
		sim_page_broken(page, "a body that is too long");
	page->state = SIM_PAGE_LISTENS;
	sim_note(&page->gateway->world, "page %: status %", page->number, (uint64_t)page->status, 0,
		 0);
	if (page->status == 204)
		sim_page_stays_away(page);
	else if (page->status != 200 && page->status != 101 && !page->by_length)
		sim_page_broken(page, "a response without a length");
}

void sim_page_read(struct sim_page *page)
{
	if (page->status == 0)
		read_head(page);
	if (page->fd < 0 || page->status == 0)
		return;
	if (page->status == 101)
		read_frames(page);
	else if (page->by_length)
		read_body(page);
	else
		read_events(page);
}

/* An event that was cut is dropped, as browsers do it. */
void sim_page_input_ends(struct sim_page *page)
{
	page->in_len = 0;
}
