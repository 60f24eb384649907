/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of the tests: see fakereg.h. */
#include "tests/cluster/fakereg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timer/base.h"

#define MS UINT64_C(1000000)

/* A request in flight. */
struct op {
	struct spoke_alarm alarm;
	struct fakereg_open *open;
	struct spoke_registry_entry *of;
	bool wanted;
	struct op *next;
};

struct fakereg fakereg;
static struct fakereg_open stranger;
static struct op *ops;

/* --- entries */

static bool subscribes(const struct fakereg_entry *entry)
{
	return entry->of && entry->of->url == NULL;
}

static bool is_listed(const struct fakereg_entry *entry)
{
	return entry->by && !subscribes(entry);
}

unsigned fakereg_listed(const char *service)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		count += is_listed(&fakereg.entries[i]) &&
			 strcmp(fakereg.entries[i].service, service) == 0;
	return count;
}

unsigned fakereg_listed_with(const char *text)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		count += is_listed(&fakereg.entries[i]) &&
			 strstr(fakereg.entries[i].url, text) != NULL;
	return count;
}

const char *fakereg_first(const char *service)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		if (is_listed(&fakereg.entries[i]) &&
		    strcmp(fakereg.entries[i].service, service) == 0)
			return fakereg.entries[i].url;
	return NULL;
}

static void tell_list(struct fakereg_open *open, const struct fakereg_entry *subscription)
{
	static char urls[FAKEREG_ENTRIES * FAKEREG_TEXT];
	size_t count = 0;
	size_t len = 0;

	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++) {
		const struct fakereg_entry *entry = &fakereg.entries[i];

		if (!is_listed(entry) || strcmp(entry->service, subscription->service) != 0)
			continue;
		memcpy(urls + len, entry->url, strlen(entry->url) + 1);
		len += strlen(entry->url) + 1;
		count++;
	}
	open->up->list(open->arg, subscription->of, urls, count);
}

static void tell_lists(struct spoke_post *post)
{
	struct fakereg_open *open = spoke_container_of(post, struct fakereg_open, post);

	open->posted = false;
	if (open->closed) {
		*open = (struct fakereg_open){ 0 };
		return;
	}
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		if (fakereg.entries[i].by == open && subscribes(&fakereg.entries[i]))
			tell_list(open, &fakereg.entries[i]);
}

static void changed(void)
{
	for (unsigned i = 0; i < FAKEREG_OPENS; i++) {
		struct fakereg_open *open = &fakereg.opens[i];

		if (open->engine == NULL || open->posted || open->closed || fakereg.hides)
			continue;
		open->posted = true;
		open->post.run = tell_lists;
		spoke_engine_post(open->engine, &open->post);
	}
}

static void put(const struct fakereg_entry *entry)
{
	struct fakereg_entry *place = NULL;

	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++) {
		struct fakereg_entry *at = &fakereg.entries[i];

		/* Each name has at most one entry, like in a directory. */
		if (is_listed(at) && !subscribes(entry) && strcmp(at->url, entry->url) == 0)
			place = at;
		if (place == NULL && at->by == NULL)
			place = at;
	}
	*place = *entry;
	changed();
}

static void drop(const struct spoke_registry_entry *of)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		if (fakereg.entries[i].by && fakereg.entries[i].of == of)
			fakereg.entries[i].by = NULL;
	changed();
}

void fakereg_add(const char *service, const char *url)
{
	struct fakereg_entry entry = { .by = &stranger };

	(void)snprintf(entry.service, sizeof(entry.service), "%s", service);
	(void)snprintf(entry.url, sizeof(entry.url), "%s", url);
	put(&entry);
}

void fakereg_remove(const char *service, const char *url)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++) {
		struct fakereg_entry *entry = &fakereg.entries[i];

		if (is_listed(entry) && strcmp(entry->service, service) == 0 &&
		    strcmp(entry->url, url) == 0)
			entry->by = NULL;
	}
	changed();
}

void fakereg_forget(void)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		fakereg.entries[i].by = NULL;
}

void fakereg_lose_all(void)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++) {
		struct fakereg_entry entry = fakereg.entries[i];

		fakereg.entries[i].by = NULL;
		if (entry.by && entry.of)
			entry.by->up->state(entry.by->arg, entry.of, SPOKE_ELOST);
	}
}

/* --- requests in flight */

static void end_op(struct op *op)
{
	struct op **at = &ops;

	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	(void)spoke_alarm_cancel(&op->alarm);
	op->open->under_way--;
	free(op);
}

/* Consumers, configurators and so on are services of their own here. */
static struct fakereg_entry entry_of(struct fakereg_open *open, struct spoke_registry_entry *of)
{
	struct fakereg_entry entry = { .by = open, .of = of };
	const bool plain = strcmp(of->category, SPOKE_REGISTRY_PROVIDERS) == 0;

	(void)snprintf(entry.service, sizeof(entry.service), "%s%s%s", of->service,
		       plain ? "" : "/", plain ? "" : of->category);
	(void)snprintf(entry.url, sizeof(entry.url), "%s", of->url ? of->text : "");
	return entry;
}

static void op_due(struct spoke_alarm *alarm)
{
	struct op *op = spoke_container_of(alarm, struct op, alarm);
	const struct op ended = *op;
	struct fakereg_open *open = op->open;
	int error = fakereg.fails;

	if (fakereg.mute)
		return;
	end_op(op);
	if (!ended.wanted && fakereg.keeps)
		error = SPOKE_ECONNECT;
	if (error == 0 && !ended.wanted)
		drop(ended.of);
	if (error == 0 && ended.wanted) {
		const struct fakereg_entry entry = entry_of(open, ended.of);

		put(&entry);
		if (subscribes(&entry) && fakereg.hastes)
			tell_list(open, &entry);
	}
	open->up->state(open->arg, ended.of, error);
}

/* Cancels the pending request of an entry. */
static void forget_op(const struct spoke_registry_entry *of)
{
	struct op *op = ops;

	while (op && op->of != of)
		op = op->next;
	if (op)
		end_op(op);
}

/* Returns whether the request has begun. */
static bool begin(struct fakereg_open *open, struct spoke_registry_entry *of, bool wanted)
{
	uint64_t delay_ns = fakereg.delay_ns ? fakereg.delay_ns : MS;
	struct op *op;

	fakereg.last_ns = spoke_engine_now(open->engine);
	forget_op(of);
	if (fakereg.in_begin)
		fakereg.in_begin();
	if (fakereg.refuses) {
		open->up->state(open->arg, of, fakereg.refuses);
		return false;
	}
	op = calloc(1, sizeof(*op));
	op->open = open;
	op->of = of;
	op->wanted = wanted;
	if (spoke_alarm_after(open->engine, &op->alarm, delay_ns, op_due)) {
		free(op);
		open->up->state(open->arg, of, SPOKE_ENOMEM);
		return false;
	}
	op->next = ops;
	ops = op;
	open->under_way++;
	return true;
}

/* --- the registry functions */

static int fake_open(struct spoke_engine *engine, const struct spoke_url *url,
		     const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	(void)url;
	if (fakereg.wrong)
		return fakereg.wrong;
	for (unsigned i = 0; i < FAKEREG_OPENS; i++) {
		struct fakereg_open *open = &fakereg.opens[i];

		if (open->engine)
			continue;
		*open = (struct fakereg_open){ .engine = engine, .up = up, .arg = arg };
		*ret_registry = open;
		return SPOKE_OK;
	}
	return SPOKE_ELIMIT;
}

static void fake_want(void *registry, struct spoke_registry_entry *of)
{
	if (of->url)
		fakereg.publishes++;
	else
		fakereg.subscribes++;
	(void)begin(registry, of, true);
}

static void fake_unwant(void *registry, struct spoke_registry_entry *of)
{
	if (of->url)
		fakereg.withdraws++;
	else
		fakereg.unsubscribes++;
	if (begin(registry, of, false) && fakereg.fails == 0 && !fakereg.mute && !fakereg.keeps)
		drop(of);
}

static void fake_close(void *registry)
{
	struct fakereg_open *open = registry;

	fakereg.closes++;
	for (struct op *op = ops; op;) {
		struct op *next = op->next;

		if (op->open == open)
			end_op(op);
		op = next;
	}
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++) {
		struct fakereg_entry *entry = &fakereg.entries[i];

		if (entry->by != open)
			continue;
		if (subscribes(entry))
			entry->by = NULL;
		entry->of = NULL;
	}
	open->closed = true;
	if (!open->posted)
		*open = (struct fakereg_open){ 0 };
}

const struct spoke_registry fakereg_kind = {
	.scheme = "fake",
	.open = fake_open,
	.want = fake_want,
	.unwant = fake_unwant,
	.close = fake_close,
};

const struct spoke_registry fakereg_with_categories = {
	.scheme = "fake",
	.categories = true,
	.open = fake_open,
	.want = fake_want,
	.unwant = fake_unwant,
	.close = fake_close,
};

const struct spoke_registry fakereg_with_instances = {
	.scheme = "fake",
	.categories = true,
	.instances = true,
	.open = fake_open,
	.want = fake_want,
	.unwant = fake_unwant,
	.close = fake_close,
};
