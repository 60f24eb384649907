/* SPDX-License-Identifier: Apache-2.0 */
/* Adds, removes and notifies the members of an engine. */
#include "core/engine/roll.h"

#include "core/engine/engine.h"

void spokei_roll_add(struct spoke_engine *engine, struct spokei_member *member)
{
	SPOKE_ASSERT(member->node.next == NULL);
	member->drained = false;
	member->closed = false;
	spokei_list_append(&engine->roll, &member->node);
	if (engine->ending)
		spokei_engine_soon(engine, &engine->drain);
}

void spokei_roll_drop(struct spoke_engine *engine, struct spokei_member *member)
{
	(void)engine;
	if (member->node.next != NULL)
		spokei_list_remove(&member->node);
}

void spokei_roll_retire(struct spoke_engine *engine, struct spokei_member *member)
{
	spokei_roll_drop(engine, member);
	spokei_list_append(&engine->retired, &member->node);
}

static void close_member(struct spokei_member *member)
{
	if (member->closed)
		return;
	member->closed = true;
	member->drained = true;
	member->close(member);
}

static void drain_member(struct spokei_member *member)
{
	if (member->drained)
		return;
	if (member->drain == NULL) {
		close_member(member);
		return;
	}
	member->drained = true;
	member->drain(member);
}

static void wake_member(struct spokei_member *member)
{
	if (member->woke && !member->closed)
		member->woke(member);
}

/* Each member is back on the roll before it is notified, so that it can leave from there; so are
 * the members whose turn has not come. */
static void tell_all(struct spoke_engine *engine, void (*tell)(struct spokei_member *member))
{
	struct spoke_list batch;

	spokei_list_init(&batch);
	spokei_list_move(&engine->roll, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spoke_list *node = batch.next;

		spokei_list_unlink(node);
		spokei_list_append(&engine->roll, node);
		tell(spoke_container_of(node, struct spokei_member, node));
	}
}

void spokei_roll_close_all(struct spoke_engine *engine)
{
	tell_all(engine, close_member);
}

void spokei_roll_wake_all(struct spoke_engine *engine)
{
	tell_all(engine, wake_member);
}

void spokei_roll_free_all(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->retired)) {
		struct spokei_member *member = spoke_container_of(spokei_list_first(
									  &engine->retired),
								  struct spokei_member, node);

		spokei_list_remove(&member->node);
		member->free(member);
	}
}

void spokei_roll_end(struct spokei_task *task)
{
	struct spoke_engine *engine = spoke_container_of(task, struct spoke_engine, drain);

	if (engine->closing)
		spokei_roll_close_all(engine);
	else
		tell_all(engine, drain_member);
}
