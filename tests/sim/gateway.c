/* SPDX-License-Identifier: Apache-2.0 */
/* The second world of a seed: a gateway for browsers, its plan, its program, and its faults. */
#include "tests/sim/gateway.h"
#include "cluster/comet/comet.h"
#include "core/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- draws the plan of a world with a gateway */

#define GATEWAY_SEED UINT64_C(0x6761746577617973)
#define GATEWAY_PERMILLE 250u /* of all seeds */

static const char *const names[SIM_GATEWAY_FAULTS] = {
	[SIM_GATEWAY_KILL] = "kill",   [SIM_GATEWAY_DRAIN] = "drain",
	[SIM_GATEWAY_HOLD] = "hold",   [SIM_GATEWAY_MEMORY] = "memory",
	[SIM_GATEWAY_ROUTE] = "route", [SIM_GATEWAY_ACCEPT] = "accept",
	[SIM_GATEWAY_RESET] = "reset", [SIM_GATEWAY_HOLE] = "hole",
	[SIM_GATEWAY_DELAY] = "delay", [SIM_GATEWAY_FREEZE] = "freeze",
	[SIM_GATEWAY_SIP] = "sip",     [SIM_GATEWAY_LEAVE] = "leave",
};

const char *sim_gateway_fault_name(enum sim_gateway_fault fault)
{
	return names[fault];
}

bool sim_gateway_drawn(uint64_t seed)
{
	struct sim_dice dice = sim_dice_make(seed ^ GATEWAY_SEED);

	return sim_chance(&dice, GATEWAY_PERMILLE);
}

/* Draws the times that differ from gateway to gateway. */
static void sim_gateway_draw_times(struct sim_dice *dice, struct spoke_comet_options *with)
{
	with->keepalive_ns = sim_magnitude(dice, 20 * MS, SECOND);
	with->poll_ns = sim_magnitude(dice, 50 * MS, SECOND);
	with->life_ns = sim_magnitude(dice, 200 * MS, 5 * SECOND);
}

static void draw_options(struct sim_dice *dice, const struct sim_gateway_plan *plan,
			 struct spoke_comet_options *with)
{
	*with = (struct spoke_comet_options){
		.authorize_ns = sim_magnitude(dice, 10 * MS, 500 * MS),
		.head_ns = sim_magnitude(dice, 100 * MS, SECOND),
		.keep_ns = sim_magnitude(dice, 10 * MS, 3 * SECOND),
		.slow_ns = sim_magnitude(dice, 50 * MS, SECOND),
		.retry_min_ns = sim_magnitude(dice, MS, 100 * MS),
		.drain_ns = sim_magnitude(dice, 20 * MS, SECOND),
		.accept_rate = (uint32_t)sim_magnitude(dice, 500, 5000),
		.connections_per_user_max = (uint32_t)sim_between(dice, 1, 6),
		.frames_per_second = 250,
		.message_max = (uint32_t)plan->data_max,
		.ring_messages = (uint32_t)sim_magnitude(dice, 1, 40),
		.ring_bytes = (uint32_t)sim_magnitude(dice, 64, 16384),
		.ring_ns = sim_magnitude(dice, 20 * MS, 3 * SECOND),
		.all_messages = (uint32_t)sim_magnitude(dice, 1, 80),
		.all_bytes = (uint32_t)sim_magnitude(dice, 64, 65536),
	};
	sim_gateway_draw_times(dice, with);
	with->retry_max_ns = with->retry_min_ns * sim_between(dice, 1, 10);
	if (sim_chance(dice, 300))
		with->bytes_max = sim_magnitude(dice, 8192, 262144);
	if (sim_chance(dice, 300))
		with->users_max = (uint32_t)sim_between(dice, plan->users,
							plan->users + SIM_STRANGERS);
	if (sim_chance(dice, 300))
		with->connections_max = (uint32_t)sim_between(dice, plan->pages, 4 * plan->pages);
}

static void draw_link(struct sim_dice *dice, struct spokei_vnet_link *link)
{
	if (sim_chance(dice, 700))
		link->latency_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 300))
		link->jitter_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 200))
		link->write_max = (uint32_t)sim_magnitude(dice, 4, 512);
	if (sim_chance(dice, 200))
		link->read_max = (uint32_t)sim_magnitude(dice, 4, 512);
	if (sim_chance(dice, 150))
		link->eagain_permille = (uint32_t)sim_between(dice, 1, 300);
	if (sim_chance(dice, 500))
		link->capacity = (uint32_t)sim_magnitude(dice, 256, 16384);
	if (sim_chance(dice, 100))
		link->bytes_per_s = sim_magnitude(dice, 50000, 2000000);
}

static void sim_gateway_draw(struct sim_gateway_plan *plan, uint64_t seed)
{
	struct sim_dice dice = sim_dice_make(~seed ^ GATEWAY_SEED);

	*plan = (struct sim_gateway_plan){
		.users = (unsigned)sim_between(&dice, 1, SIM_USERS),
		.pages = (unsigned)sim_between(&dice, 1, SIM_PAGES),
		.push_every_ns = sim_magnitude(&dice, MS, 100 * MS),
		.data_max = (size_t)sim_magnitude(&dice, 32, 4096),
		.fault_every_ns = sim_magnitude(&dice, 10 * MS, SECOND),
		.length_ns = sim_magnitude(&dice, 500 * MS, 6 * SECOND),
		.moving = sim_chance(&dice, 500),
	};
	for (unsigned i = 0; i < SIM_GATEWAY_FAULTS; i++)
		plan->faults |= sim_chance(&dice, 400) ? 1u << i : 0;
	if (sim_chance(&dice, 500))
		plan->faults &= ~(1u << SIM_GATEWAY_MEMORY);
	if (sim_chance(&dice, 100))
		plan->faults = 0;
	draw_link(&dice, &plan->link);
	draw_options(&dice, plan, &plan->with);
}

/* --- the program with the gateway: it admits pages, late or never, and pushes messages */

#define USERS_ALL UINT32_MAX
#define AT "127.0.0.1:8080"
#define FORGET_NS (10 * SECOND)
#define NAME 24 /* bytes of the name of a user, with the NUL */

static struct spoke_span name_of(unsigned user, char text[NAME])
{
	const bool comes = user < SIM_USERS;

	(void)snprintf(text, NAME, "%s%u", comes ? "u" : "stranger", user);
	return spoke_comet_text(text);
}

/* --- the authorizer */

/* Gives an answer of the program. The gateway must take the first one only. */
static void answer(struct sim_gateway *gateway, struct sim_asked *asked)
{
	const struct sim_page *page = &gateway->pages[asked->page];
	struct sim_dice *dice = sim_gateway_dice(gateway);
	const uint64_t opened = spoke_comet_figure(gateway->comet, SPOKE_COMET_FIGURE_OPENED);
	const bool again = asked->answered;
	uint64_t grown;
	char text[NAME];
	bool taken;

	asked->answered = true;
	if (gateway->healing || sim_chance(dice, 900)) {
		asked->admitted |= !again;
		taken = spoke_comet_admit(asked->entry, name_of(page->user, text));
	} else if (sim_chance(dice, 600)) {
		taken = spoke_comet_refuse(asked->entry, "not now");
	} else {
		taken = spoke_comet_later(asked->entry);
	}
	grown = spoke_comet_figure(gateway->comet, SPOKE_COMET_FIGURE_OPENED) - opened;
	if ((again && taken) || grown > (taken ? 1u : 0u))
		sim_violation(&gateway->world, SIM_S48,
			      "page %u: an answer that was taken (%u), the second one (%u), opens "
			      "%u connections",
			      page->number, taken, again, (unsigned)grown);
}

/* Finds the number after "NAME=" in a query. */
static uint32_t find_number(struct spoke_span query, const char *name)
{
	char text[256];
	const char *at;

	(void)snprintf(text, sizeof(text), "%.*s", (int)query.len,
		       query.len ? (const char *)query.data : "");
	at = strstr(text, name);
	return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : UINT32_MAX;
}

static uint64_t draw_answer(struct sim_gateway *gateway)
{
	struct sim_dice *dice = sim_gateway_dice(gateway);
	const uint64_t now_ns = sim_gateway_now(gateway);

	if (gateway->healing || sim_chance(dice, 600))
		return now_ns;
	if (sim_chance(dice, 100))
		return UINT64_MAX;
	return now_ns + sim_magnitude(dice, MS, 2 * gateway->with.authorize_ns);
}

static void authorize(void *arg, struct spoke_comet_entry entry,
		      const struct spoke_comet_request *request)
{
	struct sim_gateway *gateway = arg;
	uint32_t nonce = find_number(request->query, "nonce=");
	uint32_t page = find_number(request->query, "page=");
	struct sim_asked *asked;

	if (page >= gateway->plan.pages || nonce == 0 || nonce > gateway->asked_count)
		sim_violation(&gateway->world, SIM_S48, "the authorizer sees an unknown request");
	asked = &gateway->asked[nonce - 1];
	if (asked->there)
		sim_violation(&gateway->world, SIM_S48, "page %u: request %u is asked about twice",
			      page, nonce);
	*asked = (struct sim_asked){ .entry = entry,
				     .since_ns = sim_gateway_now(gateway),
				     .answer_ns = draw_answer(gateway),
				     .page = page,
				     .there = true };
	sim_note(&gateway->world, "page %: the authorizer is asked, answers in % us", page,
		 asked->answer_ns == UINT64_MAX ? UINT32_MAX
						: (asked->answer_ns - asked->since_ns) / 1000,
		 0, 0);
	if (asked->answer_ns <= sim_gateway_now(gateway)) {
		answer(gateway, asked);
		if (sim_chance(sim_gateway_dice(gateway), 50))
			answer(gateway, asked);
		return;
	}
	if (gateway->waiting_count == SIM_WAITING)
		abort();
	gateway->waiting[gateway->waiting_count++] = nonce - 1;
}

/* Requests that are never answered are forgotten long after their time. */
static void answer_due(struct sim_gateway *gateway)
{
	const uint64_t now_ns = sim_gateway_now(gateway);
	unsigned left = 0;

	for (unsigned i = 0; i < gateway->waiting_count; i++) {
		struct sim_asked *asked = &gateway->asked[gateway->waiting[i]];

		if (!asked->answered && asked->answer_ns <= now_ns)
			answer(gateway, asked);
		else if (!asked->answered && asked->since_ns + FORGET_NS > now_ns)
			gateway->waiting[left++] = gateway->waiting[i];
	}
	gateway->waiting_count = left;
}

/* --- pages' texts */

static void heard(void *arg, struct spoke_span user, struct spoke_span text)
{
	struct sim_gateway *gateway = arg;
	unsigned page = find_number(text, "page=");
	char name[NAME];
	struct spoke_span expected;

	if (page >= gateway->plan.pages)
		sim_violation(&gateway->world, SIM_S42, "a text of a page is altered");
	expected = name_of(gateway->pages[page].user, name);
	if (expected.len != user.len || memcmp(expected.data, user.data, user.len) != 0)
		sim_violation(&gateway->world, SIM_S42,
			      "a text of page %u is said to be of another user", page);
}

/* --- pushes */

static void record(struct sim_gateway *gateway, uint32_t users, size_t len, bool may_miss,
		   const struct spoke_comet_result *result)
{
	struct sim_push *push = &gateway->pushes[gateway->push_count];
	uint64_t epoch;

	if (gateway->push_count == SIM_PUSHES || !sim_page_id(result->id, &epoch, &push->number))
		abort();
	*push = (struct sim_push){ .number = push->number,
				   .index = gateway->push_index,
				   .users = users,
				   .len = (uint32_t)len,
				   .may_miss = may_miss };
	gateway->push_count++;
	gateway->counts->pushes++;
	sim_note(&gateway->world, "message % to users %, % bytes", push->number, users, len, 0);
}

/* Makes a message; the text of its data is static. */
static struct spoke_comet_message make(struct sim_gateway *gateway, size_t *ret_len)
{
	static char data[8192];
	struct sim_dice *dice = sim_gateway_dice(gateway);
	struct spoke_comet_message message = { .event = { NULL, 0 } };

	gateway->push_index++;
	*ret_len = sim_push_data(gateway->push_index,
				 (size_t)(sim_chance(dice, 300)
						  ? sim_between(dice, 1, gateway->plan.data_max)
						  : sim_magnitude(dice, 1, gateway->plan.data_max)),
				 data);
	message.data = (struct spoke_span){ data, *ret_len };
	if (gateway->push_index % 3)
		message.event = spoke_comet_text(gateway->push_index % 3 == 1 ? "offer" : "news");
	if (!gateway->healing && sim_chance(dice, 150))
		message.ttl_ns = sim_magnitude(dice, MS, SECOND);
	message.keep = sim_chance(dice, 200);
	return message;
}

static void push_to(struct sim_gateway *gateway, uint32_t users)
{
	struct spoke_span spans[SIM_USERS + SIM_STRANGERS + 1];
	char texts[SIM_USERS + SIM_STRANGERS][NAME];
	struct spoke_comet_result result = { .users = 0 };
	size_t len;
	struct spoke_comet_message message = make(gateway, &len);
	size_t count = 0;
	int error;

	for (unsigned i = 0; i < SIM_USERS + SIM_STRANGERS; i++)
		if (users & 1u << i)
			spans[count++] = name_of(i, texts[i]);
	if (count > 1 && sim_chance(sim_gateway_dice(gateway), 100)) {
		spans[count] = spans[count - 1]; /* a list may name one twice */
		count++;
	}
	error = spoke_comet_push_many(gateway->comet, spans, count, &message, &result);
	if (result.id[0])
		record(gateway, users, len, message.ttl_ns || error, &result);
}

/* Pushes one message to all users. */
static void sim_gateway_push_all(struct sim_gateway *gateway)
{
	struct spoke_comet_result result = { .users = 0 };
	size_t len;
	struct spoke_comet_message message = make(gateway, &len);

	if (spoke_comet_push_all(gateway->comet, &message, &result) == SPOKE_OK)
		record(gateway, USERS_ALL, len, message.ttl_ns > 0, &result);
}

static void kick(struct sim_gateway *gateway)
{
	unsigned user = (unsigned)(sim_throw(sim_gateway_dice(gateway)) % gateway->plan.users);
	char text[NAME];

	sim_note(&gateway->world, "user % is kicked", user, 0, 0, 0);
	gateway->kicked_ns = sim_gateway_now(gateway);
	(void)spoke_comet_kick(gateway->comet, name_of(user, text), "kicked");
}

static void act(struct sim_gateway *gateway)
{
	struct sim_dice *dice = sim_gateway_dice(gateway);
	unsigned burst = sim_chance(dice, 100) ? (unsigned)sim_between(dice, 2, 40) : 1;
	unsigned user = (unsigned)sim_between(dice, 0, SIM_USERS + SIM_STRANGERS - 1);

	if (sim_chance(dice, 10) && !gateway->healing) {
		kick(gateway);
		return;
	}
	for (unsigned i = 0; i < burst && gateway->push_count + 8 < SIM_PUSHES; i++) {
		if (sim_chance(dice, 250))
			sim_gateway_push_all(gateway);
		else if (sim_chance(dice, 200))
			push_to(gateway,
				(uint32_t)sim_between(dice, 1,
						      (1u << (SIM_USERS + SIM_STRANGERS)) - 1));
		else
			push_to(gateway,
				1u << (sim_chance(dice, 900) ? user % gateway->plan.users : user));
	}
}

static void alarm_due(struct spoke_alarm *alarm)
{
	struct sim_gateway *gateway = spoke_container_of(alarm, struct sim_gateway, alarm);
	uint64_t every_ns = sim_between(sim_gateway_dice(gateway), 1,
					2 * gateway->plan.push_every_ns);

	gateway->progress++;
	answer_due(gateway);
	if (gateway->quiet_ns == 0)
		act(gateway);
	/* Without a timer for its alarm, the program ends. */
	if (spoke_alarm_after(gateway->engine, &gateway->alarm, every_ns, alarm_due))
		gateway->back_ns = sim_gateway_now(gateway);
}

/* --- its start */

static bool make_gateway(struct sim_gateway *gateway)
{
	struct spoke_engine_options with = { .env = &gateway->virt.env, .timers_max = 10000 };

	gateway->with = gateway->plan.with;
	if (gateway->plan.moving)
		sim_gateway_draw_times(sim_gateway_dice(gateway), &gateway->with);
	gateway->with.listen = AT;
	gateway->with.authorize = authorize;
	gateway->with.message = heard;
	gateway->with.arg = gateway;
	return spoke_engine_new(&with, &gateway->engine) == SPOKE_OK &&
	       spoke_comet_new(gateway->engine, &gateway->with, &gateway->comet) == SPOKE_OK &&
	       spoke_alarm_after(gateway->engine, &gateway->alarm, MS, alarm_due) == SPOKE_OK;
}

static void sim_gateway_start(struct sim_gateway *gateway)
{
	gateway->engine = NULL;
	gateway->comet = NULL;
	gateway->alarm = (struct spoke_alarm){ 0 };
	gateway->back_ns = 0;
	gateway->drain_ns = 0;
	gateway->epoch = 0;
	gateway->push_count = 0;
	gateway->waiting_count = 0;
	gateway->calm_ns = sim_gateway_now(gateway);
	if (make_gateway(gateway)) {
		gateway->base_bytes = gateway->virt.bytes;
		gateway->epoch = gateway->comet->epoch;
		sim_note(&gateway->world, "the gateway starts", 0, 0, 0, 0);
		return;
	}
	sim_note(&gateway->world, "the gateway cannot start", 0, 0, 0, 0);
	sim_gateway_end(gateway);
	gateway->back_ns = sim_gateway_now(gateway) + 10 * MS;
}

/* --- faults of a world with a gateway: of its process, of the network, and of its pages */

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
static void sim_gateway_drain(struct sim_gateway *gateway)
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

static bool (*const inject[SIM_GATEWAY_FAULTS])(struct sim_gateway *gateway) = {
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
	if (inject[fault](gateway))
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

static void sim_gateway_heal(struct sim_gateway *gateway)
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

/* --- runs a world with a gateway from its beginning to its end */

#define LOOK_NS (5 * MS)
#define ROUNDS 8u /* in which a page is admitted at the latest, with all that may go wrong once */
#define ROUND_NS (2 * SECOND)

void sim_gateway_hold(struct sim_gateway *gateway, uint64_t ns)
{
	spokei_world_hold(&gateway->virt, ns);
	gateway->calm_ns = gateway->virt.held_until_ns;
	gateway->drained_ns += ns;
}

void sim_gateway_end(struct sim_gateway *gateway)
{
	struct spoke_engine *engine = gateway->engine;

	if (gateway->comet)
		gateway->counts->opened += spoke_comet_figure(gateway->comet,
							      SPOKE_COMET_FIGURE_OPENED);
	sim_gateway_check(gateway);
	/* The engine frees the gateway, or the program does. */
	if (gateway->comet && gateway->drain_ns == 0 && sim_chance(sim_gateway_dice(gateway), 500))
		spoke_comet_free(gateway->comet);
	gateway->engine = NULL;
	gateway->comet = NULL;
	gateway->drain_ns = 0;
	spoke_engine_free(engine);
	sim_note(&gateway->world, "the gateway has ended", 0, 0, 0, 0);
	sim_gateway_check_end(gateway);
}

/* --- time */

static bool is_due(uint64_t ns, const struct sim_gateway *gateway)
{
	return ns && ns <= sim_gateway_now(gateway);
}

static void look(struct sim_gateway *gateway)
{
	gateway->next_look_ns = sim_gateway_now(gateway) + LOOK_NS;
	if (is_due(gateway->route_ns, gateway)) {
		gateway->route_ns = 0;
		spokei_vnet_route(gateway->world.virt.net, AT, SPOKEI_VNET_NORMAL);
	}
	sim_gateway_check(gateway);
	if (gateway->virt.held_until_ns > sim_gateway_now(gateway))
		return;
	if (gateway->engine && gateway->drain_ns && gateway->engine->drained) {
		sim_gateway_end(gateway);
		gateway->back_ns = sim_gateway_now(gateway) +
				   sim_magnitude(sim_gateway_dice(gateway), MS, SECOND);
	}
	/* A program without its alarm ends. */
	if (gateway->engine && is_due(gateway->back_ns, gateway))
		sim_gateway_end(gateway);
	if (gateway->engine == NULL && is_due(gateway->back_ns, gateway))
		sim_gateway_start(gateway);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void go_on(struct sim_gateway *gateway, uint64_t until_ns)
{
	struct spokei_world *virt = &gateway->world.virt;

	while (virt->now_ns < until_ns) {
		uint64_t next_ns = earlier(until_ns, gateway->next_look_ns);

		next_ns = earlier(next_ns, gateway->next_fault_ns);
		next_ns = earlier(next_ns, sim_pages_next(gateway));
		next_ns = earlier(next_ns, spokei_vnet_next(virt->net));
		(void)spokei_world_step(virt, next_ns);
		sim_pages_turn(gateway);
		if (virt->now_ns >= gateway->next_look_ns)
			look(gateway);
		if (virt->now_ns >= gateway->next_fault_ns)
			sim_gateway_fault(gateway);
	}
}

/* --- after the faults */

static unsigned whole(const struct sim_gateway *gateway)
{
	unsigned count = 0;

	for (unsigned i = 0; i < gateway->plan.pages; i++)
		count += sim_page_whole(&gateway->pages[i]);
	return count;
}

static bool is_up(const struct sim_gateway *gateway)
{
	return gateway->engine && gateway->drain_ns == 0 && gateway->back_ns == 0 &&
	       gateway->virt.held_until_ns <= sim_gateway_now(gateway);
}

/* Returns the longest time in which each page is connected, if all goes well. */
static uint64_t connect_ns(const struct sim_gateway *gateway)
{
	const struct spoke_comet_options *with = &gateway->plan.with;

	return ROUNDS * (2 * with->retry_max_ns + ROUND_NS) + with->keep_ns + with->slow_ns +
	       with->head_ns + with->authorize_ns;
}

static void wait_for_all(struct sim_gateway *gateway)
{
	uint64_t until_ns = sim_gateway_now(gateway) + connect_ns(gateway);

	while (whole(gateway) < gateway->plan.pages) {
		if (sim_gateway_now(gateway) >= until_ns)
			sim_violation(&gateway->world, SIM_L9,
				      "only %u of %u pages are connected, and have all messages",
				      whole(gateway), gateway->plan.pages);
		go_on(gateway, sim_gateway_now(gateway) + LOOK_NS);
	}
}

static void heal(struct sim_gateway *gateway)
{
	uint64_t until_ns;

	sim_note(&gateway->world, "all faults end", 0, 0, 0, 0);
	sim_gateway_heal(gateway);
	go_on(gateway, sim_gateway_now(gateway) + 100 * MS);
	until_ns = sim_gateway_now(gateway) + 60 * SECOND; /* longer than any drain */
	while (!is_up(gateway) && sim_gateway_now(gateway) < until_ns)
		go_on(gateway, sim_gateway_now(gateway) + LOOK_NS);
	if (!is_up(gateway))
		sim_violation(&gateway->world, SIM_L10, "the gateway does not come back");
	gateway->quiet_ns = sim_gateway_now(gateway);
	gateway->heal_ns = gateway->quiet_ns;
	wait_for_all(gateway);
	if (gateway->push_count < SIM_PUSHES)
		sim_gateway_push_all(gateway);
	gateway->heal_ns = sim_gateway_now(gateway);
	wait_for_all(gateway);
	/* Rings are looked at once in their time. */
	go_on(gateway, sim_gateway_now(gateway) + 2 * gateway->with.ring_ns + SECOND);
	sim_gateway_check_quiet(gateway);
}

/* --- one seed */

static void begin(struct sim_gateway *gateway, const struct sim_plan *plan, bool verbose)
{
	struct sim_world *world = &gateway->world;

	world->plan = plan;
	world->verbose = verbose;
	world->dice = sim_dice_make(~plan->seed);
	sim_world_now = world;
	if (!spokei_world_init(&world->virt, plan->seed)) {
		(void)printf("no memory\n");
		exit(2);
	}
	spokei_vnet_observe(world->virt.net, sim_gateway_observe, gateway);
	spokei_vnet_set_all(world->virt.net, &gateway->plan.link);
	spokei_world_process_init(&gateway->virt, &world->virt);
	spokei_world_process_init(&gateway->browser, &world->virt);
	gateway->virt.turned = sim_gateway_turned;
	gateway->next_look_ns = world->virt.now_ns;
	gateway->next_fault_ns = gateway->plan.faults
					 ? world->virt.now_ns + gateway->plan.fault_every_ns
					 : UINT64_MAX;
	sim_note(world, "% pages of % users", gateway->plan.pages, gateway->plan.users, 0, 0);
	sim_gateway_start(gateway);
	sim_pages_start(gateway);
}

static void finish(struct sim_gateway *gateway)
{
	for (unsigned i = 0; i < gateway->plan.pages; i++)
		sim_page_close(&gateway->pages[i]);
	spokei_world_process_fini(&gateway->browser);
	spokei_world_process_fini(&gateway->virt);
	spokei_world_fini(&gateway->world.virt);
}

uint64_t sim_gateway_run(uint64_t seed, bool all, bool verbose, struct sim_gateway_counts *counts)
{
	static struct sim_gateway gateway;
	static struct sim_plan plan;
	uint64_t begun_ns;
	uint64_t hash;

	memset(&gateway, 0, sizeof(gateway));
	plan = (struct sim_plan){ .seed = seed, .gateways = all };
	sim_gateway_draw(&gateway.plan, seed);
	gateway.counts = counts;
	begin(&gateway, &plan, verbose);
	begun_ns = sim_gateway_now(&gateway);
	go_on(&gateway, begun_ns + gateway.plan.length_ns);
	heal(&gateway);
	if (sim_chance(sim_gateway_dice(&gateway), 300)) {
		sim_gateway_drain(&gateway);
		while (gateway.drain_ns)
			go_on(&gateway, sim_gateway_now(&gateway) + LOOK_NS);
	}
	if (gateway.engine)
		sim_gateway_end(&gateway);
	counts->worlds++;
	counts->ns += sim_gateway_now(&gateway) - begun_ns;
	hash = gateway.world.hash ^ spokei_vnet_trace(gateway.world.virt.net);
	finish(&gateway);
	return hash;
}
