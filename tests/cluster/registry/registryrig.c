/* SPDX-License-Identifier: Apache-2.0 */
#include "registryrig.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- callbacks */

static void note(struct rig_member *member, const struct rig_news *news)
{
	assert_non_null(member->registry);
	assert_true(member->count < RIG_NEWS);
	member->news[member->count++] = *news;
}

static struct rig_entry *entry_of(struct rig_member *member, const struct spoke_registry_entry *of)
{
	for (unsigned i = 0; i < RIG_ENTRIES; i++)
		if (member->entries[i].of == of)
			return &member->entries[i];
	fail_msg("an unknown entry");
	return NULL;
}

static void note_state(void *arg, struct spoke_registry_entry *of, int error)
{
	struct rig_member *member = arg;
	struct rig_entry *entry = entry_of(member, of);
	struct rig_news news = { .kind = entry->asked ? RIG_DONE : RIG_LOST, .error = error };

	assert_false(entry->over);
	assert_true(entry->asked || error);
	news.number = entry->asked ? entry->asked : entry->number;
	entry->over = entry->asked != entry->number && news.kind == RIG_DONE && error == 0;
	entry->asked = 0;
	note(member, &news);
}

static void note_list(void *arg, struct spoke_registry_entry *of, const char *texts, size_t count)
{
	struct rig_member *member = arg;
	struct rig_entry *entry = entry_of(member, of);
	struct rig_news news = { .kind = RIG_LIST, .number = entry->number };
	size_t len = 0;

	assert_false(entry->over);
	for (size_t i = 0; i < count; i++) {
		int more = snprintf(news.list + len, sizeof(news.list) - len, "%s\n", texts);

		assert_true(more > 0 && len + (size_t)more < sizeof(news.list));
		len += (size_t)more;
		texts += strlen(texts) + 1;
	}
	note(member, &news);
}

static const struct spoke_registry_up up = { .state = note_state, .list = note_list };

/* --- set-up */

int registryrig_set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL || !spokei_world_init(&rig->world, 3))
		return -1;
	rig->files = rig->world.files;
	for (int i = 0; i < RIG_MEMBERS; i++) {
		struct rig_member *member = &rig->members[i];
		struct spoke_engine_options options = { .timers_max = 64 };

		member->engine = scene_engine(&rig->world, &member->process, &member->faulty,
					      &options);
	}
	*state = rig;
	return 0;
}

RIG_STEP(registryrig_tear_down)
{
	struct rig *rig = *state;

	for (int i = 0; i < RIG_MEMBERS; i++) {
		struct rig_member *member = &rig->members[i];

		registryrig_close(member);
		scene_leave(&member->process, &member->faulty, &member->engine);
	}
	spokei_world_fini(&rig->world);
	free(rig);
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

/* Makes an entry, a publication if there is a `url`. */
static struct rig_entry *add(struct rig_member *member, uint64_t number, const char *service,
			     const char *url)
{
	const size_t size = member->kind->entry_size ? member->kind->entry_size
						     : sizeof(struct spoke_registry_entry);
	struct rig_entry *entry = entry_of(member, NULL);

	entry->of = calloc(1, size);
	entry->texts = malloc(strlen(service) + strlen(url ? url : "") + 2);
	assert_non_null(entry->of);
	assert_non_null(entry->texts);
	memcpy(entry->texts, service, strlen(service) + 1);
	entry->number = number;
	entry->of->service = entry->texts;
	entry->of->category = SPOKE_REGISTRY_PROVIDERS;
	if (url) {
		char *text = entry->texts + strlen(service) + 1;

		memcpy(text, url, strlen(url) + 1);
		assert_int_equal(spoke_url_parse(&member->process.env, url, strlen(url),
						 &entry->url, NULL),
				 0);
		entry->of->url = &entry->url;
		entry->of->text = text;
	}
	return entry;
}

static void want(struct rig_member *member, struct rig_entry *entry)
{
	entry->asked = entry->number;
	member->kind->want(member->registry, entry->of);
}

void registryrig_publish(struct rig_member *member, uint64_t number, const char *service,
			 const char *url)
{
	want(member, add(member, number, service, url));
}

void registryrig_subscribe(struct rig_member *member, uint64_t number, const char *service)
{
	want(member, add(member, number, service, NULL));
}

void registryrig_unwant(struct rig_member *member, uint64_t number, uint64_t which)
{
	struct rig_entry *entry = member->entries;

	while (entry->number != which || entry->over)
		entry++;
	entry->asked = number;
	member->kind->unwant(member->registry, entry->of);
}

void registryrig_close(struct rig_member *member)
{
	if (member->registry)
		member->kind->close(member->registry);
	member->registry = NULL;
	for (unsigned i = 0; i < RIG_ENTRIES; i++) {
		struct rig_entry *entry = &member->entries[i];

		free(entry->of);
		free(entry->texts);
		spoke_url_fini(&entry->url);
		*entry = (struct rig_entry){ NULL };
	}
}

void registryrig_pass(struct rig *rig, uint64_t ns)
{
	spokei_world_run(&rig->world, rig->world.now_ns + ns);
}

/* --- assertions */

static struct rig_news take(struct rig_member *member, enum rig_kind kind, uint64_t number)
{
	struct rig_news news;

	if (member->count == 0)
		fail_msg("nothing was told of %u", (unsigned)number);
	news = member->news[0];
	member->count--;
	memmove(member->news, member->news + 1, member->count * sizeof(news));
	assert_int_equal(news.kind, kind);
	assert_int_equal(news.number, number);
	return news;
}

void registryrig_assert_done(struct rig_member *member, uint64_t number, int error)
{
	assert_int_equal(take(member, RIG_DONE, number).error, error);
}

void registryrig_assert_list(struct rig_member *member, uint64_t number, const char *list)
{
	struct rig_news news = take(member, RIG_LIST, number);

	assert_string_equal(news.list, list);
}

void registryrig_assert_lost(struct rig_member *member, uint64_t number)
{
	assert_true(take(member, RIG_LOST, number).error < 0);
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
	return scene_events(member->engine, part);
}
