/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the last list of providers in a file, which is private because URLs contain tokens. */
#include "cluster/discovery/cache.h"
#include "core/base/log.h"

#include <spoke/engine.h>
#include <spoke/wheel.h>

#include "core/engine/engine.h"

#include <errno.h>
#include <stdio.h>

#define HEAD "# providers of "
#define READ_FIRST 65536u
#define SHOWN 96u /* bytes of the path in events */

/* A text with memory of its own. */
struct text {
	char *bytes; /* NULL: none */
	size_t len;
	size_t size; /* of the memory */
};

struct spokei_cache {
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	struct spoke_work work;
	struct text next;    /* to be written */
	struct text current; /* being written or last written */
	int status;          /* of the last write: 0 or a negative errno */
	bool writing;        /* the write is on a pool thread or returning from it */
	bool failing;        /* the last write failed and was logged */
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

/* --- life */

int spokei_cache_new(struct spoke_engine *engine, const char *path, const char *service,
		     struct spokei_cache **ret_cache)
{
	size_t path_size = strlen(path) + 1;
	size_t name_len = spoke_url_encode(service, strlen(service), NULL, 0);
	size_t head_len = strlen(HEAD) + name_len + 1;
	struct spokei_cache *cache;
	size_t size = sizeof(*cache) + path_size + head_len + 1;
	char *head;

	if (engine->env->files == NULL)
		return SPOKE_EUNSUPPORTED;
	if (path_size == 1)
		return SPOKE_EINVAL;
	cache = spokei_alloc(engine->env, 1, size);
	if (cache == NULL)
		return SPOKE_ENOMEM;
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
	*ret_cache = cache;
	return SPOKE_OK;
}

static void drop_text(const struct spokei_cache *cache, struct text *text)
{
	spokei_free(cache->engine->env, text->bytes, 1, text->size);
	*text = (struct text){ NULL, 0, 0 };
}

static void destroy(struct spokei_cache *cache)
{
	const struct spoke_env *env = cache->engine->env;

	(void)spoke_alarm_cancel(&cache->alarm);
	drop_text(cache, &cache->next);
	drop_text(cache, &cache->current);
	spokei_free(env, cache, 1, cache->size);
}

/* --- writing */

static void begin_to_write(struct spokei_cache *cache);

static void cache_due(struct spoke_alarm *alarm)
{
	struct spokei_cache *cache = spoke_container_of(alarm, struct spokei_cache, alarm);

	if (cache->next.bytes)
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

	cache->status = env->files->replace(env->ctx, cache->path, cache->current.bytes,
					    cache->current.len, true);
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
		drop_text(cache, &cache->current);
	if (cache->freed)
		destroy(cache);
	else if (cache->next.bytes)
		write_later(cache);
}

static void begin_to_write(struct spokei_cache *cache)
{
	struct spoke_engine *engine = cache->engine;

	SPOKE_ASSERT(!cache->writing);
	drop_text(cache, &cache->current);
	cache->current = cache->next;
	cache->next = (struct text){ NULL, 0, 0 };
	cache->work = (struct spoke_work){ .run = write_file, .done = written };
	cache->writing = engine->env->loop->offload(engine->loop, &cache->work) == 0;
	if (cache->writing)
		return;
	cache->next = cache->current;
	cache->current = (struct text){ NULL, 0, 0 };
	write_later(cache);
}

void spokei_cache_free(struct spokei_cache *cache)
{
	if (cache == NULL || cache->freed)
		return;
	if (cache->next.bytes && !cache->writing && !spokei_engine_forked(cache->engine))
		begin_to_write(cache);
	(void)spoke_alarm_cancel(&cache->alarm);
	cache->freed = true;
	if (!cache->writing)
		destroy(cache);
}

static size_t print_all(const struct spokei_cache *cache, const struct spoke_url *urls,
			size_t count, char *out, size_t size)
{
	size_t len = cache->head_len;

	if (size > 0)
		memcpy(out, cache->head, cache->head_len);
	for (size_t i = 0; i < count; i++) {
		len += spoke_url_print(&urls[i], SPOKE_URL_WHOLE, size > 0 ? out + len : NULL,
				       size > 0 ? size - len : 0);
		if (size > 0)
			out[len] = '\n';
		len++;
	}
	return len;
}

void spokei_cache_keep(struct spokei_cache *cache, const struct spoke_url *urls, size_t count)
{
	struct text text = { .len = print_all(cache, urls, count, NULL, 0) };

	if (text.len > SPOKEI_CACHE_MAX) {
		complain(cache, SPOKE_ETOOLARGE, "the list is too long to be saved");
		return;
	}
	text.size = text.len + 1;
	text.bytes = spokei_alloc_unset(cache->engine->env, text.size);
	if (text.bytes == NULL) {
		complain(cache, SPOKE_ENOMEM, "out of memory while saving the list");
		return;
	}
	(void)print_all(cache, urls, count, text.bytes, text.size);
	drop_text(cache, &cache->next);
	if (cache->current.bytes && cache->current.len == text.len &&
	    memcmp(cache->current.bytes, text.bytes, text.len) == 0) {
		drop_text(cache, &text);
		return;
	}
	cache->next = text;
	if (!cache->writing)
		write_later(cache);
}

/* --- reading */

/* Reads the file; the bytes are NULL if there is none or it is unreadable. Returns 0 or
 * SPOKE_ENOMEM. */
static int read_file(const struct spokei_cache *cache, struct text *ret_text)
{
	const struct spoke_env *env = cache->engine->env;
	struct text text = { .size = READ_FIRST };
	ssize_t got = -EFBIG;

	while (got == -EFBIG && text.size <= SPOKEI_CACHE_MAX) {
		text.bytes = spokei_alloc_unset(env, text.size);
		if (text.bytes == NULL)
			return SPOKE_ENOMEM;
		got = env->files->read(env->ctx, cache->path, text.bytes, text.size);
		if (got >= 0) {
			text.len = (size_t)got;
			*ret_text = text;
			return SPOKE_OK;
		}
		spokei_free(env, text.bytes, 1, text.size);
		text.size *= 2;
	}
	if (got == -EFBIG)
		complain(cache, SPOKE_ETOOLARGE, "too large; ignored");
	else if (got != -ENOENT)
		complain(cache, SPOKE_ESYSTEM, "cannot be read");
	*ret_text = (struct text){ NULL, 0, 0 };
	return SPOKE_OK;
}

static int read_lines(const char *at, const char *end, struct spokei_url_list *list)
{
	int error = SPOKE_OK;

	while (at < end && error == 0) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (stop == NULL)
			stop = end;
		if (stop > at && *at != '#')
			error = spokei_url_list_add(list, at, (size_t)(stop - at));
		at = stop + 1;
	}
	return error;
}

int spokei_cache_read(const struct spokei_cache *cache, struct spokei_url_list *list)
{
	struct text text;
	int error = read_file(cache, &text);

	if (error || text.bytes == NULL)
		return error;
	if (text.len < cache->head_len || memcmp(text.bytes, cache->head, cache->head_len) != 0)
		complain(cache, SPOKE_EINVAL,
			 "belongs to another service; ignored, and will be replaced");
	else
		error = read_lines(text.bytes + cache->head_len, text.bytes + text.len, list);
	drop_text(cache, &text);
	return error;
}
