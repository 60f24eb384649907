/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of the tests: see fakereg.h. */
#include "tests/cluster/fakereg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timer/base.h"

#define MS UINT64_C(1000000)

struct op {
	struct spoke_alarm alarm;
	struct fakereg_open *open;
	uint64_t intent;
	struct fakereg_entry entry; /* the entry to add; none if it has no owner */
	struct op *next;
};

struct fakereg fakereg;
static struct fakereg_open stranger;
static struct op *ops;

/* --- entries */

static bool is_listed(const struct fakereg_entry *entry)
{
	return entry->by && !entry->subscribes;
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
	const char *urls[FAKEREG_ENTRIES];
	size_t count = 0;

	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		if (is_listed(&fakereg.entries[i]) &&
		    strcmp(fakereg.entries[i].service, subscription->service) == 0)
			urls[count++] = fakereg.entries[i].url;
	open->up->list(open->arg, subscription->intent, urls, count);
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
		if (fakereg.entries[i].by == open && fakereg.entries[i].subscribes)
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
		if (is_listed(at) && !entry->subscribes && strcmp(at->url, entry->url) == 0)
			place = at;
		if (place == NULL && at->by == NULL)
			place = at;
	}
	*place = *entry;
	changed();
}

static void drop(const struct fakereg_open *by, uint64_t intent)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		if (fakereg.entries[i].by == by && fakereg.entries[i].intent == intent)
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

void fakereg_lose_all(bool one_by_one)
{
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++) {
		struct fakereg_entry entry = fakereg.entries[i];

		fakereg.entries[i].by = NULL;
		if (one_by_one && entry.by && entry.by != &stranger)
			entry.by->up->lost(entry.by->arg, entry.intent, SPOKE_ELOST);
	}
	for (unsigned i = 0; i < FAKEREG_OPENS && !one_by_one; i++)
		if (fakereg.opens[i].engine && !fakereg.opens[i].closed)
			fakereg.opens[i].up->lost(fakereg.opens[i].arg, 0, SPOKE_ELOST);
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

static void op_due(struct spoke_alarm *alarm)
{
	struct op *op = spoke_container_of(alarm, struct op, alarm);
	struct fakereg_open *open = op->open;
	uint64_t intent = op->intent;
	int error = fakereg.fails;

	if (fakereg.mute)
		return;
	if (op->entry.by == NULL && fakereg.keeps)
		error = SPOKE_ECONNECT;
	if (error == 0 && op->entry.by)
		put(&op->entry);
	if (error == 0 && op->entry.subscribes && fakereg.hastes)
		tell_list(open, &op->entry);
	end_op(op);
	open->up->done(open->arg, intent, error);
}

/* Cancels the pending request of an intent. If its withdrawal failed, the entry stays. */
static void forget_op(const struct fakereg_open *open, uint64_t intent)
{
	struct op *op = ops;

	while (op && (op->open != open || op->intent != intent))
		op = op->next;
	if (op)
		end_op(op);
}

static int begin(struct fakereg_open *open, uint64_t intent, bool subscribes, const char *service,
		 const char *url)
{
	uint64_t delay_ns = fakereg.delay_ns ? fakereg.delay_ns : MS;
	struct op *op;

	fakereg.last_ns = spoke_engine_now(open->engine);
	if (fakereg.in_begin)
		fakereg.in_begin();
	if (fakereg.refuses)
		return fakereg.refuses;
	op = calloc(1, sizeof(*op));
	op->open = open;
	op->intent = intent;
	if (service) {
		op->entry.by = open;
		op->entry.intent = intent;
		op->entry.subscribes = subscribes;
		(void)snprintf(op->entry.service, sizeof(op->entry.service), "%s", service);
		(void)snprintf(op->entry.url, sizeof(op->entry.url), "%s", url);
	}
	op->next = ops;
	if (spoke_alarm_after(open->engine, &op->alarm, delay_ns, op_due)) {
		free(op);
		return SPOKE_ENOMEM;
	}
	ops = op;
	open->under_way++;
	return SPOKE_OK;
}

static int end_intent(struct fakereg_open *open, uint64_t intent, uint64_t which)
{
	int error = begin(open, intent, false, NULL, NULL);

	if (error)
		return error;
	forget_op(open, which);
	if (fakereg.fails == 0 && !fakereg.mute && !fakereg.keeps)
		drop(open, which);
	return SPOKE_OK;
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

static int fake_publish(void *registry, uint64_t intent, const char *service, const char *url)
{
	fakereg.publishes++;
	return begin(registry, intent, false, service, url);
}

static int fake_withdraw(void *registry, uint64_t intent, uint64_t which)
{
	fakereg.withdraws++;
	return end_intent(registry, intent, which);
}

static int fake_subscribe(void *registry, uint64_t intent, const char *service)
{
	fakereg.subscribes++;
	return begin(registry, intent, true, service, "");
}

static int fake_unsubscribe(void *registry, uint64_t intent, uint64_t which)
{
	fakereg.unsubscribes++;
	return end_intent(registry, intent, which);
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
	for (unsigned i = 0; i < FAKEREG_ENTRIES; i++)
		if (fakereg.entries[i].by == open && fakereg.entries[i].subscribes)
			fakereg.entries[i].by = NULL;
	open->closed = true;
	if (!open->posted)
		*open = (struct fakereg_open){ 0 };
}

const struct spoke_registry fakereg_kind = {
	.scheme = "fake",
	.open = fake_open,
	.publish = fake_publish,
	.withdraw = fake_withdraw,
	.subscribe = fake_subscribe,
	.unsubscribe = fake_unsubscribe,
	.close = fake_close,
};

/* --- categories, which are services of their own here */

static const char *name_in(const char *service, const char *category, char name[64])
{
	(void)snprintf(name, 64, "%s/%s", service, category);
	return name;
}

static int fake_publish_any(void *registry, uint64_t intent, const char *service, const char *url)
{
	char name[64];

	if (strncmp(url, "consumer:", 9) == 0)
		service = name_in(service, "consumers", name);
	return fake_publish(registry, intent, service, url);
}

static int fake_watch(void *registry, uint64_t intent, const char *service, const char *category)
{
	char name[64];

	return fake_subscribe(registry, intent, name_in(service, category, name));
}

const struct spoke_registry fakereg_with_categories = {
	.scheme = "fake",
	.open = fake_open,
	.publish = fake_publish_any,
	.withdraw = fake_withdraw,
	.subscribe = fake_subscribe,
	.unsubscribe = fake_unsubscribe,
	.close = fake_close,
	.watch = fake_watch,
};
