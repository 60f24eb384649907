/* SPDX-License-Identifier: Apache-2.0 */
/* Reads answers of gateways line by line: the head, then events (SSE). */
#include "comet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds one to a counter that only this process writes. */
static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static bool begins(const char *line, size_t len, const char *with)
{
	size_t wanted = strlen(with);

	return len >= wanted && memcmp(line, with, wanted) == 0;
}

static void take_head(struct reader *reader, const struct crowd_plan *plan, const char *line,
		      size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (!reader->has_status) {
		reader->has_status = true;
		if (!begins(line, len, "HTTP/1.1 200"))
			count(&plan->tally->wrong);
	} else if (len == 0) {
		reader->has_head = true;
		count(&plan->tally->ready);
	}
}

/* Ids are epoch.number; numbers increase, and the epoch stays the same. The first id is that of the
 * event "hello", after which events follow. */
static void take_id(struct reader *reader, const struct crowd_plan *plan, const char *text)
{
	char *dot = NULL;
	uint64_t epoch = strtoull(text, &dot, 16);
	uint64_t number = *dot == '.' ? strtoull(dot + 1, NULL, 10) : 0;

	if (*dot != '.' || (reader->has_id && (epoch != reader->epoch || number <= reader->number)))
		count(&plan->tally->wrong);
	reader->has_id = true;
	(void)snprintf(reader->id, sizeof(reader->id), "%.39s", text);
	reader->epoch = epoch;
	reader->number = number;
}

static void add_sample(struct board *board, uint64_t sent_ns)
{
	uint64_t at = atomic_fetch_add(&board->samples, 1);

	if (at < SAMPLES_MAX)
		board->ns[at] = now_ns() - sent_ns;
}

/* The data of events that were pushed begins with its kind. */
static void take_data(struct reader *reader, const struct crowd_plan *plan, const char *text)
{
	reader->kind = (uint8_t)*text;
	if (*text == KIND_ONE)
		add_sample(plan->board, strtoull(text + 1, NULL, 10));
}

static void end_event(struct reader *reader, const struct crowd_plan *plan)
{
	if (reader->kind == KIND_ALL)
		count(&plan->tally->broadcasts);
	else if (reader->kind == KIND_ONE)
		count(&plan->tally->pushes);
	reader->kind = 0;
}

/* Takes a line, which ends with a NUL. */
static void take_line(struct reader *reader, const struct crowd_plan *plan, const char *line,
		      size_t len)
{
	if (!reader->has_head)
		take_head(reader, plan, line, len);
	else if (len == 0)
		end_event(reader, plan);
	else if (*line == ':')
		count(&plan->tally->comments);
	else if (begins(line, len, "data: "))
		take_data(reader, plan, line + 6);
	else if (begins(line, len, "id: "))
		take_id(reader, plan, line + 4);
	else if (begins(line, len, "event: lost"))
		count(&plan->tally->lost);
	else if (begins(line, len, "event: reconnect") || begins(line, len, "event: closed"))
		count(&plan->tally->reconnects);
}

/* Keeps the beginning of an unfinished line. */
static void keep(struct reader *reader, const char *bytes, size_t len)
{
	size_t room = sizeof(reader->carry) - 1 - reader->carried;

	if (len > room)
		len = room;
	memcpy(reader->carry + reader->carried, bytes, len);
	reader->carried = (uint8_t)(reader->carried + len);
}

void reader_take(struct reader *reader, const struct crowd_plan *plan, const char *bytes,
		 size_t len)
{
	char line[sizeof(reader->carry)];

	while (len > 0) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) : len;
		size_t used;

		if (end == NULL || reader->carried > 0)
			keep(reader, bytes, part);
		if (end == NULL)
			return;
		used = part < sizeof(line) - 1 ? part : sizeof(line) - 1;
		if (reader->carried > 0) {
			used = reader->carried;
			memcpy(line, reader->carry, used);
			reader->carried = 0;
		} else {
			memcpy(line, bytes, used);
		}
		line[used] = '\0';
		take_line(reader, plan, line, used);
		bytes += part + 1;
		len -= part + 1;
	}
}
