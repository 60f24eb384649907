/* SPDX-License-Identifier: Apache-2.0 */
#include "registryrig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- callbacks */

static void note(struct rig_member *member, const struct rig_news *news)
{
	assert_false(member->inside);
	assert_non_null(member->registry);
	assert_true(member->count < RIG_NEWS);
	member->news[member->count++] = *news;
	if (member->close_at == news->kind)
		registryrig_close(member);
	if (member->then)
		member->then(member, news);
}

static void note_done(void *arg, uint64_t intent, int error)
{
	note(arg, &(struct rig_news){ .kind = RIG_DONE, .intent = intent, .error = error });
}

static void note_list(void *arg, uint64_t intent, const char *const *urls, size_t count)
{
	struct rig_news news = { .kind = RIG_LIST, .intent = intent };
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		int more = snprintf(news.list + len, sizeof(news.list) - len, "%s\n", urls[i]);

		assert_true(more > 0 && len + (size_t)more < sizeof(news.list));
		len += (size_t)more;
	}
	note(arg, &news);
}

static void note_lost(void *arg, uint64_t intent, int error)
{
	note(arg, &(struct rig_news){ .kind = RIG_LOST, .intent = intent, .error = error });
}

static const struct spoke_registry_up up = { .done = note_done,
					     .list = note_list,
					     .lost = note_lost };

/* --- set-up */

int registryrig_set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL || !spokei_world_init(&rig->world, 3))
		return -1;
	rig->files = rig->world.files;
	for (int i = 0; i < RIG_MEMBERS; i++) {
		struct rig_member *member = &rig->members[i];
		struct spoke_engine_options options = { .env = &member->faulty.env,
							.timers_max = 64 };

		member->close_at = RIG_NO_CLOSE;
		spokei_world_process_init(&member->process, &rig->world);
		spokei_faults_init(&member->faulty, &member->process.env);
		if (spoke_engine_new(&options, &member->engine))
			return -1;
	}
	*state = rig;
	return 0;
}

int registryrig_tear_down(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < RIG_MEMBERS; i++) {
		struct rig_member *member = &rig->members[i];

		registryrig_close(member);
		spoke_engine_free(member->engine);
		assert_int_equal(member->faulty.blocks, 0);
		assert_int_equal(member->faulty.fds, 0);
		assert_int_equal(member->process.user.fds, 0);
		spokei_world_process_fini(&member->process);
	}
	spokei_world_fini(&rig->world);
	free(rig);
	return 0;
}

int registryrig_open(struct rig_member *member, const struct spoke_registry *kind, const char *url)
{
	struct spoke_url read;
	int error = spoke_url_parse(&member->process.env, url, strlen(url), &read, NULL);

	assert_int_equal(error, 0);
	member->kind = kind;
	error = kind->open(member->engine, &read, &up, member, &member->registry);
	spoke_url_fini(&read);
	return error;
}

int registryrig_publish(struct rig_member *member, uint64_t intent, const char *service,
			const char *url)
{
	int error;

	member->inside = true;
	error = member->kind->publish(member->registry, intent, service, url);
	member->inside = false;
	return error;
}

int registryrig_withdraw(struct rig_member *member, uint64_t intent, uint64_t which)
{
	int error;

	member->inside = true;
	error = member->kind->withdraw(member->registry, intent, which);
	member->inside = false;
	return error;
}

int registryrig_subscribe(struct rig_member *member, uint64_t intent, const char *service)
{
	int error;

	member->inside = true;
	error = member->kind->subscribe(member->registry, intent, service);
	member->inside = false;
	return error;
}

int registryrig_unsubscribe(struct rig_member *member, uint64_t intent, uint64_t which)
{
	int error;

	member->inside = true;
	error = member->kind->unsubscribe(member->registry, intent, which);
	member->inside = false;
	return error;
}

void registryrig_close(struct rig_member *member)
{
	if (member->registry == NULL)
		return;
	member->inside = true;
	member->kind->close(member->registry);
	member->inside = false;
	member->registry = NULL;
}

void registryrig_pass(struct rig *rig, uint64_t ns)
{
	spokei_world_run(&rig->world, rig->world.now_ns + ns);
}

/* --- assertions */

static struct rig_news take(struct rig_member *member, enum rig_kind kind, uint64_t intent)
{
	struct rig_news news;

	if (member->count == 0)
		fail_msg("nothing was told of %u", (unsigned)intent);
	news = member->news[0];
	member->count--;
	memmove(member->news, member->news + 1, member->count * sizeof(news));
	assert_int_equal(news.kind, kind);
	assert_int_equal(news.intent, intent);
	return news;
}

void registryrig_assert_done(struct rig_member *member, uint64_t intent, int error)
{
	assert_int_equal(take(member, RIG_DONE, intent).error, error);
}

void registryrig_assert_list(struct rig_member *member, uint64_t intent, const char *list)
{
	struct rig_news news = take(member, RIG_LIST, intent);

	assert_string_equal(news.list, list);
}

void registryrig_assert_lost(struct rig_member *member, uint64_t intent)
{
	assert_true(take(member, RIG_LOST, intent).error < 0);
}

void registryrig_assert_no_more(struct rig_member *member)
{
	assert_int_equal(member->count, 0);
}

const char *registryrig_text(const struct rig *rig)
{
	static char plain[RIG_TEXT];
	const char *text = spokei_vfiles_get(rig->files, RIG_PATH);
	size_t len = 0;

	while (text && *text) {
		const size_t mark = strlen("?lock=0123456789abcdef");

		if ((strncmp(text, "?lock=", 6) == 0 || strncmp(text, "&lock=", 6) == 0) &&
		    strcspn(text, "\n") == mark)
			text += mark;
		assert_true(len < sizeof(plain) - 1);
		plain[len++] = *text++;
	}
	plain[len] = '\0';
	return text ? plain : NULL;
}

unsigned registryrig_events(const struct rig_member *member, const char *part)
{
	struct spoke_event event;
	unsigned count = 0;

	for (uint64_t number = 1; spoke_event_get(member->engine, number, &event) == 0;
	     number = event.number + 1)
		count += strstr(event.text, part) != NULL;
	return count;
}
