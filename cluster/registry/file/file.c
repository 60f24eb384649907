/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in a file: requests, and changes of the locked file. */
#include "cluster/registry/file/file.h"

#include "cluster/registry/file/parts.h"
#include "cluster/registry/file/roster.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <errno.h>

#define LOOK_NS UINT64_C(10000000000)      /* with a watch and a file */
#define LOOK_OFTEN_NS UINT64_C(1000000000) /* without */
#define IDLE_NS UINT64_C(3600000000000)
#define LOCK_NS UINT64_C(20000000)
#define LOCK_TRIES 100u

/* --- changes */

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
	struct spokei_buffer edited;
	int error;

	if (!publishes && is_wanted(file, errand))
		return SPOKE_OK;
	spokei_buffer_init(&edited, file->engine->env, SPOKEI_ROSTER_MAX);
	error = spokei_roster_edit((const char *)spokei_buffer_data(text), spokei_buffer_len(text),
				   &errand->url, publishes ? errand->text : NULL, &edited);
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

/* Changes the locked file. `text` receives its new text. */
static int change_file(struct spokei_file *file, struct spokei_buffer *text)
{
	const struct spoke_env *env = file->engine->env;
	struct spokei_buffer before;
	int error;
	int status;

	spokei_buffer_init(&before, env, SPOKEI_ROSTER_MAX);
	error = spokei_file_read(file, &before);
	if (!error && spokei_buffer_len(&before) > 0)
		error = spokei_buffer_append(text, spokei_buffer_data(&before),
					     spokei_buffer_len(&before));
	if (!error)
		error = edit_for_all(file, text);
	if (!error && !is_same(&before, text)) {
		status = env->files->replace(env->ctx, file->path, spokei_buffer_data(text),
					     spokei_buffer_len(text), false);
		if (status)
			error = spokei_file_complain(file, "replaced", status);
	}
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

static void do_all(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;
	struct spokei_buffer text;
	int fd;
	int error = env->files->lock(env->ctx, file->path, &fd);

	file->lock_ns = UINT64_MAX;
	if (error == -EAGAIN) {
		wait_for_lock(file);
		return;
	}
	file->tries = 0;
	if (error) {
		fail_all(file, spokei_file_complain(file, "locked", error));
		return;
	}
	spokei_buffer_init(&text, env, SPOKEI_ROSTER_MAX);
	error = change_file(file, &text);
	env->files->unlock(env->ctx, fd);
	if (error) {
		spokei_buffer_fini(&text);
		fail_all(file, error);
		return;
	}
	finish_all(file);
	spokei_file_take(file, &text);
}

/* --- times */

static void clock_due(struct spoke_alarm *clock)
{
	struct spokei_file *file = spoke_container_of(clock, struct spokei_file, clock);

	/* Armed here, because it cannot fail: the wheel's place is free. */
	(void)!spoke_alarm_after(file->engine, clock, IDLE_NS, clock_due);
	spokei_engine_soon(file->engine, &file->work);
}

/* Arms the clock for the next due time. */
static void set_clock(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;
	uint64_t now_ns = env->now(env->ctx);
	uint64_t due_ns = now_ns + IDLE_NS;

	if (file->looking && file->look_ns < due_ns)
		due_ns = file->look_ns;
	if (file->settle_ns < due_ns)
		due_ns = file->settle_ns;
	if (file->lock_ns < due_ns)
		due_ns = file->lock_ns;
	(void)!spoke_alarm_after(file->engine, &file->clock, due_ns > now_ns ? due_ns - now_ns : 0,
				 clock_due);
}

static bool wants_change(struct spokei_file *file)
{
	struct spoke_list *all = &file->errands.all;
	struct spoke_list *at = all->next;

	while (at != all && !spokei_errand_of(at)->todo)
		at = at->next;
	return at != all;
}

/* Returns whether a request depends on the contents of the file. */
static bool wants_look(struct spokei_file *file)
{
	struct spoke_list *all = &file->errands.all;
	struct spoke_list *at = all->next;

	while (at != all && !spokei_errand_of(at)->holds &&
	       spokei_errand_of(at)->kind != SPOKEI_ERRAND_SUBSCRIBE)
		at = at->next;
	return at != all;
}

static void look_if_due(struct spokei_file *file, uint64_t now_ns)
{
	bool anyway = !file->looking || file->look_ns <= now_ns;

	if (!anyway && !file->asked && file->settle_ns > now_ns)
		return;
	/* Watches before reading, so that no later change is missed. */
	if (anyway)
		spokei_file_watch(file);
	file->looking = true;
	file->settle_ns = UINT64_MAX;
	spokei_file_look(file);
	file->look_ns = now_ns +
			(file->watching && file->found && file->known ? LOOK_NS : LOOK_OFTEN_NS);
}

static void work(struct spokei_task *task)
{
	struct spokei_file *file = spoke_container_of(task, struct spokei_file, work);
	const struct spoke_env *env = file->engine->env;
	uint64_t now_ns = env->now(env->ctx);

	if (!wants_change(file))
		file->lock_ns = UINT64_MAX;
	else if (file->lock_ns == UINT64_MAX || file->lock_ns <= now_ns)
		do_all(file);
	if (wants_look(file)) {
		look_if_due(file, now_ns);
	} else {
		spokei_file_unwatch(file);
		file->looking = false;
		file->settle_ns = UINT64_MAX;
	}
	set_clock(file);
}

/* --- the registry */

static int publish(void *registry, uint64_t intent, const char *service, const char *url)
{
	struct spokei_file *file = registry;
	struct spokei_errand *errand;
	int error = spokei_errands_add(&file->errands, SPOKEI_ERRAND_PUBLISH, intent, url, &errand);

	if (error)
		return error;
	errand->todo = !errand->answered;
	if (errand->todo && !spokei_roster_provides(&errand->url, service)) {
		spokei_event(
			file->engine, SPOKE_EINVAL,
			"registry file %s: the URL of a provider must name its service, as path "
			"or as interface",
			file->shown);
		spokei_errand_done(&file->errands, errand, SPOKE_EINVAL);
	}
	spokei_engine_soon(file->engine, &file->work);
	return SPOKE_OK;
}

static int withdraw(void *registry, uint64_t intent, uint64_t which)
{
	struct spokei_file *file = registry;
	struct spokei_errand *errand;
	int error = spokei_errands_undo(&file->errands, SPOKEI_ERRAND_WITHDRAW, intent, which,
					&errand);

	if (error)
		return error;
	if (errand->url.scheme)
		errand->todo = true;
	else
		spokei_errand_done(&file->errands, errand, SPOKE_OK);
	spokei_engine_soon(file->engine, &file->work);
	return SPOKE_OK;
}

static int subscribe(void *registry, uint64_t intent, const char *service)
{
	struct spokei_file *file = registry;
	struct spokei_errand *errand;
	int error = spokei_errands_add(&file->errands, SPOKEI_ERRAND_SUBSCRIBE, intent, service,
				       &errand);

	if (error)
		return error;
	file->asked = true;
	spokei_engine_soon(file->engine, &file->work);
	return SPOKE_OK;
}

static int unsubscribe(void *registry, uint64_t intent, uint64_t which)
{
	struct spokei_file *file = registry;
	struct spokei_errand *errand;
	int error = spokei_errands_undo(&file->errands, SPOKEI_ERRAND_UNSUBSCRIBE, intent, which,
					&errand);

	if (error)
		return error;
	spokei_errand_done(&file->errands, errand, SPOKE_OK);
	spokei_engine_soon(file->engine, &file->work);
	return SPOKE_OK;
}

static void reap(struct spokei_task *task)
{
	struct spokei_file *file = spoke_container_of(task, struct spokei_file, reap);
	const struct spoke_env *env = file->engine->env;

	spokei_errands_fini(&file->errands);
	spokei_buffer_fini(&file->text);
	spokei_free(env, file->path, strlen(file->path) + 1, 1);
	spokei_free(env, file, 1, sizeof(*file));
}

static void close_file(void *registry)
{
	struct spokei_file *file = registry;

	spokei_errands_close(&file->errands);
	spokei_task_drop(&file->work);
	(void)spoke_alarm_cancel(&file->clock);
	spokei_file_unwatch(file);
	spokei_engine_dead(file->engine, &file->reap);
}

static int check_url(struct spoke_engine *engine, const struct spoke_url *url)
{
	if (engine->env->files == NULL) {
		spokei_event(engine, SPOKE_EUNSUPPORTED,
			     "registry file: this environment has no files");
		return SPOKE_EUNSUPPORTED;
	}
	if (url->host == NULL || url->host[0] != '\0' || url->path[0] == '\0') {
		spokei_event(engine, SPOKE_EINVAL,
			     "registry file: must be on this machine, with an absolute path, e.g. "
			     "file:///run/spoke/providers");
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

static int open_file(struct spoke_engine *engine, const struct spoke_url *url,
		     const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	const struct spoke_env *env = engine->env;
	struct spokei_file *file;
	size_t len;
	int error = check_url(engine, url);

	if (error)
		return error;
	len = strlen(url->path);
	error = SPOKE_ENOMEM;
	file = spokei_alloc(env, 1, sizeof(*file));
	if (file == NULL)
		goto err_after_check;
	file->path = spokei_alloc_unset(env, len + 2);
	if (file->path == NULL)
		goto err_after_alloc;
	file->path[0] = '/';
	memcpy(file->path + 1, url->path, len + 1);
	(void)spokei_log_escape(file->shown, sizeof(file->shown), file->path, len + 1);
	file->engine = engine;
	file->work.run = work;
	file->reap.run = reap;
	file->settle_ns = file->lock_ns = UINT64_MAX;
	error = spoke_alarm_after(engine, &file->clock, IDLE_NS, clock_due);
	if (error)
		goto err_after_path;
	spokei_buffer_init(&file->text, env, SPOKEI_ROSTER_MAX);
	spokei_errands_init(&file->errands, engine, up, arg);
	*ret_registry = file;
	return SPOKE_OK;

err_after_path:
	spokei_free(env, file->path, len + 2, 1);
err_after_alloc:
	spokei_free(env, file, 1, sizeof(*file));
err_after_check:
	spokei_event(engine, error, "registry file: cannot be opened");
	return error;
}

const struct spoke_registry spokei_registry_file = {
	.scheme = "file",
	.open = open_file,
	.publish = publish,
	.withdraw = withdraw,
	.subscribe = subscribe,
	.unsubscribe = unsubscribe,
	.close = close_file,
};
