/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in a file: requests and times. */
#include "cluster/registry/file/file.h"

#include "cluster/registry/file/parts.h"
#include "cluster/registry/file/roster.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#define LOOK_NS UINT64_C(10000000000)      /* with a watch and a file */
#define LOOK_OFTEN_NS UINT64_C(1000000000) /* without */
#define IDLE_NS UINT64_C(3600000000000)

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

	if (!spokei_file_wants_change(file) && !file->clear)
		file->lock_ns = UINT64_MAX;
	else if (file->lock_ns == UINT64_MAX || file->lock_ns <= now_ns)
		spokei_file_change(file);
	if (wants_look(file)) {
		look_if_due(file, now_ns);
	} else {
		spokei_file_unwatch(file);
		file->looking = false;
		file->settle_ns = UINT64_MAX;
	}
	if (!spokei_file_wants_mark(file))
		spokei_file_unmark(file);
	if (file->clear)
		spokei_engine_soon(file->engine, &file->work);
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
	spokei_free(env, file->marked, strlen(file->path) + 1 + SPOKEI_ROSTER_MARK, 1);
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
	spokei_file_unmark(file);
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
	file->marked = spokei_alloc(env, 1, len + 2 + SPOKEI_ROSTER_MARK);
	if (file->marked == NULL)
		goto err_after_path;
	memcpy(file->marked, file->path, len + 1);
	file->marked[len + 1] = '.';
	file->mark_fd = -1;
	(void)spokei_log_escape_end(file->shown, sizeof(file->shown), file->path, len + 1);
	file->engine = engine;
	file->work.run = work;
	file->reap.run = reap;
	file->settle_ns = file->lock_ns = UINT64_MAX;
	error = spoke_alarm_after(engine, &file->clock, IDLE_NS, clock_due);
	if (error)
		goto err_after_marked;
	spokei_buffer_init(&file->text, env, SPOKEI_ROSTER_MAX);
	spokei_errands_init(&file->errands, engine, up, arg);
	*ret_registry = file;
	return SPOKE_OK;

err_after_marked:
	spokei_free(env, file->marked, len + 2 + SPOKEI_ROSTER_MARK, 1);
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
