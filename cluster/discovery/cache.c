/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the last list of providers in a file, which is private because URLs contain tokens. */
#include "cluster/discovery/cache.h"

#include "core/base/log.h"

#include <spoke/engine.h>
#include <spoke/url.h>
#include <spoke/wheel.h>

#include "core/engine/engine.h"

#include <errno.h>
#include <stdio.h>

#define HEAD "# providers of "
#define READ_FIRST 65536u
#define SHOWN 96u /* bytes of the path in events */

struct spokei_cache {
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	struct spoke_work work;
	struct spokei_buffer next;    /* to be written; empty: nothing */
	struct spokei_buffer current; /* being written or last written */
	int status;                   /* of the last write: 0 or a negative errno */
	bool writing;                 /* the write is on a pool thread or returning from it */
	bool failing;                 /* the last write failed and was logged */
	bool freed;
	size_t size;      /* of this, with its texts */
	const char *path; /* after this struct */
	const char *head; /* first line, with its newline */
	size_t head_len;
	char texts[];
};

static void complain(const struct spokei_cache *cache, int error, const char *what)
{
	char shown[SHOWN];

	(void)spokei_log_escape_end(shown, sizeof(shown), cache->path, strlen(cache->path));
	spokei_event(cache->engine, error, "cache %s: %s", shown, what);
}

static void destroy(struct spokei_cache *cache)
{
	const struct spoke_env *env = cache->engine->env;

	(void)spoke_alarm_cancel(&cache->alarm);
	spokei_buffer_fini(&cache->next);
	spokei_buffer_fini(&cache->current);
	spokei_free(env, cache, 1, cache->size);
}

/* --- writing */

static void begin_to_write(struct spokei_cache *cache);

static bool has_next(const struct spokei_cache *cache)
{
	return spokei_buffer_len(&cache->next) > 0;
}

static void cache_due(struct spoke_alarm *alarm)
{
	struct spokei_cache *cache = spoke_container_of(alarm, struct spokei_cache, alarm);

	if (has_next(cache))
		begin_to_write(cache);
}

/* Without a timer the next list is written instead. */
static void write_later(struct spokei_cache *cache)
{
	if (!spoke_timer_armed(&cache->alarm.timer))
		(void)!spoke_alarm_after(cache->engine, &cache->alarm, SPOKEI_CACHE_PAUSE_NS,
					 cache_due);
}

static void write_file(struct spoke_work *work)
{
	struct spokei_cache *cache = spoke_container_of(work, struct spokei_cache, work);
	const struct spoke_env *env = cache->engine->env;

	cache->status = env->files->replace(env->ctx, cache->path,
					    spokei_buffer_data(&cache->current),
					    spokei_buffer_len(&cache->current), true);
}

static void written(struct spoke_work *work)
{
	struct spokei_cache *cache = spoke_container_of(work, struct spokei_cache, work);
	bool failed = work->status == 0 && cache->status != 0;

	cache->writing = false;
	if (failed && !cache->failing)
		complain(cache, SPOKE_ESYSTEM,
			 "cannot be written; check the directory's permissions and free space");
	cache->failing = failed;
	if (failed || work->status)
		spokei_buffer_fini(&cache->current);
	if (cache->freed)
		destroy(cache);
	else if (has_next(cache))
		write_later(cache);
}

static void swap(struct spokei_cache *cache)
{
	const struct spokei_buffer next = cache->next;

	cache->next = cache->current;
	cache->current = next;
}

static void begin_to_write(struct spokei_cache *cache)
{
	struct spoke_engine *engine = cache->engine;

	SPOKE_ASSERT(!cache->writing);
	spokei_buffer_fini(&cache->current);
	swap(cache);
	cache->work = (struct spoke_work){ .run = write_file, .done = written };
	cache->writing = engine->env->loop->offload(engine->loop, &cache->work) == 0;
	if (cache->writing)
		return;
	swap(cache);
	write_later(cache);
}

void spokei_cache_free(struct spokei_cache *cache)
{
	if (cache == NULL || cache->freed)
		return;
	if (has_next(cache) && !cache->writing && !spokei_engine_forked(cache->engine))
		begin_to_write(cache);
	(void)spoke_alarm_cancel(&cache->alarm);
	cache->freed = true;
	if (!cache->writing)
		destroy(cache);
}

static bool is_line(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ')
			return false;
	return len > 0 && *text != '#';
}

/* Prints the whole file. */
static int print_all(const struct spokei_cache *cache, const char *texts, size_t count,
		     struct spokei_buffer *out)
{
	int error = spokei_buffer_append(out, cache->head, cache->head_len);

	for (; count > 0 && error == 0; count--) {
		size_t len = strlen(texts);

		if (is_line(texts, len))
			error = spokei_buffer_append(out, texts, len + 1);
		if (error == 0)
			spokei_buffer_data(out)[spokei_buffer_len(out) - 1] = '\n';
		texts += len + 1;
	}
	return error;
}

static bool is_current(const struct spokei_cache *cache)
{
	size_t len = spokei_buffer_len(&cache->next);

	return len == spokei_buffer_len(&cache->current) &&
	       memcmp(spokei_buffer_data(&cache->next), spokei_buffer_data(&cache->current), len) ==
		       0;
}

void spokei_cache_keep(struct spokei_cache *cache, const char *texts, size_t count)
{
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, cache->engine->env, SPOKEI_CACHE_MAX);
	error = print_all(cache, texts, count, &text);
	if (error) {
		spokei_buffer_fini(&text);
		complain(cache, error,
			 error == SPOKE_ETOOLARGE ? "the list is too long to be saved"
						  : "out of memory while saving the list");
		return;
	}
	spokei_buffer_fini(&cache->next);
	cache->next = text;
	if (is_current(cache))
		spokei_buffer_fini(&cache->next);
	else if (!cache->writing)
		write_later(cache);
}

/* --- reading */

/* Reads the file; the text is empty if there is none or it is unreadable. Returns 0 or
 * SPOKE_ENOMEM. */
static int read_file(const struct spokei_cache *cache, struct spokei_buffer *text)
{
	const struct spoke_env *env = cache->engine->env;
	ssize_t got = -EFBIG;

	for (size_t size = READ_FIRST; got == -EFBIG && size <= SPOKEI_CACHE_MAX; size *= 2) {
		unsigned char *room = spokei_buffer_reserve(text, size);

		if (room == NULL)
			return SPOKE_ENOMEM;
		got = env->files->read(env->ctx, cache->path, room, size);
	}
	if (got >= 0)
		spokei_buffer_commit(text, (size_t)got);
	else if (got == -EFBIG)
		complain(cache, SPOKE_ETOOLARGE, "too large; ignored");
	else if (got != -ENOENT)
		complain(cache, SPOKE_ESYSTEM, "cannot be read");
	return SPOKE_OK;
}

static int read_lines(const char *at, const char *end, struct spokei_buffer *texts,
		      size_t *ret_count)
{
	int error = SPOKE_OK;

	while (at < end && error == 0) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		if (is_line(at, len)) {
			error = spokei_buffer_append(texts, at, len);
			if (error == 0)
				error = spokei_buffer_append(texts, "", 1);
			*ret_count += error == 0;
		}
		at += len + 1;
	}
	return error;
}

static int read_list(const struct spokei_cache *cache, struct spokei_buffer *texts,
		     size_t *ret_count)
{
	struct spokei_buffer text;
	const char *begin;
	size_t len;
	int error;

	spokei_buffer_init(&text, cache->engine->env, SPOKEI_CACHE_MAX);
	error = read_file(cache, &text);
	begin = (const char *)spokei_buffer_data(&text);
	len = spokei_buffer_len(&text);
	if (len >= cache->head_len && memcmp(begin, cache->head, cache->head_len) == 0)
		error = read_lines(begin + cache->head_len, begin + len, texts, ret_count);
	else if (error == SPOKE_OK && len > 0)
		complain(cache, SPOKE_EINVAL,
			 "belongs to another service; ignored, and will be replaced");
	spokei_buffer_fini(&text);
	return error;
}

static struct spokei_cache *make(struct spoke_engine *engine, const char *path, const char *service)
{
	size_t path_size = strlen(path) + 1;
	size_t name_len = spoke_url_encode(service, strlen(service), NULL, 0);
	size_t head_len = strlen(HEAD) + name_len + 1;
	struct spokei_cache *cache;
	size_t size = sizeof(*cache) + path_size + head_len + 1;
	char *head;

	cache = spokei_alloc(engine->env, 1, size);
	if (cache == NULL)
		return NULL;
	cache->engine = engine;
	cache->size = size;
	memcpy(cache->texts, path, path_size);
	cache->path = cache->texts;
	head = cache->texts + path_size;
	(void)snprintf(head, head_len, "%s", HEAD);
	(void)spoke_url_encode(service, strlen(service), head + strlen(HEAD), name_len + 1);
	head[head_len - 1] = '\n';
	cache->head = head;
	cache->head_len = head_len;
	spokei_buffer_init(&cache->next, engine->env, SPOKEI_CACHE_MAX);
	cache->current = cache->next;
	return cache;
}

int spokei_cache_open(struct spoke_engine *engine, const char *path, const char *service,
		      struct spokei_buffer *texts, size_t *ret_count,
		      struct spokei_cache **ret_cache)
{
	struct spokei_cache *cache = make(engine, path, service);
	int error = cache ? read_list(cache, texts, ret_count) : SPOKE_ENOMEM;

	if (error)
		spokei_cache_free(cache);
	else
		*ret_cache = cache;
	return error;
}
