/* SPDX-License-Identifier: Apache-2.0 */
/* Initialises, changes and ends directories. */
#include "cluster/endpoints/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"

static void set(struct spokei_directory *directory,
		const struct spokei_directory_settings *settings)
{
	directory->settings = *settings;
	if (settings->connections == 0)
		directory->settings.connections = 1;
	if (settings->actives_max == 0)
		directory->settings.actives_max = UINT32_MAX;
}

void spokei_directory_change(struct spokei_directory *directory,
			     const struct spokei_directory_settings *settings)
{
	set(directory, settings);
	spokei_directory_refresh_later(directory);
}

/* --- the end */

void spokei_directory_end(struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	if (directory->ended)
		return;
	directory->ended = true;
	(void)spoke_wheel_cancel(directory->engine->wheel, &directory->wake);
	directory->sole = NULL;
	directory->stale = true;
	spokei_task_drop(&directory->news);
	for (size_t i = 0; i < candidates->shown.count; i++)
		spokei_endpoint_end(candidates->endpoints[i]);
	for (struct spoke_list *node = directory->gone.next; node != &directory->gone;
	     node = node->next)
		spokei_endpoint_end(spoke_container_of(node, struct spokei_endpoint, node));
}

void spokei_directory_rest(struct spokei_directory *directory, bool calls)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	directory->resting = true;
	spokei_directory_refresh_later(directory);
	for (size_t i = 0; i < candidates->shown.count; i++)
		spokei_endpoint_rest(candidates->endpoints[i], calls);
}

/* --- life */

static void tell_able(struct spokei_task *task)
{
	struct spokei_directory *directory = spoke_container_of(task, struct spokei_directory,
								news);
	uint32_t able;
	uint32_t fresh;

	spokei_directory_count(directory, NULL, 0, &able, &fresh);
	if (!directory->barren && directory->up->able)
		directory->up->able(directory->up_arg);
}

void spokei_directory_init(struct spokei_directory *directory, struct spokei_link *link,
			   const struct spokei_directory_settings *settings,
			   const struct spokei_directory_up *up, void *up_arg)
{
	const struct spoke_env *env = link->engine->env;

	*directory = (struct spokei_directory){
		.engine = link->engine,
		.link = link,
		.up = up,
		.up_arg = up_arg,
		.list_id = 1,
		.version = 1,
		.best = SPOKEI_RANK_NONE,
		.stale = true,
		.news = { .run = tell_able },
	};
	set(directory, settings);
	env->dice(env->ctx, &directory->dice, sizeof(directory->dice));
	spokei_candidates_init(&directory->candidates, env);
	spokei_list_init(&directory->gone);
}

void spokei_directory_fini(struct spokei_directory *directory)
{
	spokei_directory_forget(directory);
	while (!spokei_list_empty(&directory->gone)) {
		struct spoke_list *node = spokei_list_first(&directory->gone);

		spokei_list_remove(node);
		spokei_endpoint_free(spoke_container_of(node, struct spokei_endpoint, node));
	}
	if (directory->round > 0)
		spokei_map_fini(&directory->keys);
	spokei_candidates_fini(&directory->candidates);
}
