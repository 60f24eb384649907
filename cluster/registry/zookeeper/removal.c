/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes a published node if it belongs to this session. All earlier requests of the entry have
 * been answered, because a session keeps their order. A failed removal stays until its owner
 * requests it again.
 */
#include "cluster/registry/zookeeper/parts.h"

#include <string.h>

struct removal {
	struct spokei_zoo_item item;
	bool deleting;
};

static struct removal *removal_of(struct spokei_zoo_item *item)
{
	return spoke_container_of(item, struct removal, item);
}

static void removal_begin(struct spokei_zoo_item *item)
{
	removal_of(item)->deleting = false;
	spokei_zoo_item_ask(item, SPOKEI_ZOO_EXISTS, item->path, NULL);
}

static void end(struct spokei_zoo_item *item)
{
	item->over = true;
	if (item->doubtful)
		spokei_zoo_item_note(item);
	else
		spokei_zoo_item_done(item);
}

static void removal_answered(struct spokei_zoo_item *item, const struct spokei_zoo_answer *answer)
{
	struct removal *removal = removal_of(item);
	bool gone = answer->code == ZNONODE || (removal->deleting && answer->code == ZOK);

	if (answer->code && !gone) {
		spokei_zoo_item_fail(item, spokei_zoo_fold(answer->code));
	} else if (gone ||
		   !spokei_zoo_handle_owns(item->asker.handle, answer->stat->ephemeralOwner)) {
		end(item);
	} else {
		removal->deleting = true;
		spokei_zoo_item_ask(item, SPOKEI_ZOO_DELETE, item->path, NULL);
	}
}

const struct spokei_zoo_kind spokei_zoo_removal = {
	.verb = "withdraw",
	.begin = removal_begin,
	.answered = removal_answered,
	.stays = true,
	.size = sizeof(struct removal),
};

const struct spokei_zoo_kind spokei_zoo_note = {
	.verb = "end",
	.size = sizeof(struct spokei_zoo_item),
};

struct spokei_zoo_item *spokei_zoo_remove(struct spokei_zoo_item *entry)
{
	struct spokei_zoo_item *item = spokei_zoo_item_new(entry->registry, &spokei_zoo_removal,
							   entry->intent, NULL, NULL, NULL);

	if (item == NULL)
		return NULL;
	item->path = entry->path;
	item->path_size = entry->path_size;
	item->folder_len = entry->folder_len;
	entry->path = NULL;
	spokei_zoo_item_free(entry);
	return item;
}

void spokei_zoo_doubt(struct spokei_zoo_item *entry)
{
	struct spokei_zoo_item *item;

	spokei_zoo_keep_node(entry->registry, entry->path);
	item = spokei_zoo_remove(entry);
	if (item == NULL) {
		spokei_zoo_item_free(entry);
		return;
	}
	item->intent = 0;
	item->doubtful = true;
	spokei_zoo_item_try(item);
}

void spokei_zoo_keep_node(struct spokei_zoo_registry *registry, const char *path)
{
	struct spoke_list *next;

	for (struct spoke_list *at = registry->items.next; at != &registry->items; at = next) {
		struct spokei_zoo_item *item = spoke_container_of(at, struct spokei_zoo_item, node);

		next = at->next;
		if (item->kind == &spokei_zoo_removal && item->asked == 0 &&
		    strcmp(item->path, path) == 0)
			spokei_zoo_item_free(item);
	}
}
