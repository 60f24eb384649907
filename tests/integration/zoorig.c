/* SPDX-License-Identifier: Apache-2.0 */
/* The registry under test, with a record of all its notifications; see zoorig.h. */
#define _GNU_SOURCE
#include "tests/integration/zoorig.h"
#include "core/engine/engine.h"

#include <spoke/host.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS (60 * SECOND)

struct zoorig rig;

/* --- wrappers that the linker puts in place of the library's functions (--wrap) */

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
/* NOLINTNEXTLINE(readability-function-size) */
zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
				  const clientid_t *id, void *context, int flags,
				  log_callback_fn log);
int __wrap_zookeeper_close(zhandle_t *zh);

/* NOLINTNEXTLINE(readability-function-size) */
zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
				  const clientid_t *id, void *context, int flags,
				  log_callback_fn log)
{
	rig.theirs = __real_zookeeper_init2(host, fn, timeout_ms, id, context, flags, log);
	return rig.theirs;
}

int __wrap_zookeeper_close(zhandle_t *zh)
{
	const struct spoke_env *env = spoke_host_env();

	__atomic_store_n(&rig.closed_by, env->threads->self(env->ctx), __ATOMIC_SEQ_CST);
	(void)__atomic_fetch_add(&rig.closed, 1, __ATOMIC_SEQ_CST);
	return __real_zookeeper_close(zh);
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* --- notifications */

static struct note *add_note(enum note_kind kind, uint64_t number, int error)
{
	struct note *note = &rig.notes[rig.note_count++];

	assert_true(rig.note_count <= NOTES_MAX);
	*note = (struct note){ .number = number, .error = error };
	note->kind = kind;
	return note;
}

static struct zoorig_entry *entry_of(const struct spoke_registry_entry *of)
{
	for (unsigned i = 0; i < ENTRIES_MAX; i++)
		if (rig.entries[i].of == of)
			return &rig.entries[i];
	fail_msg("an unknown entry");
	return NULL;
}

static void note_state(void *arg, struct spoke_registry_entry *of, int error)
{
	struct zoorig_entry *entry = entry_of(of);

	assert_ptr_equal(arg, &rig);
	assert_true(entry->asked || error);
	if (entry->asked)
		(void)add_note(NOTE_DONE, entry->asked, error);
	else
		(void)add_note(NOTE_LOST, entry->number, error);
	entry->asked = 0;
}

static int by_alphabet(const void *one, const void *other)
{
	return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* Returns the names, sorted, one per line. */
static char *lines_of(const char *texts, size_t count)
{
	const char **sorted = calloc(count + 1, sizeof(*sorted));
	size_t size = 1;
	char *lines;
	char *at;

	assert_non_null(sorted);
	for (size_t i = 0; i < count; i++) {
		sorted[i] = texts;
		size += strlen(texts) + 1;
		texts += strlen(texts) + 1;
	}
	qsort(sorted, count, sizeof(*sorted), by_alphabet);
	lines = at = malloc(size);
	assert_non_null(lines);
	*at = '\0';
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, size - (size_t)(at - lines), "%s\n", sorted[i]);
	free(sorted);
	return lines;
}

static void note_list(void *arg, struct spoke_registry_entry *of, const char *texts, size_t count)
{
	struct note *note;

	assert_ptr_equal(arg, &rig);
	note = add_note(NOTE_LIST, entry_of(of)->number, 0);
	note->count = count;
	note->urls = lines_of(texts, count);
}

static const struct spoke_registry_up rig_up = { note_state, note_list };

size_t zoorig_count(int kind, uint64_t number)
{
	size_t count = 0;

	for (size_t i = 0; i < rig.note_count; i++)
		count += (int)rig.notes[i].kind == kind && rig.notes[i].number == number;
	return count;
}

static const struct note *newest(int kind, uint64_t number)
{
	for (size_t i = rig.note_count; i > 0; i--)
		if ((int)rig.notes[i - 1].kind == kind && rig.notes[i - 1].number == number)
			return &rig.notes[i - 1];
	return NULL;
}

const char *zoorig_list(uint64_t number)
{
	const struct note *note = newest(NOTE_LIST, number);

	return note ? note->urls : "(none)";
}

int zoorig_lost(uint64_t number)
{
	const struct note *note = newest(NOTE_LOST, number);

	return note ? note->error : 1;
}

bool zoorig_has_ended(uint64_t number)
{
	return newest(NOTE_DONE, number) != NULL;
}

int zoorig_end(uint64_t number)
{
	zoorig_until(zoorig_has_ended(number));
	return newest(NOTE_DONE, number)->error;
}

bool zoorig_said(const char *words)
{
	for (size_t i = 0; i < rig.engine->events.last; i++) {
		const struct spoke_event *event = spokei_events_find(rig.engine, i + 1);

		if (event && strstr(event->text, words))
			return true;
	}
	return false;
}

/* --- time */

static uint64_t now_ns(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

uint64_t zoorig_patience(void)
{
	return now_ns() + PATIENCE_NS;
}

static void nothing_due(struct spoke_alarm *alarm)
{
	(void)alarm;
}

void zoorig_turn(void)
{
	struct spoke_alarm alarm = { 0 };

	assert_int_equal(spoke_alarm_after(rig.engine, &alarm, 5 * MS, nothing_due), 0);
	assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	(void)spoke_alarm_cancel(&alarm);
}

/* Ends a late turn: it takes at most 16 rounds. */
void zoorig_catch_up(void)
{
	for (int i = 0; i < 20; i++)
		zoorig_turn();
}

void zoorig_turn_until(uint64_t until_ns, const char *what, const char *file, int line)
{
	if (now_ns() > until_ns)
		fail_msg("%s:%d: did not become true in time: %s", file, line, what);
	zoorig_turn();
}

/* --- requests */

static const struct spoke_registry *table(void)
{
	return spoke_registry_find("zookeeper");
}

int zoorig_open_url(const char *text)
{
	struct spoke_url url = { 0 };
	int error;

	assert_int_equal(spoke_url_parse(spoke_host_env(), text, strlen(text), &url, NULL), 0);
	error = table()->open(rig.engine, &url, &rig_up, &rig, &rig.registry);
	spoke_url_fini(&url);
	return error;
}

void zoorig_open(const char *parameters)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "zookeeper://127.0.0.1:%u%s", (unsigned)zooserver_port(),
		       parameters);
	assert_int_equal(zoorig_open_url(url), 0);
}

void zoorig_close(void)
{
	size_t told = rig.note_count;

	table()->close(rig.registry);
	rig.registry = NULL;
	assert_int_equal(rig.note_count, told);
	for (unsigned i = 0; i < ENTRIES_MAX; i++) {
		free(rig.entries[i].of);
		spoke_url_fini(&rig.entries[i].url);
		rig.entries[i] = (struct zoorig_entry){ NULL };
	}
}

static uint64_t want(const char *service, const char *category, const char *url)
{
	struct zoorig_entry *entry = entry_of(NULL);

	entry->of = calloc(1, table()->entry_size);
	assert_non_null(entry->of);
	entry->of->service = service;
	entry->of->category = category;
	if (url) {
		assert_int_equal(spoke_url_parse(spoke_host_env(), url, strlen(url), &entry->url,
						 NULL),
				 0);
		entry->of->url = &entry->url;
		entry->of->text = url;
	}
	entry->number = entry->asked = ++rig.numbers;
	table()->want(rig.registry, entry->of);
	return entry->number;
}

uint64_t zoorig_publish(const char *service, const char *url)
{
	return want(service,
		    strncmp(url, "consumer:", 9) == 0 ? SPOKE_REGISTRY_CONSUMERS
						      : SPOKE_REGISTRY_PROVIDERS,
		    url);
}

uint64_t zoorig_subscribe(const char *service)
{
	return want(service, SPOKE_REGISTRY_PROVIDERS, NULL);
}

uint64_t zoorig_watch(const char *service, const char *category)
{
	return want(service, category, NULL);
}

uint64_t zoorig_unwant(uint64_t which)
{
	struct zoorig_entry *entry = rig.entries;

	while (entry->number != which)
		entry++;
	entry->asked = ++rig.numbers;
	table()->unwant(rig.registry, entry->of);
	return rig.numbers;
}

int zoorig_try_open(void)
{
	char url[64];

	(void)snprintf(url, sizeof(url), "zookeeper://127.0.0.1:%u", (unsigned)zooserver_port());
	return zoorig_open_url(url);
}

/* --- life */

RIG_STEP(zoorig_set_up_all)
{
	zooserver_make();
}

RIG_STEP(zoorig_tear_down_all)
{
	zooserver_unmake();
}

void zoorig_forget(void)
{
	for (size_t i = 0; i < rig.note_count; i++)
		free(rig.notes[i].urls);
	rig.note_count = 0;
}

RIG_STEP(zoorig_set_up)
{
	memset(&rig, 0, sizeof(rig));
	spokei_faults_init(&rig.faulty, spoke_host_env());
	zooserver_rouse();
	zoostranger_clears("/dubbo");
	zoostranger_clears("/services");
	zoostranger_clears("/elsewhere");
	assert_int_equal(spoke_engine_new(&(struct spoke_engine_options){ .env = &rig.faulty.env },
					  &rig.engine),
			 0);
}

RIG_STEP(zoorig_tear_down)
{
	if (rig.registry)
		zoorig_close();
	spoke_engine_free(rig.engine);
	zoorig_forget();
	zoostranger_leaves();
	assert_int_equal(rig.faulty.blocks, 0);
	assert_int_equal(rig.faulty.fds, 0);
}

int64_t zoorig_session(void)
{
	return zoo_client_id(rig.theirs)->client_id;
}
