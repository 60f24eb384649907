/* SPDX-License-Identifier: Apache-2.0 */
/* The tickets that the records of a journal leave. */
#include "cluster/journal/replay.h"

#include "core/base/env.h"
#include "core/base/span.h"

#include <string.h>

void spokei_replay_init(struct spokei_replay *replay, const struct spoke_env *env, bool salvages)
{
	*replay = (struct spokei_replay){ .env = env, .salvages = salvages };
	spokei_map_init(&replay->by_number, env);
	spokei_list_init(&replay->tickets);
}

struct spokei_replay_ticket *spokei_replay_first(const struct spokei_replay *replay)
{
	if (spokei_list_empty(&replay->tickets))
		return NULL;
	return spoke_container_of(replay->tickets.next, struct spokei_replay_ticket, node);
}

void spokei_replay_drop(struct spokei_replay *replay, struct spokei_replay_ticket *ticket)
{
	(void)spokei_map_remove(&replay->by_number, &ticket->number, sizeof(ticket->number));
	spokei_list_remove(&ticket->node);
	replay->bytes -= ticket->size;
	spokei_free(replay->env, ticket, 1, ticket->size);
}

void spokei_replay_fini(struct spokei_replay *replay)
{
	struct spokei_replay_ticket *ticket;

	while ((ticket = spokei_replay_first(replay)) != NULL)
		spokei_replay_drop(replay, ticket);
	spokei_map_fini(&replay->by_number);
}

static struct spokei_replay_ticket *find(const struct spokei_replay *replay, uint64_t number)
{
	return spokei_map_get(&replay->by_number, &number, sizeof(number));
}

/* Keeps a copy of the mark. */
static void note_tried(struct spokei_replay_ticket *ticket, const struct spokei_record_tried *tried)
{
	ticket->open.tried = *tried;
	if (tried->mark.len)
		memcpy(ticket->mark, tried->mark.data, tried->mark.len);
	ticket->open.tried.mark.data = ticket->mark;
}

/* Reads the body that tells everything of a ticket. */
static int read_whole(struct spokei_replay_ticket *ticket, const struct spokei_record *record)
{
	int error;

	ticket->kind = record->kind;
	if (record->kind == SPOKEI_RECORD_ANSWER)
		return spokei_record_read_answer(record, &ticket->answer);
	error = spokei_record_read_open(record, &ticket->open);
	if (!error)
		note_tried(ticket, &ticket->open.tried);
	return error;
}

static int take_whole(struct spokei_replay *replay, const struct spokei_record *record)
{
	size_t size = sizeof(struct spokei_replay_ticket) + record->body.len;
	struct spokei_replay_ticket *before = find(replay, record->ticket);
	struct spokei_record copy = *record;
	struct spokei_replay_ticket *ticket;
	int error;

	if (replay->by_number.count >= SPOKEI_REPLAY_TICKETS_MAX ||
	    replay->bytes + size > SPOKEI_REPLAY_BYTES_MAX)
		return SPOKE_ELIMIT;
	ticket = spokei_alloc_unset(replay->env, size);
	if (ticket == NULL)
		return SPOKE_ENOMEM;
	memcpy(ticket->bytes, record->body.data, record->body.len);
	copy.body.data = ticket->bytes;
	error = read_whole(ticket, &copy);
	ticket->number = record->ticket;
	if (!error && before)
		spokei_replay_drop(replay, before);
	if (!error)
		error = spokei_map_add(&replay->by_number, &ticket->number, sizeof(ticket->number),
				       ticket);
	if (error) {
		spokei_free(replay->env, ticket, 1, size);
		return error;
	}
	ticket->segment = record->segment;
	ticket->record = SPOKEI_RECORD_HEAD + (uint32_t)record->body.len;
	ticket->size = size;
	spokei_list_append(&replay->tickets, &ticket->node);
	replay->bytes += size;
	return SPOKE_OK;
}

static int take_tried(struct spokei_replay *replay, const struct spokei_record *record)
{
	struct spokei_replay_ticket *ticket = find(replay, record->ticket);
	struct spokei_record_tried tried;
	int error = spokei_record_read_tried(record, &tried);

	if (!error && ticket && ticket->kind == SPOKEI_RECORD_OPEN)
		note_tried(ticket, &tried);
	return error;
}

static int take_ended(struct spokei_replay *replay, const struct spokei_record *record)
{
	struct spokei_replay_ticket *ticket = find(replay, record->ticket);
	uint32_t settlement;
	int error = spokei_record_read_ended(record, &settlement);

	if (!error && ticket)
		spokei_replay_drop(replay, ticket);
	return error;
}

int spokei_replay_take(void *arg, const struct spokei_record *record)
{
	struct spokei_replay *replay = arg;
	int error = SPOKE_OK;

	switch (record->kind) {
	case SPOKEI_RECORD_OPEN:
	case SPOKEI_RECORD_ANSWER:
		error = take_whole(replay, record);
		break;
	case SPOKEI_RECORD_TRIED:
		error = take_tried(replay, record);
		break;
	case SPOKEI_RECORD_ENDED:
		error = take_ended(replay, record);
		break;
	case SPOKEI_RECORD_BASE:
		break;
	}
	if (error == SPOKE_ECORRUPT && replay->salvages) {
		replay->skipped++;
		error = SPOKE_OK;
	}
	return error;
}
