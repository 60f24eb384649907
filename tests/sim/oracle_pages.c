/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the messages that pages get against those that were pushed. */
#include "tests/sim/gateway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the data of messages */

/* The number of the message, then bytes that SSE and JSON have to write in their own ways. */
size_t sim_push_data(uint64_t index, size_t len, char *out)
{
	static const char fill[] = "abc\"def\\ghi\njkl {}:,[]mnop";
	size_t at = (size_t)snprintf(out, 24, "m%" PRIu64 ":", index);

	for (; at < len; at++)
		out[at] = fill[(index + at) % (sizeof(fill) - 1)];
	/* The end of a text is no end of a line. */
	if (out[at - 1] == '\n')
		out[at - 1] = '.';
	out[at] = '\0';
	return at;
}

bool sim_page_id(const char *id, uint64_t *ret_epoch, uint64_t *ret_number)
{
	char *end;

	*ret_epoch = strtoull(id, &end, 16);
	if (end != id + 16 || *end != '.')
		return false;
	*ret_number = strtoull(end + 1, &end, 10);
	return *end == '\0';
}

void sim_page_broken(struct sim_page *page, const char *what)
{
	sim_violation(&page->gateway->world, SIM_S42, "page %u gets %s", page->number, what);
}

void sim_page_pause(struct sim_page *page, uint64_t ms, bool opens)
{
	const struct spoke_comet_options *with = &page->gateway->plan.with;
	const uint64_t most_ns = opens ? with->retry_max_ns : 2 * with->retry_max_ns;

	if (ms < with->retry_min_ns / MS || ms > most_ns / MS)
		sim_violation(&page->gateway->world, SIM_S50,
			      "page %u is told to wait for %" PRIu64 " ms, at its opening: %u",
			      page->number, ms, opens);
}

/* --- messages that were not got */

static bool is_for(const struct sim_push *push, const struct sim_page *page)
{
	return push->users & 1u << page->user;
}

/* Returns the index of the first message after this number. */
static unsigned first_after(const struct sim_gateway *gateway, uint64_t number)
{
	unsigned from = 0;
	unsigned to = gateway->push_count;

	while (from < to) {
		unsigned middle = (from + to) / 2;

		if (gateway->pushes[middle].number <= number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Returns the first message that the page needs between two numbers, both excluded; NULL: none. */
static const struct sim_push *missing(const struct sim_page *page, uint64_t before)
{
	const struct sim_gateway *gateway = page->gateway;

	if (page->epoch != gateway->epoch)
		return NULL;
	for (unsigned i = first_after(gateway, page->upto);
	     i < gateway->push_count && gateway->pushes[i].number < before; i++)
		if (is_for(&gateway->pushes[i], page) && !gateway->pushes[i].may_miss)
			return &gateway->pushes[i];
	return NULL;
}

static void check_missing(struct sim_page *page, uint64_t before)
{
	const struct sim_push *push = missing(page, before);

	if (push)
		sim_violation(&page->gateway->world, SIM_S41,
			      "page %u of user %u has not got message %" PRIu64
			      ", and is now beyond it",
			      page->number, page->user, push->number);
	if (page->owed)
		sim_violation(&page->gateway->world, SIM_S41,
			      "page %u gets messages of another epoch, and was not told",
			      page->number);
}

/* --- events */

void sim_page_asks(struct sim_page *page)
{
	struct sim_gateway *gateway = page->gateway;

	page->id_epoch = 0;
	page->connected = false;
	sim_note(&gateway->world, "page % of user % asks, kind %, after number %", page->number,
		 page->user, page->kind, page->resumes ? page->upto : 0);
}

/* The page follows the messages from this id on. */
static void begin(struct sim_page *page, uint64_t epoch, uint64_t number)
{
	if (page->epoch == epoch)
		return;
	if (page->epoch)
		page->owed = true;
	page->epoch = epoch;
	page->upto = number;
}

static void check_admitted(struct sim_page *page)
{
	if (!page->gateway->asked[page->nonce - 1].admitted)
		sim_violation(&page->gateway->world, SIM_S48,
			      "page %u is served, but was not admitted", page->number);
	page->told_ns = sim_gateway_now(page->gateway);
}

/* Ids of messages rise. The gateway's own events have the id of the message before. */
static void check_id(struct sim_page *page, uint64_t epoch, uint64_t number, bool own)
{
	if (page->id_epoch && (epoch != page->id_epoch || number + (own ? 1 : 0) <= page->id))
		sim_violation(&page->gateway->world, SIM_S40,
			      "page %u gets number %" PRIu64 " after %" PRIu64, page->number,
			      number, page->id);
	page->id_epoch = epoch;
	page->id = number;
}

/* Checks the message against the one that was pushed. The pushes of earlier gateways are not known
 * any more, but their data names them. */
static void check_data(struct sim_page *page, uint64_t epoch, uint64_t number,
		       const struct sim_page_event *event)
{
	static const char *const names[] = { "message", "offer", "news" };
	static char data[8192];
	const struct sim_gateway *gateway = page->gateway;
	uint64_t index = event->data[0] == 'm' ? strtoull(event->data + 1, NULL, 10) : 0;
	const struct sim_push *push = &gateway->pushes[first_after(gateway, number - 1)];
	size_t len = event->data_len < sizeof(data) ? event->data_len : 0;

	if (index == 0 || sim_push_data(index, len, data) != event->data_len ||
	    memcmp(data, event->data, len) != 0 || strcmp(event->name, names[index % 3]) != 0)
		sim_page_broken(page, "a message that is altered");
	if (epoch != gateway->epoch)
		return;
	if (push >= gateway->pushes + gateway->push_count || push->number != number ||
	    push->index != index || push->len != len)
		sim_page_broken(page, "a message that was not pushed under its id");
	if (!is_for(push, page))
		sim_page_broken(page, "a message of another user");
}

static void take_message(struct sim_page *page, uint64_t epoch, uint64_t number,
			 const struct sim_page_event *event)
{
	page->gateway->counts->events++;
	sim_note(&page->gateway->world, "page % gets message %", page->number, number, 0, 0);
	check_data(page, epoch, number, event);
	check_id(page, epoch, number, false);
	begin(page, epoch, number - 1);
	check_missing(page, number);
	page->upto = number;
}

void sim_page_event(struct sim_page *page, const struct sim_page_event *event)
{
	uint64_t epoch = 0;
	uint64_t number = 0;
	const bool has_id = event->id[0] != '\0';

	if (has_id && !sim_page_id(event->id, &epoch, &number))
		sim_page_broken(page, "an id of another form");
	if (strcmp(event->name, "reconnect") == 0)
		return;
	if (strcmp(event->name, "hello") == 0) {
		check_admitted(page);
		page->connected = true;
		sim_note(&page->gateway->world, "page % is greeted from number %", page->number,
			 number, 0, 0);
		if (has_id) {
			check_id(page, epoch, number, true);
			begin(page, epoch, number);
		}
		return;
	}
	if (!has_id)
		sim_page_broken(page, "a message without an id");
	if (strcmp(event->name, "lost") == 0) {
		page->gateway->counts->lost++;
		sim_note(&page->gateway->world, "page % is told that messages were lost",
			 page->number, 0, 0, 0);
		check_id(page, epoch, number, true);
		page->owed = false;
		page->epoch = epoch;
		page->upto = number;
		return;
	}
	take_message(page, epoch, number, event);
}

void sim_page_upto(struct sim_page *page, const char *id)
{
	uint64_t epoch;
	uint64_t number;

	if (!sim_page_id(id, &epoch, &number))
		sim_page_broken(page, "an id of another form");
	memset(page->last, 0, sizeof(page->last));
	memcpy(page->last, id, strlen(id));
	check_admitted(page);
	begin(page, epoch, number);
	check_missing(page, number + 1);
	if (number > page->upto)
		page->upto = number;
}

bool sim_page_whole(const struct sim_page *page)
{
	const struct sim_gateway *gateway = page->gateway;

	if (page->state == SIM_PAGE_GONE)
		return true;
	return page->told_ns >= gateway->heal_ns && !page->owed && page->epoch == gateway->epoch &&
	       missing(page, UINT64_MAX) == NULL;
}
