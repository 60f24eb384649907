/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of browsers, and the bytes that they read and write. */
#define _GNU_SOURCE
#include "tests/sim/gateway.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * --- readers of a gateway's bytes, as browsers have them: heads of HTTP, Server-Sent Events,
 * frames of WebSockets, answers to long polls. Whatever is not of the documented form is a
 * violation
 */

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

/* Reads the bytes that have arrived. May close the connection. */
static void sim_page_read(struct sim_page *page)
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
static void sim_page_input_ends(struct sim_page *page)
{
	page->in_len = 0;
}

/*
 * --- the pages: each connects in one way, asks, listens, and connects again with its last id
 */

#define AT "127.0.0.1:8080"
#define RETRY_NS (50 * MS) /* until the gateway has told another pause */
#define AGAIN_NS 50000u    /* a descriptor that was ready, and could not be used */
#define CONNECT_NS SECOND
#define READ_MAX 16384u
#define TEXT_PERMILLE 5u

static uint64_t now_of(const struct sim_page *page)
{
	return sim_gateway_now(page->gateway);
}

/* --- ends */

void sim_page_close_for(struct sim_page *page, uint64_t ns)
{
	if (page->fd >= 0)
		spokei_vnet_table.close(&page->gateway->browser.user, page->fd);
	page->fd = -1;
	page->state = SIM_PAGE_WAITS;
	page->connected = false;
	page->frozen_ns = 0;
	page->again_ns = 0;
	page->sip = 0;
	page->next_ns = now_of(page) + ns;
}

void sim_page_close(struct sim_page *page)
{
	sim_page_close_for(page, page->retry_ns);
}

void sim_page_stays_away(struct sim_page *page)
{
	struct sim_gateway *gateway = page->gateway;
	uint64_t ns = gateway->healing ? page->retry_ns
				       : sim_magnitude(sim_gateway_dice(gateway), MS, SECOND);

	sim_note(&gateway->world, "page % stays away for % us", page->number, ns / 1000, 0, 0);
	sim_page_close_for(page, ns);
}

/* --- the request */

static void print_request(struct sim_page *page)
{
	static const char *const paths[] = {
		[SPOKE_COMET_EVENTS] = "events",
		[SPOKE_COMET_SOCKET] = "socket",
		[SPOKE_COMET_POLL] = "poll",
	};
	const bool by_head = page->kind == SPOKE_COMET_EVENTS;
	const char *head = by_head && page->last[0] ? "Last-Event-ID: " : "";
	char query[64] = "";
	int len;

	if (!by_head && page->last[0])
		(void)snprintf(query, sizeof(query), "&%s=%s",
			       page->kind == SPOKE_COMET_POLL ? "after" : "last", page->last);
	len = snprintf((char *)page->out, sizeof(page->out),
		       "GET /spoke/%s?page=%u&nonce=%u%s HTTP/1.1\r\nHost: " AT "\r\n"
		       "Origin: http://" AT "\r\n%s%s%s%s\r\n",
		       paths[page->kind], page->number, (unsigned)page->nonce, query, head,
		       head[0] ? page->last : "", head[0] ? "\r\n" : "",
		       page->kind == SPOKE_COMET_SOCKET
			       ? "Upgrade: websocket\r\nConnection: Upgrade\r\n"
				 "Sec-WebSocket-Version: 13\r\n"
				 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
			       : "");
	page->out_len = (size_t)len;
	page->out_at = 0;
}

static void ask(struct sim_page *page)
{
	struct sim_gateway *gateway = page->gateway;

	if (gateway->asked_count == SIM_ASKED)
		abort();
	page->nonce = ++gateway->asked_count;
	page->state = SIM_PAGE_ASKS;
	page->in_len = 0;
	page->status = 0;
	page->over = false;
	page->resumes = page->last[0] != '\0';
	sim_page_asks(page);
	print_request(page);
}

static void connect_page(struct sim_page *page)
{
	struct spokei_vnet_user *user = &page->gateway->browser.user;
	struct spoke_address to;
	int error;

	if (spokei_vnet_table.parse(user, AT, &to))
		abort();
	error = spokei_vnet_table.connect(user, &to, &page->fd);
	if (error == -EINPROGRESS) {
		page->state = SIM_PAGE_CONNECTS;
		page->next_ns = now_of(page) + CONNECT_NS;
	} else if (error) {
		page->fd = -1;
		sim_page_close_for(page, page->retry_ns + RETRY_NS);
	} else {
		ask(page);
	}
}

/* --- its connection is ready */

static bool write_out(struct sim_page *page)
{
	struct iovec part = { page->out + page->out_at, page->out_len - page->out_at };
	ssize_t wrote = spokei_vnet_table.write(&page->gateway->browser.user, page->fd, &part, 1);

	if (wrote < 0 && wrote != -EAGAIN && wrote != -EINTR) {
		sim_page_close(page);
		return false;
	}
	if (wrote > 0)
		page->out_at += (size_t)wrote;
	return true;
}

/* Returns false once the connection is closed. */
static bool read_in(struct sim_page *page)
{
	size_t room = sizeof(page->in) - page->in_len;
	ssize_t got;

	room = room > READ_MAX ? READ_MAX : room;
	if (page->sip && room > page->sip)
		room = page->sip;
	if (room == 0)
		sim_page_broken(page, "an event without an end");
	got = spokei_vnet_table.read(&page->gateway->browser.user, page->fd,
				     page->in + page->in_len, room);
	if (got == -EAGAIN || got == -EINTR)
		return true;
	if (got == 0)
		sim_page_input_ends(page);
	if (got <= 0 && page->fd >= 0)
		sim_page_close(page);
	if (got <= 0)
		return false;
	page->in_len += (size_t)got;
	sim_page_read(page);
	return page->fd >= 0;
}

/* Now and then a page with a WebSocket sends a text, in a frame with the mask 0. */
static void say(struct sim_page *page)
{
	int len;

	if (page->kind != SPOKE_COMET_SOCKET || !page->connected || page->out_at < page->out_len ||
	    page->gateway->healing || !sim_chance(sim_gateway_dice(page->gateway), TEXT_PERMILLE))
		return;
	len = snprintf((char *)page->out + 6, sizeof(page->out) - 6, "page=%u", page->number);
	memcpy(page->out, (unsigned char[]){ 0x81, (unsigned char)(0x80 | len), 0, 0, 0, 0 }, 6);
	page->out_at = 0;
	page->out_len = 6 + (size_t)len;
}

static void act(struct sim_page *page, unsigned io)
{
	struct spokei_vnet_user *user = &page->gateway->browser.user;

	if (page->state == SIM_PAGE_CONNECTS) {
		int error = (io & SPOKE_IO_WRITE) ? spokei_vnet_table.finish(user, page->fd)
						  : -EINPROGRESS;

		if (error == -EINPROGRESS)
			return;
		if (error) {
			sim_page_close_for(page, page->retry_ns + RETRY_NS);
			return;
		}
		ask(page);
	}
	say(page);
	if ((io & SPOKE_IO_WRITE) && page->out_at < page->out_len && !write_out(page))
		return;
	if ((io & SPOKE_IO_READ) && !read_in(page))
		return;
	io = spokei_vnet_ready(page->gateway->world.virt.net, page->fd);
	if (page->sip && (io & SPOKE_IO_READ))
		page->again_ns = now_of(page) + page->sip_ns;
	else if ((io & SPOKE_IO_READ) || (page->out_at < page->out_len && (io & SPOKE_IO_WRITE)))
		page->again_ns = now_of(page) + AGAIN_NS;
}

static void turn(struct sim_page *page)
{
	const uint64_t now_ns = now_of(page);
	unsigned io;

	if (page->state == SIM_PAGE_GONE || page->frozen_ns > now_ns || page->again_ns > now_ns)
		return;
	page->again_ns = 0;
	if (page->state == SIM_PAGE_WAITS) {
		if (page->next_ns <= now_ns)
			connect_page(page);
		return;
	}
	io = spokei_vnet_ready(page->gateway->world.virt.net, page->fd);
	if (io)
		act(page, io);
	if (page->state == SIM_PAGE_CONNECTS && page->next_ns <= now_ns)
		sim_page_close(page);
}

/* --- all pages */

void sim_pages_turn(struct sim_gateway *gateway)
{
	for (unsigned i = 0; i < gateway->plan.pages; i++)
		turn(&gateway->pages[i]);
}

uint64_t sim_pages_next(const struct sim_gateway *gateway)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < gateway->plan.pages; i++) {
		const struct sim_page *page = &gateway->pages[i];
		uint64_t ns = page->state <= SIM_PAGE_CONNECTS ? page->next_ns : UINT64_MAX;

		if (page->state == SIM_PAGE_GONE)
			continue;
		if (page->again_ns && page->again_ns < ns)
			ns = page->again_ns;
		if (page->frozen_ns > sim_gateway_now(gateway))
			ns = page->frozen_ns;
		if (ns < next_ns)
			next_ns = ns;
	}
	return next_ns;
}

void sim_pages_start(struct sim_gateway *gateway)
{
	struct sim_dice *dice = sim_gateway_dice(gateway);

	for (unsigned i = 0; i < gateway->plan.pages; i++) {
		struct sim_page *page = &gateway->pages[i];

		page->gateway = gateway;
		page->number = i;
		page->user = (unsigned)(sim_throw(dice) % gateway->plan.users);
		page->kind = (enum spoke_comet_kind)(sim_throw(dice) % 3);
		page->fd = -1;
		page->retry_ns = RETRY_NS;
		page->next_ns = sim_gateway_now(gateway) + sim_magnitude(dice, 1000, 200 * MS);
	}
}
