/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the locked file: for all requests that wait for one, and without the dead. */
#include "cluster/registry/file/parts.h"
#include "core/engine/engine.h"

#include <errno.h>

#define LOCK_NS UINT64_C(20000000)
#define LOCK_TRIES 100u

static void fail_all(struct spokei_file *file, int error)
{
	struct spoke_list *all = &file->errands.all;

	for (struct spoke_list *at = all->next; at != all; at = at->next)
		if (spokei_errand_of(at)->todo)
			spokei_errand_done(&file->errands, spokei_errand_of(at), error);
}

/* Returns whether another request publishes the provider that this one withdraws. */
static bool is_wanted(struct spokei_file *file, const struct spokei_errand *errand)
{
	struct spoke_list *all = &file->errands.all;

	for (struct spoke_list *at = all->next; at != all; at = at->next) {
		const struct spokei_errand *other = spokei_errand_of(at);

		if (other->kind == SPOKEI_ERRAND_PUBLISH && (other->todo || other->holds) &&
		    spokei_roster_same(&other->url, &errand->url))
			return true;
	}
	return false;
}

/* Changes the text for one request. Leaves a text that would become too large unchanged. */
static int edit_for(struct spokei_file *file, struct spokei_errand *errand,
		    struct spokei_buffer *text)
{
	bool publishes = errand->kind == SPOKEI_ERRAND_PUBLISH;
	struct spokei_roster_entry entry = {
		.url = &errand->url,
		.text = publishes ? errand->text : NULL,
		.mark = file->mark_fd >= 0 ? file->mark : NULL,
	};
	struct spokei_buffer edited;
	int error;

	if (!publishes && is_wanted(file, errand))
		return SPOKE_OK;
	spokei_buffer_init(&edited, file->engine->env, SPOKEI_ROSTER_MAX);
	error = spokei_roster_edit((const char *)spokei_buffer_data(text), spokei_buffer_len(text),
				   &entry, &edited);
	if (error) {
		spokei_buffer_fini(&edited);
		return error;
	}
	spokei_buffer_fini(text);
	*text = edited;
	return SPOKE_OK;
}

static int edit_for_all(struct spokei_file *file, struct spokei_buffer *text)
{
	struct spoke_list *all = &file->errands.all;

	for (struct spoke_list *at = all->next; at != all; at = at->next) {
		struct spokei_errand *errand = spokei_errand_of(at);
		int error = errand->todo ? edit_for(file, errand, text) : SPOKE_OK;

		if (error == SPOKE_ETOOLARGE) {
			spokei_event(file->engine, error,
				     "registry file %s is full; at most %u bytes", file->shown,
				     SPOKEI_ROSTER_MAX);
			spokei_errand_done(&file->errands, errand, error);
		} else if (error) {
			return error;
		}
	}
	return SPOKE_OK;
}

static bool is_same(const struct spokei_buffer *one, const struct spokei_buffer *other)
{
	size_t len = spokei_buffer_len(one);

	return len == spokei_buffer_len(other) &&
	       (len == 0 || memcmp(spokei_buffer_data(one), spokei_buffer_data(other), len) == 0);
}

bool spokei_file_wants_change(struct spokei_file *file)
{
	struct spoke_list *all = &file->errands.all;
	struct spoke_list *at = all->next;

	while (at != all && !spokei_errand_of(at)->todo)
		at = at->next;
	return at != all;
}

bool spokei_file_wants_mark(struct spokei_file *file)
{
	struct spoke_list *all = &file->errands.all;

	for (struct spoke_list *at = all->next; at != all; at = at->next) {
		const struct spokei_errand *errand = spokei_errand_of(at);

		if (errand->kind == SPOKEI_ERRAND_PUBLISH && (errand->todo || errand->holds))
			return true;
	}
	return false;
}

/* Writes the text over the locked file. A failure is only told if a request waits for it. */
static int write_file(struct spokei_file *file, const struct spokei_buffer *text)
{
	const struct spoke_env *env = file->engine->env;
	int status = env->files->replace(env->ctx, file->path, spokei_buffer_data(text),
					 spokei_buffer_len(text), false);

	if (status == 0)
		return SPOKE_OK;
	return spokei_file_wants_change(file) ? spokei_file_complain(file, "replaced", status)
					      : SPOKE_ESYSTEM;
}

/* Changes the locked file. `text` receives its new text. */
static int change_file(struct spokei_file *file, struct spokei_buffer *text)
{
	const struct spoke_env *env = file->engine->env;
	struct spokei_buffer before;
	unsigned dead = 0;
	int error;

	spokei_buffer_init(&before, env, SPOKEI_ROSTER_MAX);
	spokei_file_forget(file);
	error = spokei_file_read(file, &before);
	if (!error)
		error = spokei_roster_sift((const char *)spokei_buffer_data(&before),
					   spokei_buffer_len(&before), spokei_file_is_dead, file,
					   text, &dead);
	if (!error)
		error = edit_for_all(file, text);
	if (!error && !is_same(&before, text))
		error = write_file(file, text);
	file->clear = file->clear || dead > 0;
	if (!error && dead > 0)
		spokei_event(file->engine, SPOKE_OK,
			     "registry file %s: removed the lines of processes that have ended: %u",
			     file->shown, dead);
	spokei_buffer_fini(&before);
	return error;
}

static void finish_all(struct spokei_file *file)
{
	struct spoke_list *all = &file->errands.all;

	for (struct spoke_list *at = all->next; at != all; at = at->next) {
		struct spokei_errand *errand = spokei_errand_of(at);

		if (!errand->todo)
			continue;
		errand->holds = errand->kind == SPOKEI_ERRAND_PUBLISH;
		spokei_errand_done(&file->errands, errand, SPOKE_OK);
	}
}

/* Another process holds the lock. */
static void wait_for_lock(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;

	if (++file->tries < LOCK_TRIES) {
		file->lock_ns = env->now(env->ctx) + LOCK_NS;
		return;
	}
	file->tries = 0;
	spokei_event(
		file->engine, SPOKE_EUNAVAILABLE,
		"registry file %s: locked by another process for 2 s; find the process that has "
		"%s.lock open",
		file->shown, file->shown);
	fail_all(file, SPOKE_EUNAVAILABLE);
}

/* Changes the locked file, and removes the files of dead processes beside it. */
static int do_locked(struct spokei_file *file, struct spokei_buffer *text)
{
	const struct spoke_env *env = file->engine->env;
	bool fresh = file->mark_fd < 0;
	int status = spokei_file_wants_mark(file) ? spokei_file_mark(file) : 0;
	int error = status ? spokei_file_complain(file, "marked", status) : change_file(file, text);

	/* A file that cannot be removed is left to the next process. */
	if (!error && (fresh || file->clear) && env->files->sweep)
		(void)!env->files->sweep(env->ctx, file->path);
	return error;
}

void spokei_file_change(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;
	struct spokei_buffer text;
	int fd;
	int error = env->files->lock(env->ctx, file->path, &fd);

	file->lock_ns = UINT64_MAX;
	if (error == -EAGAIN && spokei_file_wants_change(file)) {
		wait_for_lock(file);
		return;
	}
	file->tries = 0;
	if (error) {
		file->clear = false;
		if (spokei_file_wants_change(file))
			fail_all(file, spokei_file_complain(file, "locked", error));
		return;
	}
	spokei_buffer_init(&text, env, SPOKEI_ROSTER_MAX);
	error = do_locked(file, &text);
	env->files->unlock(env->ctx, fd);
	file->clear = false;
	if (error) {
		spokei_buffer_fini(&text);
		fail_all(file, error);
		return;
	}
	finish_all(file);
	spokei_file_take(file, &text);
}
