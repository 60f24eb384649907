/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the sources that are awake, and has them sleep. */
#include "core/engine/source.h"

static struct spokei_source *source_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_source, node);
}

/* Takes the first one out and puts it at the end, so that the next look begins behind it. */
static struct spokei_source *rotate(struct spoke_engine *engine)
{
	struct spoke_list *first = engine->sources.next;

	if (first->next != &engine->sources) {
		spokei_list_remove(first);
		spokei_list_append(&engine->sources, first);
	}
	return source_of(first);
}

unsigned spokei_sources_serve(struct spoke_engine *engine)
{
	struct spoke_list *last = engine->sources.prev;
	unsigned fresh = 0;

	for (unsigned i = 0; i < SPOKEI_SOURCE_TURN && !spokei_list_empty(&engine->sources); i++) {
		struct spokei_source *source = rotate(engine);
		bool is_last = &source->node == last;

		if (source->has(source)) {
			fresh += source->turn != engine->turn;
			source->turn = engine->turn;
			source->ready(source);
		}
		/* Others may have ended: then one is asked twice, or the next turn goes on. The
		 * memory of the others belongs to the parent of a forked child. */
		if (is_last || spokei_engine_forked(engine))
			break;
	}
	return fresh;
}

enum spoke_loop_found spokei_sources_look(struct spoke_engine *engine)
{
	struct spokei_source *first = NULL;

	if (spokei_list_empty(&engine->sources))
		return SPOKE_LOOP_ALL_TELL;
	for (unsigned i = 0; i < SPOKEI_SOURCE_LOOKS; i++) {
		struct spokei_source *source = source_of(engine->sources.next);

		if (source == first)
			break;
		if (source->has(source))
			return SPOKE_LOOP_COME;
		first = first ? first : source;
		(void)rotate(engine);
	}
	return SPOKE_LOOP_NOTHING;
}

bool spokei_sources_lull(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->sources)) {
		struct spokei_source *source = source_of(engine->sources.next);

		if (source->has(source) || !source->sleep(source))
			return true;
		spokei_list_remove(&source->node);
	}
	return false;
}
