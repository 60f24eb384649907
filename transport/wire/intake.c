/* SPDX-License-Identifier: Apache-2.0 */
/* The input buffer of a connection: detects the wire, cuts frames out of the stream and reads them.
 */
#include "transport/wire/intake.h"
#include "core/base/env.h"

#include "transport/wire/catalog.h"
#include "transport/wire/memo.h"

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
}

void spokei_intake_fini(struct spokei_intake *intake)
{
	spokei_intake_slim(intake);
	spokei_buffer_fini(&intake->kept);
	spokei_buffer_fini(&intake->scratch);
}

static enum spokei_intake_result break_stream(struct spokei_intake *intake, int error)
{
	intake->error = error;
	intake->broken = true;
	spokei_buffer_fini(&intake->kept);
	return SPOKEI_INTAKE_BROKEN;
}

/* Returns MORE. Frees the scratch, because there may be many connections. */
static enum spokei_intake_result want_more(struct spokei_intake *intake)
{
	if (SPOKEI_UNLIKELY(intake->scratch.bytes != NULL))
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
	return SPOKEI_INTAKE_BAD_BODY;
}

static enum spokei_intake_result read_frame(struct spokei_intake *intake, struct spoke_span frame,
					    struct spokei_message *ret_message)
{
	intake->cut.started = false;
	if (SPOKEI_UNLIKELY(intake->serves && intake->memo == NULL))
		intake->memo = spokei_alloc(intake->kept.env, 1, sizeof(*intake->memo));
	intake->error = intake->wire->read(intake->limits, intake->memo, frame, &intake->scratch,
					   ret_message);
	if (SPOKEI_UNLIKELY(intake->error != 0))
		return end_bad(intake);
	intake->serves |= ret_message->kind == SPOKEI_REQUEST;
	return SPOKEI_INTAKE_MESSAGE;
}

enum spokei_intake_result spokei_intake_next(struct spokei_intake *intake, struct spoke_span *bytes,
					     struct spokei_message *ret_message)
{
	struct spokei_buffer *kept = &intake->kept;

	if (intake->broken)
		return SPOKEI_INTAKE_BROKEN;
	if (intake->wire == NULL && bytes->len > 0)
		intake->wire = spokei_catalog_sniff(*(const unsigned char *)bytes->data);
	if (intake->wire == NULL)
		return bytes->len ? break_stream(intake, SPOKE_EPROTOCOL) : SPOKEI_INTAKE_MORE;
	if (intake->given > 0)
		spokei_buffer_consume(kept, intake->given);
	intake->given = 0;
	for (;;) {
		bool in_place = spokei_buffer_len(kept) == 0;
		struct spoke_span view = in_place ? *bytes
						  : spokei_span(spokei_buffer_data(kept),
								spokei_buffer_len(kept));
		size_t len = 0;
		int status;

		if (view.len == 0)
			return want_more(intake);
		status = intake->wire->cut(intake->limits, &intake->cut, view, &len);
		if (status == 0) {
			if (in_place)
				*bytes = spokei_span_after(*bytes, len);
			else
				intake->given = len;
			view.len = len;
			return read_frame(intake, view, ret_message);
		}
		if (status != SPOKEI_CUT_MORE)
			return break_stream(intake, status);
		status = keep(intake, bytes, len);
		if (status < 0)
			return break_stream(intake, status);
		if (status == 0)
			return want_more(intake);
	}
}
