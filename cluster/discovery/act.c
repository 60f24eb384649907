/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends requests to the registry and handles their results. One request per wish is in flight at
 * a time, but a withdrawal does not wait for a publication in flight.
 */
#include "cluster/discovery/parts.h"
#include "core/base/log.h"

#include "core/engine/engine.h"

#define REST_NS UINT64_C(3600000000000) /* how often an idle alarm is renewed */

/* --- requests */

static void say(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	const struct spoke_registry *kind = keeper->kind;
	uint64_t intent = ++keeper->intents;
	int error;

	if (wish->subscribes && *wish->url)
		error = kind->watch(keeper->registry, intent, wish->service, wish->url);
	else if (wish->subscribes)
		error = kind->subscribe(keeper->registry, intent, wish->service);
	else
		error = kind->publish(keeper->registry, intent, wish->service, wish->url);
	if (error) {
		spokei_keeper_fail(keeper, wish, wish->subscribes ? "subscribe to" : "publish",
				   error);
		return;
	}
	wish->state = SPOKEI_WISH_SAYING;
	wish->which = intent;
	wish->asked = intent;
}

static void unsay(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	const struct spoke_registry *kind = keeper->kind;
	uint64_t intent = ++keeper->intents;
	int error;

	if (wish->subscribes)
		error = kind->unsubscribe(keeper->registry, intent, wish->which);
	else
		error = kind->withdraw(keeper->registry, intent, wish->which);
	if (error) {
		spokei_keeper_fail(keeper, wish, wish->subscribes ? "unsubscribe from" : "withdraw",
				   error);
		return;
	}
	wish->state = SPOKEI_WISH_UNSAYING;
	wish->stale = false;
	wish->asked = intent;
}

/* Returns whether another wish about the same address must be withdrawn first. A wish whose
 * withdrawal has failed does not block, because that may go on for ever. */
static bool is_blocked(struct spokei_keeper *keeper, const struct spokei_wish *wish)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		const struct spokei_wish *other = spokei_keeper_wish(node);

		if (other != wish && spokei_wish_is_there(other) &&
		    other->state != SPOKEI_WISH_LEFT && other->subscribes == wish->subscribes &&
		    strcmp(other->key, wish->key) == 0)
			return true;
	}
	return false;
}

static void act_on(struct spokei_keeper *keeper, struct spokei_wish *wish)
{
	switch (wish->state) {
	case SPOKEI_WISH_UNSAID:
		if (wish->wanted && !is_blocked(keeper, wish))
			say(keeper, wish);
		return;
	case SPOKEI_WISH_SAYING:
		if (!wish->wanted)
			unsay(keeper, wish);
		return;
	case SPOKEI_WISH_HOLDS:
		if (!wish->wanted || wish->stale)
			unsay(keeper, wish);
		return;
	case SPOKEI_WISH_UNSAYING:
		return;
	case SPOKEI_WISH_LEFT:
		if (wish->wanted)
			say(keeper, wish);
		else
			unsay(keeper, wish);
		return;
	}
}

/* After free() the keeper waits for withdrawals only. */
static bool may_end(struct spokei_keeper *keeper)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		const struct spokei_wish *wish = spokei_keeper_wish(node);

		if (!wish->subscribes && wish->asked)
			return false;
	}
	return true;
}

void spokei_keeper_act(struct spokei_task *task)
{
	struct spokei_keeper *keeper = spoke_container_of(task, struct spokei_keeper, act);
	uint64_t now_ns = spokei_keeper_now(keeper);

	if (keeper->ended || spokei_engine_forked(keeper->engine))
		return;
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;) {
		struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->due_ns <= now_ns)
			act_on(keeper, wish);
		node = node->next;
		if (!wish->wanted && !spokei_wish_is_there(wish))
			spokei_keeper_drop_wish(keeper, wish);
	}
	(void)!spokei_keeper_set_alarm(keeper, now_ns);
	if (keeper->freed && may_end(keeper))
		spokei_engine_dead(keeper->engine, &keeper->bury);
}

static void keeper_due(struct spoke_alarm *alarm)
{
	struct spokei_keeper *keeper = spoke_container_of(alarm, struct spokei_keeper, alarm);
	uint64_t now_ns = spokei_keeper_now(keeper);

	/* Renewed at once, so that the keeper keeps its place in the wheel. */
	(void)!spokei_keeper_set_alarm(keeper, now_ns);
	if (keeper->freed && now_ns >= keeper->end_ns)
		spokei_engine_dead(keeper->engine, &keeper->bury);
	else
		spokei_keeper_act_soon(keeper);
	if (keeper->kept.count > 0 && now_ns >= keeper->kept_ns)
		spokei_engine_soon(keeper->engine, &keeper->begin);
}

int spokei_keeper_set_alarm(struct spokei_keeper *keeper, uint64_t now_ns)
{
	uint64_t due_ns = spokei_later(now_ns, REST_NS);

	if (keeper->freed && keeper->end_ns > now_ns)
		due_ns = keeper->end_ns;
	if (keeper->kept_ns > now_ns && keeper->kept_ns < due_ns)
		due_ns = keeper->kept_ns;
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		const struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->due_ns > now_ns && wish->due_ns < due_ns)
			due_ns = wish->due_ns;
	}
	return spoke_alarm_after(keeper->engine, &keeper->alarm, due_ns - now_ns, keeper_due);
}

/* --- results */

static struct spokei_wish *find_asked(struct spokei_keeper *keeper, uint64_t intent)
{
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->asked == intent && intent != 0)
			return wish;
	}
	return NULL;
}

static void said(struct spokei_keeper *keeper, struct spokei_wish *wish, int error)
{
	wish->state = error ? SPOKEI_WISH_UNSAID : SPOKEI_WISH_HOLDS;
	if (error) {
		spokei_keeper_fail(keeper, wish, wish->subscribes ? "subscribe to" : "publish",
				   error);
		return;
	}
	if (wish->stale)
		return;
	wish->failures = 0;
	wish->due_ns = 0;
	if (wish->wanted)
		spokei_keeper_calm(keeper, wish);
}

static void unsaid(struct spokei_keeper *keeper, struct spokei_wish *wish, int error)
{
	wish->state = error ? SPOKEI_WISH_LEFT : SPOKEI_WISH_UNSAID;
	if (error) {
		spokei_keeper_fail(keeper, wish, wish->subscribes ? "unsubscribe from" : "withdraw",
				   error);
		return;
	}
	wish->failures = 0;
	wish->due_ns = 0;
	if (!wish->wanted)
		spokei_keeper_calm(keeper, wish);
}

static void registry_done(void *arg, uint64_t intent, int error)
{
	struct spokei_keeper *keeper = arg;
	struct spokei_wish *wish = find_asked(keeper, intent);

	if (wish == NULL)
		return;
	spokei_engine_refresh(keeper->engine);
	wish->asked = 0;
	if (wish->state == SPOKEI_WISH_SAYING)
		said(keeper, wish, error);
	else
		unsaid(keeper, wish, error);
	if (error)
		spokei_keeper_act_soon(keeper);
	else
		spokei_keeper_heard(keeper);
}

/* Repeats the request at once, or after a pause if it was lost again before a pause has
 * passed. */
static void lose(struct spokei_keeper *keeper, struct spokei_wish *wish, int error)
{
	uint64_t now_ns = spokei_keeper_now(keeper);
	bool at_once = now_ns >= wish->anew_ns;

	wish->state = SPOKEI_WISH_UNSAID;
	wish->stale = false;
	if (!wish->wanted)
		return;
	if (keeper->troubled == 0)
		spokei_event(keeper->engine, error ? error : SPOKE_ELOST,
			     "registry %s: entries lost; repeating the requests", keeper->name);
	spokei_keeper_worry(keeper, wish);
	wish->failures = 0;
	wish->due_ns = at_once ? 0 : spokei_keeper_after_pause(keeper);
	wish->anew_ns = spokei_later(now_ns, keeper->retry_ns);
}

static void registry_lost(void *arg, uint64_t intent, int error)
{
	struct spokei_keeper *keeper = arg;

	spokei_engine_refresh(keeper->engine);
	for (struct spoke_list *node = keeper->wishes.next; node != &keeper->wishes;
	     node = node->next) {
		struct spokei_wish *wish = spokei_keeper_wish(node);

		if (wish->state != SPOKEI_WISH_HOLDS && wish->state != SPOKEI_WISH_LEFT)
			continue;
		if (intent == 0 || wish->which == intent)
			lose(keeper, wish, error);
	}
	spokei_keeper_heard(keeper);
}

const struct spoke_registry_up spokei_keeper_registry_up = {
	.done = registry_done,
	.list = spokei_keeper_take_list,
	.lost = registry_lost,
};
