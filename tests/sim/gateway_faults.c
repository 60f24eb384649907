/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a world with a gateway: of its process, of the network, and of its pages. */
#include "tests/sim/gateway.h"

#include <errno.h>

#define AT "127.0.0.1:8080"
#define FROZEN_BYTES 512u
#define LINGER_NS (2 * SECOND) /* of the gateway, for a client to close first */

static uint64_t draw_time(struct sim_gateway *gateway)
{
	return sim_magnitude(sim_gateway_dice(gateway), MS, 2 * SECOND);
}

static bool runs(const struct sim_gateway *gateway)
{
	return gateway->engine && gateway->drain_ns == 0 && gateway->back_ns == 0 &&
	       gateway->virt.held_until_ns <= sim_gateway_now(gateway);
}

/* --- faults of the gateway */

static bool end_gateway(struct sim_gateway *gateway)
{
	if (!runs(gateway))
		return false;
	sim_note(&gateway->world, "the gateway is killed", 0, 0, 0, 0);
	sim_gateway_end(gateway);
	gateway->back_ns = sim_gateway_now(gateway) + draw_time(gateway);
	return true;
}

/* Requests that wait for the authorizer, or for their end, hold up the drain too. */
void sim_gateway_drain(struct sim_gateway *gateway)
{
	const struct spoke_comet_options *with = &gateway->with;
	const uint64_t now_ns = sim_gateway_now(gateway);
	const uint64_t most_ns = with->drain_ns + with->authorize_ns + with->head_ns +
				 with->slow_ns + LINGER_NS + 100 * MS;

	if (spoke_engine_drain(gateway->engine, most_ns + 10 * SECOND))
		return;
	sim_note(&gateway->world, "the gateway drains for % us", with->drain_ns / 1000, 0, 0, 0);
	gateway->drain_ns = now_ns;
	gateway->drained_ns = now_ns + most_ns;
	gateway->drain_count = 0;
	for (unsigned i = 0; i < SIM_TENTHS; i++)
		gateway->ended[i] = 0;
}

static bool drain(struct sim_gateway *gateway)
{
	if (!runs(gateway))
		return false;
	sim_gateway_drain(gateway);
	return gateway->drain_ns > 0;
}

static bool hold(struct sim_gateway *gateway)
{
	uint64_t ns = sim_magnitude(sim_gateway_dice(gateway), MS, 500 * MS);

	if (gateway->engine == NULL)
		return false;
	sim_note(&gateway->world, "the gateway is frozen for % us", ns / 1000, 0, 0, 0);
	sim_gateway_hold(gateway, ns);
	return true;
}

static bool fail_memory(struct sim_gateway *gateway)
{
	gateway->virt.fail_at = gateway->virt.demands +
				sim_magnitude(sim_gateway_dice(gateway), 1, 100);
	sim_note(&gateway->world, "the gateway: the next allocation fails", 0, 0, 0, 0);
	return true;
}

static bool change_route(struct sim_gateway *gateway)
{
	static const enum spokei_vnet_route routes[] = { SPOKEI_VNET_REFUSE, SPOKEI_VNET_SILENT,
							 SPOKEI_VNET_AT_ONCE };
	unsigned which = (unsigned)(sim_throw(sim_gateway_dice(gateway)) % 3);

	sim_note(&gateway->world, "the route to the gateway is now: %r", routes[which], 0, 0, 0);
	spokei_vnet_route(gateway->world.virt.net, AT, routes[which]);
	gateway->route_ns = sim_gateway_now(gateway) + draw_time(gateway);
	return true;
}

static bool fail_accept(struct sim_gateway *gateway)
{
	static const int errors[] = { -ECONNABORTED, -EMFILE, -ENOBUFS, -EINTR, -EAGAIN };
	struct sim_dice *dice = sim_gateway_dice(gateway);
	int error = errors[sim_throw(dice) % (sizeof(errors) / sizeof(errors[0]))];

	sim_note(&gateway->world, "the gateway cannot accept: %s", (uint64_t)-error, 0, 0, 0);
	return spokei_vnet_fail_accepts_at(gateway->world.virt.net, AT, error,
					   (unsigned)sim_between(dice, 1, 5));
}

/* --- faults of a page, and of its connection */

static struct sim_page *any_page(struct sim_gateway *gateway)
{
	struct sim_page *page =
		&gateway->pages[sim_throw(sim_gateway_dice(gateway)) % gateway->plan.pages];

	return page->fd >= 0 && page->state != SIM_PAGE_CONNECTS ? page : NULL;
}

static bool reset(struct sim_gateway *gateway)
{
	const struct sim_page *page = any_page(gateway);

	if (page == NULL)
		return false;
	sim_note(&gateway->world, "page %: the connection is reset", page->number, 0, 0, 0);
	spokei_vnet_reset(gateway->world.virt.net, page->fd);
	return true;
}

/* What the page writes is lost; the page may notice late that nothing comes, or never. */
static bool open_hole(struct sim_gateway *gateway)
{
	struct sim_page *page = any_page(gateway);

	if (page == NULL)
		return false;
	sim_note(&gateway->world, "page %: nothing that it sends arrives", page->number, 0, 0, 0);
	spokei_vnet_link(gateway->world.virt.net, page->fd)->blackhole = true;
	return true;
}

static bool delay(struct sim_gateway *gateway)
{
	const struct sim_page *page = any_page(gateway);
	uint64_t ns = sim_magnitude(sim_gateway_dice(gateway), MS, 500 * MS);

	if (page == NULL)
		return false;
	sim_note(&gateway->world, "page %: its bytes take % us", page->number, ns / 1000, 0, 0);
	spokei_vnet_link(gateway->world.virt.net, page->fd)->latency_ns = ns;
	return true;
}

static bool freeze(struct sim_gateway *gateway)
{
	struct sim_page *page = any_page(gateway);
	uint64_t ns = sim_magnitude(sim_gateway_dice(gateway), 20 * MS, 4 * SECOND);

	if (page == NULL)
		return false;
	sim_note(&gateway->world, "page % is frozen for % us", page->number, ns / 1000, 0, 0);
	page->frozen_ns = sim_gateway_now(gateway) + ns;
	for (int fd = 0; fd < SIM_FDS; fd++)
		if (gateway->gates[fd].open && gateway->gates[fd].page_fd == page->fd)
			spokei_vnet_link(gateway->world.virt.net, fd)->capacity = FROZEN_BYTES;
	return true;
}

static bool sip(struct sim_gateway *gateway)
{
	struct sim_page *page = any_page(gateway);
	struct sim_dice *dice = sim_gateway_dice(gateway);

	if (page == NULL)
		return false;
	page->sip = (size_t)sim_magnitude(dice, 1, 256);
	page->sip_ns = sim_magnitude(dice, MS, 100 * MS);
	sim_note(&gateway->world, "page % reads % bytes at a time, each % us", page->number,
		 page->sip, page->sip_ns / 1000, 0);
	return true;
}

static bool leave(struct sim_gateway *gateway)
{
	struct sim_page *page = any_page(gateway);
	bool anew = sim_chance(sim_gateway_dice(gateway), 300);

	if (page == NULL)
		return false;
	sim_note(&gateway->world, "page % leaves, and is loaded anew: %", page->number, anew, 0, 0);
	sim_page_close_for(page, draw_time(gateway));
	if (anew) {
		page->last[0] = '\0';
		page->epoch = 0;
		page->owed = false;
	}
	return true;
}

/* --- all kinds */

static bool (*const begin[SIM_GATEWAY_FAULTS])(struct sim_gateway *gateway) = {
	[SIM_GATEWAY_KILL] = end_gateway,
	[SIM_GATEWAY_DRAIN] = drain,
	[SIM_GATEWAY_HOLD] = hold,
	[SIM_GATEWAY_MEMORY] = fail_memory,
	[SIM_GATEWAY_ROUTE] = change_route,
	[SIM_GATEWAY_ACCEPT] = fail_accept,
	[SIM_GATEWAY_RESET] = reset,
	[SIM_GATEWAY_HOLE] = open_hole,
	[SIM_GATEWAY_DELAY] = delay,
	[SIM_GATEWAY_FREEZE] = freeze,
	[SIM_GATEWAY_SIP] = sip,
	[SIM_GATEWAY_LEAVE] = leave,
};

void sim_gateway_fault(struct sim_gateway *gateway)
{
	struct sim_dice *dice = sim_gateway_dice(gateway);
	unsigned fault;

	gateway->next_fault_ns = sim_gateway_now(gateway) +
				 sim_between(dice, 1, 2 * gateway->plan.fault_every_ns);
	do
		fault = (unsigned)(sim_throw(dice) % SIM_GATEWAY_FAULTS);
	while (!(gateway->plan.faults & 1u << fault));
	if (begin[fault](gateway))
		gateway->counts->faults[fault]++;
}

/* A page beyond the connections of its user would close another one, which would come back. */
static void remove_extra_pages(struct sim_gateway *gateway)
{
	unsigned count[SIM_USERS] = { 0 };

	for (unsigned i = 0; i < gateway->plan.pages; i++) {
		struct sim_page *page = &gateway->pages[i];

		if (count[page->user]++ < gateway->plan.with.connections_per_user_max)
			continue;
		sim_page_close(page);
		page->state = SIM_PAGE_GONE;
	}
}

void sim_gateway_heal(struct sim_gateway *gateway)
{
	const struct spokei_vnet_link link = { .latency_ns = gateway->plan.link.latency_ns };

	gateway->healing = true;
	gateway->next_fault_ns = UINT64_MAX;
	gateway->virt.fail_at = 0;
	gateway->route_ns = 0;
	spokei_vnet_route(gateway->world.virt.net, AT, SPOKEI_VNET_NORMAL);
	(void)spokei_vnet_fail_accepts_at(gateway->world.virt.net, AT, -EAGAIN, 0);
	spokei_vnet_set_all(gateway->world.virt.net, &link);
	for (unsigned i = 0; i < gateway->plan.pages; i++) {
		gateway->pages[i].frozen_ns = 0;
		gateway->pages[i].sip = 0;
		if (gateway->pages[i].next_ns > sim_gateway_now(gateway) + SECOND)
			gateway->pages[i].next_ns = sim_gateway_now(gateway);
	}
	remove_extra_pages(gateway);
}
