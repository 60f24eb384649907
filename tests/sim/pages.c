/* SPDX-License-Identifier: Apache-2.0 */
/* The pages: each connects in one way, asks, listens, and connects again with its last id. */
#include "tests/sim/gateway.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
