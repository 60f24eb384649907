/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output buffer of a connection: two queues of bytes. It does not store where frames begin.
 * That matters only if a write ends inside a frame of `out`, because control frames must wait for
 * the end of that frame. The end is then found by walking over the headers of the written frames. A
 * partly written control frame needs no such search: its rest is at the front of the queue that is
 * written first.
 */
#include "transport/wire/outlet.h"

#define CONTROL_MAX 4096u /* bytes */

void spokei_outlet_init(struct spokei_outlet *outlet, const struct spoke_env *env, size_t max)
{
	*outlet = (struct spokei_outlet){ 0 };
	spokei_buffer_init(&outlet->out, env, max);
	spokei_buffer_init(&outlet->control, env, CONTROL_MAX);
}

void spokei_outlet_fini(struct spokei_outlet *outlet)
{
	spokei_buffer_fini(&outlet->out);
	spokei_buffer_fini(&outlet->control);
	outlet->cut = 0;
}

/*
 * The maximum of the queue or of a frame was reached. Wires reserve more room than a frame may
 * need, so the frame is made separately to learn its length.
 */
int spokei_outlet_put_aside(struct spokei_buffer *queue, const struct spokei_wire *wire,
			    const struct spokei_wire_limits *limits,
			    const struct spokei_message *message)
{
	struct spokei_message copied = *message;
	struct spokei_buffer aside;
	int error;

	copied.lent = NULL;
	if (message->lent)
		message->lent->at = NULL;
	spokei_buffer_init(&aside, queue->env, SIZE_MAX);
	error = wire->write(limits, &copied, &aside);
	if (error == 0 && spokei_buffer_len(&aside) > queue->max - spokei_buffer_len(queue))
		error = SPOKE_ELIMIT;
	if (error == 0)
		error = spokei_buffer_append(queue, spokei_buffer_data(&aside),
					     spokei_buffer_len(&aside));
	spokei_buffer_fini(&aside);
	return error;
}

int spokei_outlet_put_control(struct spokei_outlet *outlet, const struct spokei_wire *wire,
			      const struct spokei_wire_limits *limits,
			      const struct spokei_message *message)
{
	struct spokei_buffer *queue = &outlet->control;
	int error;

	/* took() cannot find the frames of such a wire. */
	if (!wire->probes)
		return SPOKE_EUNSUPPORTED;
	error = wire->write(limits, message, queue);
	return error == SPOKE_ETOOLARGE ? spokei_outlet_put_aside(queue, wire, limits, message)
					: error;
}

static int add_part(struct iovec *parts, int count, const struct spokei_buffer *queue, size_t from,
		    size_t to)
{
	if (from == to)
		return count;
	parts[count] = (struct iovec){ spokei_buffer_data(queue) + from, to - from };
	return count + 1;
}

int spokei_outlet_front(const struct spokei_outlet *outlet, struct iovec parts[SPOKEI_OUTLET_PARTS])
{
	size_t control_len = spokei_buffer_len(&outlet->control);
	size_t begun = outlet->cut;
	int count;

	if (SPOKEI_LIKELY(control_len == 0))
		return add_part(parts, 0, &outlet->out, 0, spokei_buffer_len(&outlet->out));
	count = add_part(parts, 0, &outlet->out, 0, begun);
	count = add_part(parts, count, &outlet->control, 0, control_len);
	return add_part(parts, count, &outlet->out, begun, spokei_buffer_len(&outlet->out));
}

/* Removes written bytes of `out`, and finds the length of the rest of a partly written frame. */
static void take_out(struct spokei_outlet *outlet, const struct spokei_wire *wire, size_t taken)
{
	const unsigned char *bytes = spokei_buffer_data(&outlet->out);
	size_t len = spokei_buffer_len(&outlet->out);
	size_t boundary = outlet->cut;

	while (wire->length && taken < len && boundary < taken)
		boundary += wire->length(spokei_span(bytes + boundary, len - boundary));
	outlet->cut = boundary > taken ? boundary - taken : 0;
	outlet->sent += taken;
	spokei_buffer_consume(&outlet->out, taken);
}

void spokei_outlet_took(struct spokei_outlet *outlet, const struct spokei_wire *wire, size_t len)
{
	size_t control_len = spokei_buffer_len(&outlet->control);
	size_t begun = len < outlet->cut ? len : outlet->cut;
	size_t control = len - begun < control_len ? len - begun : control_len;

	SPOKE_ASSERT(len <= spokei_outlet_len(outlet));
	if (SPOKEI_LIKELY(control_len == 0)) {
		take_out(outlet, wire, len);
		return;
	}
	if (len > control)
		take_out(outlet, wire, len - control);
	/* Heartbeats are rare, and many connections may send nothing else. */
	if (control > 0 && control == control_len)
		spokei_buffer_fini(&outlet->control);
	else
		spokei_buffer_consume(&outlet->control, control);
}
