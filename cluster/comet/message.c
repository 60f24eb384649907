/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a gateway: their ids, their encoded forms, and the rings that keep them. */
#include "cluster/comet/comet.h"
#include "core/base/span.h"
#include "core/text/encoding.h"
#include "transport/http/response.h"
#include "transport/http/websocket.h"

#include <spoke/json.h>

#include <inttypes.h>
#include <stdio.h>

#define RING_FIRST 4u
#define EPOCH_DIGITS 16u

/* --- memory and numbers */

/* Returns the bytes that are left. The limit may have become less than the bytes in use. */
static uint64_t room_of(const struct spoke_comet *comet)
{
	const uint64_t used = comet->figures[SPOKE_COMET_FIGURE_BYTES];

	return used < comet->with.bytes_max ? comet->with.bytes_max - used : 0;
}

void *spokei_comet_take(struct spoke_comet *comet, size_t size)
{
	void *memory = NULL;

	if (size <= room_of(comet))
		memory = spokei_alloc_unset(comet->engine->env, size);
	if (memory)
		comet->figures[SPOKE_COMET_FIGURE_BYTES] += size;
	return memory;
}

void spokei_comet_give(struct spoke_comet *comet, void *memory, size_t size)
{
	if (memory == NULL)
		return;
	comet->figures[SPOKE_COMET_FIGURE_BYTES] -= size;
	spokei_free(comet->engine->env, memory, 1, size);
}

uint64_t spokei_comet_dice(const struct spoke_comet *comet, uint64_t min, uint64_t max)
{
	uint64_t dice;

	comet->engine->env->dice(comet->engine->env->ctx, &dice, sizeof(dice));
	return min + dice % (max - min + 1);
}

uint32_t spokei_comet_retry(const struct spoke_comet *comet)
{
	return (uint32_t)(spokei_comet_dice(comet, comet->with.retry_min_ns,
					    comet->with.retry_max_ns) /
			  1000000);
}

/* --- ids */

size_t spokei_comet_print_id(const struct spoke_comet *comet, uint64_t number,
			     char id[SPOKE_COMET_ID])
{
	return (size_t)snprintf(id, SPOKE_COMET_ID, "%016" PRIx64 ".%" PRIu64, comet->epoch,
				number);
}

bool spokei_comet_read_id(const struct spoke_comet *comet, struct spoke_span id,
			  uint64_t *ret_number)
{
	const char *text = id.data;
	char epoch[SPOKE_COMET_ID];
	uint64_t number = 0;

	(void)spokei_comet_print_id(comet, 0, epoch);
	if (id.len <= EPOCH_DIGITS + 1 || id.len > SPOKE_COMET_ID ||
	    memcmp(text, epoch, EPOCH_DIGITS + 1) != 0)
		return false;
	for (size_t i = EPOCH_DIGITS + 1; i < id.len; i++) {
		if (text[i] < '0' || text[i] > '9' || number > comet->number)
			return false;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	*ret_number = number;
	return number <= comet->number;
}

/* --- one message */

static bool is_event(struct spoke_span event)
{
	const char *text = event.data;

	for (size_t i = 0; i < event.len; i++) {
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return false;
	}
	return event.len <= SPOKE_COMET_EVENT_MAX;
}

/* Is it the name of an event that pages take for one of the gateway itself? The last two are of
 * spoke.js. */
static bool is_reserved(struct spoke_span event)
{
	static const char *const names[] = { "hello",  "lost", "reconnect",
					     "closed", "down", "unsent" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (spokei_span_is(event, names[i]))
			return true;
	}
	return false;
}

static int check(struct spoke_comet *comet, const struct spoke_comet_message *given)
{
	const char *why = NULL;

	if (given->data.len > comet->with.message_max) {
		spokei_why_set(comet->engine, "push: the data has %zu bytes; message.max allows %u",
			       given->data.len, (unsigned)comet->with.message_max);
		return SPOKE_ETOOLARGE;
	}
	if (!is_event(given->event))
		why = "the event is not a name of visible ASCII characters";
	else if (is_reserved(given->event))
		why = "the events hello, lost, reconnect, closed, down and unsent are the "
		      "gateway's own";
	else if (!spokei_utf8_all(given->data.data, given->data.len))
		why = "the data is not UTF-8";
	if (why == NULL)
		return SPOKE_OK;
	spokei_why_set(comet->engine, "push: %s", why);
	return SPOKE_EINVAL;
}

static size_t size_of(const struct spokei_comet_message *message)
{
	return sizeof(*message) + message->event_len + message->data_len;
}

int spokei_comet_make(struct spoke_comet *comet, const struct spoke_comet_message *given,
		      struct spokei_comet_message **ret)
{
	const size_t size = sizeof(struct spokei_comet_message) + given->event.len +
			    given->data.len;
	uint64_t ttl_ns = given->ttl_ns ? given->ttl_ns : UINT64_MAX;
	struct spokei_comet_message *message;
	int error = check(comet, given);

	if (error)
		return error;
	if (size > room_of(comet))
		return SPOKE_ELIMIT;
	message = spokei_comet_take(comet, size);
	if (message == NULL)
		return SPOKE_ENOMEM;
	*message = (struct spokei_comet_message){
		.refs = 1,
		.number = ++comet->number,
		.born_ns = comet->engine->begin_ns,
		.ends_ns = spokei_later(comet->engine->begin_ns, ttl_ns),
		.event_len = (uint8_t)given->event.len,
		.data_len = (uint32_t)given->data.len,
	};
	if (given->event.len)
		memcpy(message->text, given->event.data, given->event.len);
	if (given->data.len)
		memcpy(message->text + given->event.len, given->data.data, given->data.len);
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_MESSAGES);
	*ret = message;
	return SPOKE_OK;
}

void spokei_comet_drop(struct spoke_comet *comet, struct spokei_comet_message *message)
{
	if (--message->refs > 0)
		return;
	for (int i = 0; i < SPOKEI_COMET_FORMS; i++)
		spokei_comet_give(comet, message->form[i], message->form_len[i]);
	spokei_comet_give(comet, message, size_of(message));
	comet->figures[SPOKE_COMET_FIGURE_MESSAGES]--;
}

/* --- forms */

void spokei_comet_put(void *arg, const void *bytes, size_t len)
{
	struct spokei_comet_sink *sink = arg;

	if (sink->out && len)
		memcpy(sink->out + sink->len, bytes, len);
	sink->len += len;
}

static void put_json(struct spokei_comet_sink *sink, const char *id, struct spoke_span event,
		     struct spoke_span data)
{
	spokei_comet_put(sink, "{\"id\":\"", 7);
	spokei_comet_put(sink, id, strlen(id));
	spokei_comet_put(sink, "\",\"event\":\"", 11);
	spokei_comet_put(sink, event.data, event.len);
	spokei_comet_put(sink, "\",\"data\":", 9);
	spoke_json_print_text(data.data, data.len, spokei_comet_put, sink);
	spokei_comet_put(sink, "}", 1);
}

static struct spoke_span event_of(const struct spokei_comet_message *message)
{
	if (message->event_len == 0)
		return (struct spoke_span){ "message", 7 };
	return (struct spoke_span){ message->text, message->event_len };
}

static struct spoke_span data_of(const struct spokei_comet_message *message)
{
	return (struct spoke_span){ message->text + message->event_len, message->data_len };
}

static bool encode_event(struct spoke_comet *comet, struct spokei_comet_message *message,
			 const char *id)
{
	struct spokei_sse_event event = {
		.id = { id, strlen(id) },
		.data = data_of(message),
	};
	size_t size;

	if (message->event_len)
		event.name = event_of(message);
	if (spokei_sse_size(&event, &size) || size > UINT32_MAX)
		return false;
	message->form[SPOKEI_COMET_AS_EVENT] = spokei_comet_take(comet, size);
	if (message->form[SPOKEI_COMET_AS_EVENT] == NULL)
		return false;
	(void)spokei_sse_write(&event, (char *)message->form[SPOKEI_COMET_AS_EVENT]);
	message->form_len[SPOKEI_COMET_AS_EVENT] = (uint32_t)size;
	return true;
}

static bool encode_frame(struct spoke_comet *comet, struct spokei_comet_message *message,
			 const char *id)
{
	unsigned char head[SPOKEI_WEBSOCKET_HEAD_MAX];
	struct spokei_comet_sink sink = { NULL, 0 };
	unsigned char *form;

	put_json(&sink, id, event_of(message), data_of(message));
	message->head_len = (uint8_t)spokei_websocket_head(SPOKEI_WEBSOCKET_OP_TEXT, sink.len,
							   head);
	message->form_len[SPOKEI_COMET_AS_FRAME] = (uint32_t)(message->head_len + sink.len);
	form = spokei_comet_take(comet, message->form_len[SPOKEI_COMET_AS_FRAME]);
	if (form == NULL) {
		message->form_len[SPOKEI_COMET_AS_FRAME] = 0;
		return false;
	}
	memcpy(form, head, message->head_len);
	sink = (struct spokei_comet_sink){ form + message->head_len, 0 };
	put_json(&sink, id, event_of(message), data_of(message));
	message->form[SPOKEI_COMET_AS_FRAME] = form;
	return true;
}

bool spokei_comet_encode(struct spoke_comet *comet, struct spokei_comet_message *message,
			 enum spokei_comet_form form)
{
	char id[SPOKE_COMET_ID];

	if (message->form[form])
		return true;
	(void)spokei_comet_print_id(comet, message->number, id);
	return form == SPOKEI_COMET_AS_EVENT ? encode_event(comet, message, id)
					     : encode_frame(comet, message, id);
}

size_t spokei_comet_say(enum spokei_comet_form form, const char *name, const char *id,
			const char *data, uint32_t retry_ms, char out[SPOKEI_COMET_SAY])
{
	struct spokei_sse_event event = {
		.id = { id, id ? strlen(id) : 0 },
		.name = { name, strlen(name) },
		.data = { data, strlen(data) },
		.retry_ms = retry_ms,
	};
	unsigned char head[SPOKEI_WEBSOCKET_HEAD_MAX];
	struct spokei_comet_sink sink = { NULL, 0 };
	size_t head_len;
	size_t size;

	if (form == SPOKEI_COMET_AS_EVENT) {
		if (spokei_sse_size(&event, &size) || size > SPOKEI_COMET_SAY)
			return 0;
		return spokei_sse_write(&event, out);
	}
	put_json(&sink, id ? id : "", event.name, event.data);
	head_len = spokei_websocket_head(SPOKEI_WEBSOCKET_OP_TEXT, sink.len, head);
	if (head_len + sink.len > SPOKEI_COMET_SAY)
		return 0;
	memcpy(out, head, head_len);
	sink = (struct spokei_comet_sink){ (unsigned char *)out + head_len, 0 };
	put_json(&sink, id ? id : "", event.name, event.data);
	return head_len + sink.len;
}

/* --- rings */

/* Removes the oldest message. */
static void shift(struct spoke_comet *comet, struct spokei_comet_ring *ring)
{
	struct spokei_comet_message *message = spokei_comet_ring_at(ring, 0);
	uint64_t *floor = ring->user ? &ring->user->floor : &comet->all_floor;

	/* A message that did not fit into the ring may have raised it. */
	if (*floor < message->number)
		*floor = message->number;
	ring->first = (ring->first + 1) & (ring->room - 1);
	ring->count--;
	ring->bytes -= message->data_len;
	spokei_comet_drop(comet, message);
}

static bool grow(struct spoke_comet *comet, struct spokei_comet_ring *ring)
{
	const struct spoke_env *env = comet->engine->env;
	uint32_t room = ring->room ? 2 * ring->room : RING_FIRST;
	struct spokei_comet_message **slots = spokei_alloc(env, room,
							   sizeof(struct spokei_comet_message *));

	if (slots == NULL)
		return false;
	for (uint32_t i = 0; i < ring->count; i++)
		slots[i] = spokei_comet_ring_at(ring, i);
	spokei_free(env, ring->slots, ring->room, sizeof(struct spokei_comet_message *));
	ring->slots = slots;
	ring->room = room;
	ring->first = 0;
	return true;
}

int spokei_comet_ring_add(struct spoke_comet *comet, struct spokei_comet_ring *ring,
			  struct spokei_comet_message *message)
{
	uint32_t max = ring->user ? comet->with.ring_messages : comet->with.all_messages;
	uint32_t bytes_max = ring->user ? comet->with.ring_bytes : comet->with.all_bytes;

	while (ring->count > 0 && (ring->count >= max || message->data_len > bytes_max ||
				   ring->bytes > bytes_max - message->data_len))
		shift(comet, ring);
	if (ring->count == ring->room && !grow(comet, ring))
		return SPOKE_ENOMEM;
	ring->slots[(ring->first + ring->count++) & (ring->room - 1)] = message;
	ring->bytes += message->data_len;
	message->refs++;
	return SPOKE_OK;
}

uint32_t spokei_comet_ring_after(const struct spokei_comet_ring *ring, uint64_t number)
{
	uint32_t from = 0;
	uint32_t to = ring->count;

	while (from < to) {
		uint32_t middle = (from + to) / 2;

		if (spokei_comet_ring_at(ring, middle)->number <= number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void spokei_comet_ring_age(struct spoke_comet *comet, struct spokei_comet_ring *ring)
{
	uint64_t now_ns = comet->engine->begin_ns;

	while (ring->count > 0 &&
	       now_ns - spokei_comet_ring_at(ring, 0)->born_ns >= comet->with.ring_ns)
		shift(comet, ring);
}

void spokei_comet_ring_clear(struct spoke_comet *comet, struct spokei_comet_ring *ring)
{
	while (ring->count > 0)
		shift(comet, ring);
	spokei_free(comet->engine->env, ring->slots, ring->room,
		    sizeof(struct spokei_comet_message *));
	ring->slots = NULL;
	ring->room = 0;
	ring->first = 0;
}
