/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the functions that run first in a turn. */
#include "core/engine/early.h"

/* Each function is back on the list before it is called, so that it can leave from there. The
 * functions that follow can leave, too. */
void spokei_early_run(struct spoke_engine *engine)
{
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&engine->early, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spoke_list *node = batch.next;
		struct spokei_early *early = spoke_container_of(node, struct spokei_early, node);

		spokei_list_unlink(node);
		spokei_list_append(&engine->early, node);
		if (SPOKEI_LIKELY(!spokei_engine_forked(engine)))
			early->begin(early);
	}
}
