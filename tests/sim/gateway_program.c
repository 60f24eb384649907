/* SPDX-License-Identifier: Apache-2.0 */
/* The program with the gateway: it admits pages, late or never, and pushes messages. */
#include "tests/sim/gateway.h"

#include "cluster/comet/comet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void sim_gateway_push_all(struct sim_gateway *gateway)
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

void sim_gateway_start(struct sim_gateway *gateway)
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
