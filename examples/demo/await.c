/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for events and counts of the processes, with a timeout. */
#include "examples/demo/await.h"
#include "examples/demo/hearing.h"
#include "examples/demo/story.h"

struct condition {
	const struct actor *actor;
	enum message_tag tag;
	enum message_count count;
	uint64_t number;
};

static bool was_seen(const struct condition *condition)
{
	return condition->actor->seen[condition->tag] >= condition->number;
}

static bool has_missed(const struct condition *condition)
{
	return condition->actor->missed >= condition->number;
}

static bool has_counted(const struct condition *condition)
{
	return actor_count(condition->actor, condition->count) >= condition->number;
}

static bool has_none(const struct condition *condition)
{
	return actor_count(condition->actor, condition->count) == 0;
}

static bool is_stopped(const struct condition *condition)
{
	return condition->actor->stopped;
}

static bool is_gone(const struct condition *condition)
{
	return condition->actor->pid == 0;
}

static bool goes_on(void)
{
	if (story_broken())
		return cast_trouble("the output was closed");
	return !cast_interrupted() && cast.trouble[0] == '\0';
}

static bool await(bool (*is_so)(const struct condition *condition),
		  const struct condition *condition, const char *what)
{
	uint64_t end_ns = story_now() + cast.patience_ns;

	while (!is_so(condition)) {
		if (!goes_on())
			return false;
		if (story_now() > end_ns)
			return cast_trouble("%s: timeout after %u s: expected that it %s",
					    condition->actor->name,
					    (unsigned)(cast.patience_ns / PLAN_SECOND), what);
		hearing_hear(100);
	}
	return goes_on();
}

bool await_seen(const struct actor *actor, enum message_tag tag, unsigned times)
{
	static const char *const whats[TAGS] = {
		[TAG_LISTENS] = "listens",
		[TAG_CONNECTED] = "connects",
		[TAG_PROBATION] = "has a connection on probation",
		[TAG_SUSPECT] = "misses heartbeats",
		[TAG_RECOVERED] = "recovers its peer",
		[TAG_READONLY] = "receives a drain notice",
		[TAG_CLOSED] = "closes a connection",
		[TAG_RECONNECTING] = "connects again",
		[TAG_ANSWERED] = "gets answers",
		[TAG_CALM] = "has no deferred calls left",
		[TAG_PULSE] = "reports its calls",
		[TAG_ADMIN] = "has a page",
		[TAG_ASKED] = "asks for the lease",
		[TAG_HELD] = "gets the lease",
		[TAG_LOST] = "loses the lease",
		[TAG_GIVEN] = "gives the lease back",
		[TAG_LATE] = "has an outcome for its late write",
		[TAG_RESTS] = "has an outcome for every call",
	};
	struct condition condition = { .actor = actor, .tag = tag, .number = times };

	return await(was_seen, &condition, whats[tag]);
}

bool await_missed(const struct actor *actor, unsigned heartbeats)
{
	struct condition condition = { .actor = actor, .number = heartbeats };

	return await(has_missed, &condition, "misses heartbeats");
}

bool await_count(const struct actor *actor, enum message_count count, uint64_t at_least)
{
	struct condition condition = { .actor = actor, .count = count, .number = at_least };

	return await(has_counted, &condition,
		     count == COUNT_TIMED_OUT ? "has a request time out"
		     : count == COUNT_BEATS   ? "receives heartbeats"
		     : count == COUNT_WRITES  ? "writes under its lease"
		     : count == COUNT_SERVED  ? "serves requests"
					      : "tries calls again");
}

bool await_none(const struct actor *actor, enum message_count count)
{
	struct condition condition = { .actor = actor, .count = count };

	return await(has_none, &condition, "has no deferred calls left");
}

bool await_stopped(const struct actor *actor)
{
	struct condition condition = { .actor = actor };

	return await(is_stopped, &condition, "is frozen");
}

bool await_gone(const struct actor *actor)
{
	struct condition condition = { .actor = actor };

	return await(is_gone, &condition, "ends");
}

static bool is_mended(const struct condition *condition)
{
	return condition->actor->pid != 0 && !condition->actor->stopped;
}

bool await_mended(const struct actor *actor)
{
	struct condition condition = { .actor = actor };

	return await(is_mended, &condition, "runs again");
}

bool await_time(uint64_t until_ns)
{
	while (story_now() < until_ns) {
		uint64_t left_ms = (until_ns - story_now()) / PLAN_MS + 1;

		if (!goes_on())
			return false;
		hearing_hear(left_ms < 100 ? (int)left_ms : 100);
	}
	return goes_on();
}
