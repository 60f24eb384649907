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
	*intake = (struct spokei_intake){ .reader.limits = limits };
	spokei_buffer_init(&intake->kept, env, limits->frame_max);
	spokei_buffer_init(&intake->reader.scratch, env,
			   limits->value.bytes_max ? limits->value.bytes_max
						   : SPOKE_VALUE_BYTES_MAX);
}

void spokei_intake_slim(struct spokei_intake *intake)
{
	struct spokei_reader *reader = &intake->reader;

	spokei_free(intake->kept.env, reader->memo, 1, sizeof(*reader->memo));
	reader->memo = NULL;
	intake->serves = false;
	spokei_buffer_fini(&reader->scratch);
}

void spokei_intake_fini(struct spokei_intake *intake)
{
	spokei_intake_slim(intake);
	spokei_buffer_fini(&intake->kept);
}

static SPOKEI_NOINLINE enum spokei_intake_result break_stream(struct spokei_intake *intake,
							      int error)
{
	intake->reader.error = error;
	intake->broken = true;
	intake->direct = false;
	spokei_buffer_fini(&intake->kept);
	return SPOKEI_INTAKE_BROKEN;
}

/* Returns MORE. Frees a large scratch, because there may be many connections. */
static enum spokei_intake_result want_more(struct spokei_intake *intake)
{
	if (SPOKEI_UNLIKELY(intake->reader.scratch.capacity > SCRATCH_KEPT))
		spokei_buffer_fini(&intake->reader.scratch);
	return SPOKEI_INTAKE_MORE;
}

/*
 * Keeps the missing bytes of the frame, as far as they have arrived and the number is known.
 * Returns whether any byte was kept, or a negative error.
 */
static int keep(struct spokei_intake *intake, struct spoke_span *bytes)
{
	size_t have = spokei_buffer_len(&intake->kept);
	size_t needed = intake->reader.len;
	size_t some = needed > have ? needed - have : 1;
	int error;

	if (some > bytes->len)
		some = bytes->len;
	if (some == 0)
		return 0;
	error = spokei_buffer_append(&intake->kept, bytes->data, some);
	if (error)
		return error;
	intake->direct = false;
	*bytes = spokei_span_after(*bytes, some);
	return 1;
}

/* Passes over input: `bytes` of the caller, or NULL for kept ones. */
static inline void pass(struct spokei_intake *intake, struct spoke_span *bytes, size_t len)
{
	if (bytes)
		*bytes = spokei_span_after(*bytes, len);
	else
		intake->given = len;
}

/* Drops the kept bytes after the message, too. */
static SPOKEI_NOINLINE void end_input(struct spokei_intake *intake)
{
	intake->over = true;
	intake->direct = false;
	spokei_buffer_truncate(&intake->kept, intake->given);
}

/* Ends the reading of a bad message. Breaks the stream if the message has no known id, or if the
 * error is a lack of memory on this side. */
static SPOKEI_NOINLINE enum spokei_intake_result end_bad(struct spokei_intake *intake,
							 const struct spokei_message *message)
{
	const int error = intake->reader.error;

	if (intake->wire->in_order && message->last)
		end_input(intake);
	if (error == SPOKE_EPROTOCOL || error == SPOKE_ENOMEM)
		return break_stream(intake, error);
	intake->too_long = 0;
	return SPOKEI_INTAKE_BAD_BODY;
}

/* Begins to skip the frame whose first bytes are `part`. */
static SPOKEI_NOINLINE enum spokei_intake_result begin_skip(struct spokei_intake *intake,
							    struct spoke_span *bytes, size_t part)
{
	size_t len = intake->reader.len;

	if (part > len)
		part = len;
	pass(intake, bytes, part);
	intake->reader.error = SPOKE_ETOOLARGE;
	intake->too_long = len;
	intake->skip = len - part;
	intake->direct = intake->direct && intake->skip == 0;
	return SPOKEI_INTAKE_BAD_BODY;
}

/* Frees the kept bytes of the last message. */
static void drop_given(struct spokei_intake *intake)
{
	if (intake->given > 0)
		spokei_buffer_consume(&intake->kept, intake->given);
	intake->given = 0;
}

/* Skips bytes of a frame that is too long. */
static void skip_some(struct spokei_intake *intake, struct spoke_span *bytes)
{
	size_t some = bytes->len < intake->skip ? bytes->len : intake->skip;

	if (intake->over)
		some = bytes->len;
	else
		intake->skip -= some;
	*bytes = spokei_span_after(*bytes, some);
}

/* Chooses the wire by the first byte. */
static void choose_wire(struct spokei_intake *intake, unsigned char first)
{
	intake->wire = spokei_catalog_sniff(first);
	if (intake->wire && intake->wire->off && intake->no_http)
		intake->wire = intake->wire->off;
	if (intake->wire == NULL)
		(void)break_stream(intake, SPOKE_EPROTOCOL);
}

/* Gets ready for the next frame. Returns whether there may be one. */
static SPOKEI_NOINLINE bool prepare(struct spokei_intake *intake, struct spoke_span *bytes)
{
	struct spokei_memo **memo = &intake->reader.memo;

	drop_given(intake);
	skip_some(intake, bytes);
	if (intake->wire == NULL && !intake->broken && bytes->len > 0)
		choose_wire(intake, *(const unsigned char *)bytes->data);
	if (intake->broken || intake->over || intake->skip > 0 || intake->wire == NULL ||
	    (spokei_buffer_len(&intake->kept) == 0 && bytes->len == 0))
		return false;
	intake->direct = spokei_buffer_len(&intake->kept) == 0;
	if (intake->serves && *memo == NULL && !intake->wire->in_order)
		*memo = spokei_alloc(intake->kept.env, 1, sizeof(**memo));
	return true;
}

/* Notes a message that says something new of the stream. */
static inline void note_new(struct spokei_intake *intake, const struct spokei_message *message)
{
	if (message->kind == SPOKEI_REQUEST && intake->reader.memo == NULL) {
		intake->serves = true;
		intake->direct = false;
	}
	if (SPOKEI_UNLIKELY(message->last))
		end_input(intake);
}

enum spokei_intake_result spokei_intake_next(struct spokei_intake *intake, struct spoke_span *bytes,
					     struct spokei_message *ret_message)
{
	struct spokei_buffer *kept = &intake->kept;
	int status = 1;

	if (SPOKEI_UNLIKELY(!intake->direct) && !prepare(intake, bytes))
		return intake->broken ? SPOKEI_INTAKE_BROKEN : want_more(intake);
	while (status > 0) {
		struct spoke_span *from = SPOKEI_LIKELY(intake->direct) ? bytes : NULL;
		struct spoke_span view = from ? *from
					      : spokei_span(spokei_buffer_data(kept),
							    spokei_buffer_len(kept));

		if (view.len == 0)
			return want_more(intake);
		status = intake->wire->next(&intake->reader, view, ret_message);
		if (SPOKEI_LIKELY(status == 0)) {
			pass(intake, from, intake->reader.len);
			if (SPOKEI_UNLIKELY(!ret_message->repeat))
				note_new(intake, ret_message);
			return SPOKEI_INTAKE_MESSAGE;
		}
		if (status == SPOKEI_NEXT_BAD) {
			pass(intake, from, intake->reader.len);
			return end_bad(intake, ret_message);
		}
		if (status == SPOKEI_NEXT_SKIP)
			return begin_skip(intake, from, view.len);
		if (status == SPOKEI_NEXT_MORE)
			status = keep(intake, bytes);
	}
	return status < 0 ? break_stream(intake, status) : want_more(intake);
}
