/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of unsent requests, and what they count for. */
#include "transport/conn/unsent.h"

#include "core/base/env.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define FRAME_BASE 128u /* about the size of a small request on the wire */

/* Returns the bytes that an unsent request counts for: about the size of its frame. */
static size_t weight_of(const struct spokei_message *message)
{
	return FRAME_BASE + message->args.len + message->attachments.len;
}

void spokei_unsent_free(struct spokei_pending *pending)
{
	struct spokei_unsent *unsent = pending->unsent;
	struct spokei_conn *conn = pending->conn;
	const struct spoke_env *env = spokei_conn_engine(conn)->env;

	if (unsent == NULL)
		return;
	pending->unsent = NULL;
	conn->unsent_requests -= weight_of(&unsent->message);
	conn->link->queued -= weight_of(&unsent->message);
	spokei_free(env, unsent, 1, unsent->size);
}

/* Copies a span to *at, and moves *at behind it. Returns the copy. */
static struct spoke_span put_span(unsigned char **at, struct spoke_span span)
{
	unsigned char *copy = *at;

	if (span.len == 0)
		return spokei_span(NULL, 0);
	memcpy(copy, span.data, span.len);
	*at += span.len;
	return spokei_span(copy, span.len);
}

static struct spokei_unsent *make_unsent(const struct spoke_env *env,
					 const struct spokei_message *message)
{
	const struct spoke_span pairs = { message->attachments.data, message->attachments.len };
	size_t size = sizeof(struct spokei_unsent) + message->args.len + pairs.len +
		      message->service.len + message->version.len + message->group.len;
	struct spokei_unsent *unsent = spokei_alloc_unset(env, size);
	unsigned char *at;

	if (unsent == NULL)
		return NULL;
	unsent->message = *message;
	unsent->size = size;
	unsent->guard = NULL;
	unsent->error = SPOKE_OK;
	at = unsent->bytes;
	unsent->message.args = put_span(&at, message->args);
	unsent->message.attachments.data = put_span(&at, pairs).data;
	/* The method may rename these three for another endpoint before this request is sent, and
	 * rebuild its prefix for another wire. */
	unsent->message.service = put_span(&at, message->service);
	unsent->message.version = put_span(&at, message->version);
	unsent->message.group = put_span(&at, message->group);
	unsent->message.prefix = spokei_span(NULL, 0);
	return unsent;
}

/* Unsent requests count like queued ones, so there is room when they are queued. */
int spokei_unsent_keep(struct spokei_conn *conn, struct spokei_pending *pending,
		       const struct spokei_message *message)
{
	const struct spokei_link_limits *limits = &conn->link->limits;
	size_t waits = conn->unsent_requests + spokei_buffer_len(&conn->out.out);
	size_t len = weight_of(message);

	if (waits > limits->out_max || len > limits->out_max - waits)
		return SPOKE_ELIMIT;
	pending->unsent = make_unsent(spokei_conn_engine(conn)->env, message);
	if (pending->unsent == NULL)
		return SPOKE_ENOMEM;
	conn->unsent_requests += len;
	conn->link->queued += len;
	return SPOKE_OK;
}
