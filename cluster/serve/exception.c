/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests with errors and exceptions. */
#include "cluster/serve/parts.h"

#include "transport/wire/attachments.h"
#include "transport/wire/message.h"

static struct spoke_span text_of(const char *text)
{
	return spokei_span(text ? text : "", text ? strlen(text) : 0);
}

static void fail(struct spoke_request *request, struct spokei_message *message)
{
	message->kind = SPOKEI_REPLY;
	message->error = SPOKE_EREMOTE;
	message->foreign = spokei_request_is_foreign(request);
	message->generic = request->message->generic;
	spokei_request_finish(request, message);
}

void spoke_reply_error(struct spoke_request *request, int32_t code, const char *text)
{
	struct spokei_message message = {
		.error_code = code,
		.error_text = text_of(text),
	};

	fail(request, &message);
}

void spoke_reply_exception(struct spoke_request *request, const char *class_name, int32_t code,
			   const char *text, struct spoke_value fields)
{
	struct spokei_message message = {
		.error_class = text_of(class_name),
		.error_code = code,
		.error_text = text_of(text),
		.value = fields,
	};
	/* A map of fields has the form of a map of attachments. */
	int error = spokei_attachments_check(fields, true);

	if (error)
		spokei_request_unsendable(request, error);
	else
		fail(request, &message);
}
