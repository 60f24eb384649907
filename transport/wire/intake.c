/* SPDX-License-Identifier: Apache-2.0 */
/* The input buffer of a connection: detects the wire, cuts frames out of the stream and reads them.
 */
#include "transport/wire/intake.h"
#include "core/base/env.h"

#include "transport/wire/catalog.h"
#include "transport/wire/memo.h"

/* Bytes of scratch that a connection keeps for the next message, until it is idle. */
#define SCRATCH_KEPT 1024u

void spokei_intake_init(struct spokei_intake *intake, const struct spoke_env *env,
			const struct spokei_wire_limits *limits)
{
	*intake = (struct spokei_intake){ .limits = limits };
	spokei_buffer_init(&intake->kept, env, limits->frame_max);
	spokei_buffer_init(&intake->scratch, env,
			   limits->value.bytes_max ? limits->value.bytes_max
						   : SPOKE_VALUE_BYTES_MAX);
}

void spokei_intake_slim(struct spokei_intake *intake)
{
	spokei_free(intake->kept.env, intake->memo, 1, sizeof(*intake->memo));
	intake->memo = NULL;
	intake->serves = false;
	spokei_buffer_fini(&intake->scratch);
}

void spokei_intake_fini(struct spokei_intake *intake)
{
	spokei_intake_slim(intake);
	spokei_buffer_fini(&intake->kept);
}

static enum spokei_intake_result break_stream(struct spokei_intake *intake, int error)
{
	intake->error = error;
	intake->broken = true;
	intake->stopped = true;
	spokei_buffer_fini(&intake->kept);
	return SPOKEI_INTAKE_BROKEN;
}

/* Returns MORE. Frees a large scratch, because there may be many connections. */
static enum spokei_intake_result want_more(struct spokei_intake *intake)
{
	if (SPOKEI_UNLIKELY(intake->scratch.capacity > SCRATCH_KEPT))
		spokei_buffer_fini(&intake->scratch);
	return SPOKEI_INTAKE_MORE;
}

/*
 * Keeps the missing bytes of the frame, as far as they have arrived and the number is known.
 * Returns whether any byte was kept, or a negative error.
 */
static int keep(struct spokei_intake *intake, struct spoke_span *bytes, size_t needed)
{
	size_t have = spokei_buffer_len(&intake->kept);
	size_t some = needed > have ? needed - have : 1;
	int error;

	if (some > bytes->len)
		some = bytes->len;
	if (some == 0)
		return 0;
	error = spokei_buffer_append(&intake->kept, bytes->data, some);
	if (error)
		return error;
	*bytes = spokei_span_after(*bytes, some);
	return 1;
}

/* Ends the reading of a bad message. Breaks the stream if the message has no known id, or if the
 * error is a lack of memory on this side. */
static SPOKEI_NOINLINE enum spokei_intake_result end_bad(struct spokei_intake *intake)
{
	if (intake->error == SPOKE_EPROTOCOL || intake->error == SPOKE_ENOMEM)
		return break_stream(intake, intake->error);
	intake->too_long = 0;
	return SPOKEI_INTAKE_BAD_BODY;
}

/* Passes over input: `bytes` of the caller, or NULL for kept ones. */
static inline void pass(struct spokei_intake *intake, struct spoke_span *bytes, size_t len)
{
	if (bytes)
		*bytes = spokei_span_after(*bytes, len);
	else
		intake->given = len;
}

/* Begins to skip the frame of `len` bytes that begins with `part`, and reads its header. */
static SPOKEI_NOINLINE enum spokei_intake_result begin_skip(struct spokei_intake *intake,
							    struct spoke_span *bytes,
							    struct spoke_span part, size_t len,
							    struct spokei_message *ret_message)
{
	struct spoke_span begin = spokei_span(part.data, part.len < len ? part.len : len - 1);
	enum spokei_intake_result result;

	if (part.len > len)
		part.len = len;
	pass(intake, bytes, part.len);
	intake->error = intake->wire->read(intake->limits, NULL, begin, NULL, ret_message);
	result = end_bad(intake);
	if (result == SPOKEI_INTAKE_BROKEN)
		return result;
	intake->too_long = len;
	intake->skip = len - part.len;
	intake->stopped = intake->skip > 0;
	return result;
}

/* Frees the kept bytes of the last message. */
static inline void drop_given(struct spokei_intake *intake)
{
	if (intake->given > 0)
		spokei_buffer_consume(&intake->kept, intake->given);
	intake->given = 0;
}

/* Skips bytes of a frame that is too long. Returns whether its end was reached; a broken stream has
 * none. */
static SPOKEI_NOINLINE bool skip_some(struct spokei_intake *intake, struct spoke_span *bytes)
{
	size_t some = bytes->len < intake->skip ? bytes->len : intake->skip;

	if (intake->broken)
		return false;
	drop_given(intake);
	if (intake->over) {
		*bytes = spokei_span_after(*bytes, bytes->len);
		return false;
	}
	*bytes = spokei_span_after(*bytes, some);
	intake->skip -= some;
	intake->stopped = intake->skip > 0;
	return !intake->stopped;
}

/* Drops the kept bytes after the message, too. */
static SPOKEI_NOINLINE void end_input(struct spokei_intake *intake)
{
	intake->over = true;
	intake->stopped = true;
	spokei_buffer_truncate(&intake->kept, intake->given);
}

/* Chooses the wire by the first byte. */
static SPOKEI_NOINLINE void choose_wire(struct spokei_intake *intake, unsigned char first)
{
	intake->wire = spokei_catalog_sniff(first);
	if (intake->wire && intake->wire->off && intake->no_http)
		intake->wire = intake->wire->off;
}

static enum spokei_intake_result read_frame(struct spokei_intake *intake, struct spoke_span frame,
					    struct spokei_message *ret_message)
{
	intake->cut.started = false;
	if (SPOKEI_UNLIKELY(intake->serves && intake->memo == NULL) && !intake->wire->in_order)
		intake->memo = spokei_alloc(intake->kept.env, 1, sizeof(*intake->memo));
	intake->error = intake->wire->read(intake->limits, intake->memo, frame, &intake->scratch,
					   ret_message);
	if (SPOKEI_UNLIKELY(intake->error != 0)) {
		if (intake->wire->in_order && ret_message->last)
			end_input(intake);
		return end_bad(intake);
	}
	if (SPOKEI_UNLIKELY(ret_message->last))
		end_input(intake);
	intake->serves |= ret_message->kind == SPOKEI_REQUEST;
	return SPOKEI_INTAKE_MESSAGE;
}

enum spokei_intake_result spokei_intake_next(struct spokei_intake *intake, struct spoke_span *bytes,
					     struct spokei_message *ret_message)
{
	struct spokei_buffer *kept = &intake->kept;

	if (SPOKEI_UNLIKELY(intake->stopped) && !skip_some(intake, bytes))
		return intake->broken ? SPOKEI_INTAKE_BROKEN : want_more(intake);
	if (intake->wire == NULL && bytes->len > 0)
		choose_wire(intake, *(const unsigned char *)bytes->data);
	if (intake->wire == NULL)
		return bytes->len ? break_stream(intake, SPOKE_EPROTOCOL) : SPOKEI_INTAKE_MORE;
	drop_given(intake);
	for (;;) {
		struct spoke_span *from = spokei_buffer_len(kept) == 0 ? bytes : NULL;
		struct spoke_span view = from ? *from
					      : spokei_span(spokei_buffer_data(kept),
							    spokei_buffer_len(kept));
		size_t len = 0;
		int status;

		if (view.len == 0)
			return want_more(intake);
		status = intake->wire->cut(intake->limits, &intake->cut, view, &len);
		if (status == 0) {
			pass(intake, from, len);
			view.len = len;
			return read_frame(intake, view, ret_message);
		}
		if (SPOKEI_UNLIKELY(status == SPOKEI_CUT_SKIP))
			return begin_skip(intake, from, view, len, ret_message);
		if (status == SPOKEI_CUT_MORE)
			status = keep(intake, bytes, len);
		if (status < 0)
			return break_stream(intake, status);
		if (status == 0)
			return want_more(intake);
	}
}
