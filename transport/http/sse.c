/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Server-Sent Events, field by field; an event is measured by the same code. */
#include "transport/http/sse.h"

#include "timer/base.h"

#include <spoke/error.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NUMBER 11u /* bytes of a retry time, with the NUL */

/* Writes to `out`, or only counts if it is NULL. */
struct writer {
	char *out;
	size_t len;
};

static void put(struct writer *writer, const void *bytes, size_t len)
{
	if (writer->out != NULL && len > 0)
		memcpy(writer->out + writer->len, bytes, len);
	writer->len += len;
}

static void put_field(struct writer *writer, const char *name, const void *value, size_t len)
{
	put(writer, name, strlen(name));
	put(writer, ": ", 2);
	put(writer, value, len);
	put(writer, "\n", 1);
}

/* Writes one field for each line; after the last line end follows an empty line. */
static void put_data(struct writer *writer, struct spoke_span data)
{
	const char *line = data.data;
	const char *end = line + data.len;
	const char *at = line;

	for (; at < end; at++) {
		if (*at != '\n' && *at != '\r')
			continue;
		put_field(writer, "data", line, (size_t)(at - line));
		if (*at == '\r' && at + 1 < end && at[1] == '\n')
			at++;
		line = at + 1;
	}
	put_field(writer, "data", line, (size_t)(end - line));
}

static void put_event(struct writer *writer, const struct spokei_sse_event *event)
{
	char number[NUMBER];

	if (event->id.data != NULL)
		put_field(writer, "id", event->id.data, event->id.len);
	if (event->name.data != NULL)
		put_field(writer, "event", event->name.data, event->name.len);
	if (event->retry_ms > 0) {
		int len = snprintf(number, sizeof(number), "%" PRIu32, event->retry_ms);

		put_field(writer, "retry", number, (size_t)len);
	}
	if (event->data.data != NULL)
		put_data(writer, event->data);
	put(writer, "\n", 1);
}

static bool is_one_line(struct spoke_span text)
{
	return text.len == 0 || (memchr(text.data, '\n', text.len) == NULL &&
				 memchr(text.data, '\r', text.len) == NULL &&
				 memchr(text.data, '\0', text.len) == NULL);
}

int spokei_sse_size(const struct spokei_sse_event *event, size_t *ret_size)
{
	struct writer writer = { 0 };

	if (!is_one_line(event->id) || !is_one_line(event->name))
		return SPOKE_EINVAL;
	put_event(&writer, event);
	*ret_size = writer.len;
	return SPOKE_OK;
}

size_t spokei_sse_write(const struct spokei_sse_event *event, char *out)
{
	struct writer writer = { .out = out };

	SPOKE_ASSERT(is_one_line(event->id) && is_one_line(event->name));
	put_event(&writer, event);
	return writer.len;
}
