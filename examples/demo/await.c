/* SPDX-License-Identifier: Apache-2.0 */
#include "examples/demo/await.h"
#include "examples/demo/hearing.h"
#include "examples/demo/story.h"

struct wish {
	const struct actor *actor;
	enum message_tag tag;
	enum message_count count;
	uint64_t number;
};

static bool was_seen(const struct wish *wish)
{
	return wish->actor->seen[wish->tag] >= wish->number;
}

static bool has_missed(const struct wish *wish)
{
	return wish->actor->missed >= wish->number;
}

static bool has_counted(const struct wish *wish)
{
	return actor_count(wish->actor, wish->count) >= wish->number;
}

static bool has_none(const struct wish *wish)
{
	return actor_count(wish->actor, wish->count) == 0;
}

static bool is_stopped(const struct wish *wish)
{
	return wish->actor->stopped;
}

static bool is_gone(const struct wish *wish)
{
	return wish->actor->pid == 0;
}

static bool goes_on(void)
{
	if (story_broken())
		return cast_trouble("nobody reads the story any more");
	return !cast_interrupted() && cast.trouble[0] == '\0';
}

static bool await(bool (*is_so)(const struct wish *wish), const struct wish *wish, const char *what)
{
	uint64_t end_ns = story_now() + cast.patience_ns;

	while (!is_so(wish)) {
		if (!goes_on())
			return false;
		if (story_now() > end_ns)
			return cast_trouble("%s: in %u s it was not seen that it %s",
					    wish->actor->name,
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
		[TAG_PROBATION] = "has a link on probation",
		[TAG_SUSPECT] = "misses heartbeats",
		[TAG_RECOVERED] = "hears its peer again",
		[TAG_READONLY] = "hears a goodbye",
		[TAG_CLOSED] = "closes a link",
		[TAG_RECONNECTING] = "connects again",
		[TAG_ANSWERED] = "has calls answered",
		[TAG_CALM] = "has no deferred calls left",
		[TAG_PULSE] = "tells how calls do",
		[TAG_ADMIN] = "has a page",
		[TAG_RESTS] = "has an outcome for every call",
	};
	struct wish wish = { .actor = actor, .tag = tag, .number = times };

	return await(was_seen, &wish, whats[tag]);
}

bool await_missed(const struct actor *actor, unsigned heartbeats)
{
	struct wish wish = { .actor = actor, .number = heartbeats };

	return await(has_missed, &wish, "misses heartbeats");
}

bool await_count(const struct actor *actor, enum message_count count, uint64_t at_least)
{
	struct wish wish = { .actor = actor, .count = count, .number = at_least };

	return await(has_counted, &wish,
		     count == COUNT_TIMED_OUT ? "has a request time out"
		     : count == COUNT_BEATS   ? "hears heartbeats"
					      : "tries calls again");
}

bool await_none(const struct actor *actor, enum message_count count)
{
	struct wish wish = { .actor = actor, .count = count };

	return await(has_none, &wish, "has no deferred calls left");
}

bool await_stopped(const struct actor *actor)
{
	struct wish wish = { .actor = actor };

	return await(is_stopped, &wish, "is frozen");
}

bool await_gone(const struct actor *actor)
{
	struct wish wish = { .actor = actor };

	return await(is_gone, &wish, "ends");
}

static bool is_mended(const struct wish *wish)
{
	return wish->actor->pid != 0 && !wish->actor->stopped;
}

bool await_mended(const struct actor *actor)
{
	struct wish wish = { .actor = actor };

	return await(is_mended, &wish, "runs again");
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
