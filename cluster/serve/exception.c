/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests with errors and exceptions. */
#include "cluster/serve/parts.h"

#include "core/text/encoding.h"
#include "transport/wire/message.h"

#include <stdarg.h>
#include <stdio.h>

static void fail(struct spoke_request *request, struct spokei_message *message)
{
	message->kind = SPOKEI_REPLY;
	message->error = SPOKE_EREMOTE;
	message->foreign = spokei_request_is_foreign(request);
	message->generic = request->message->generic;
	spokei_request_finish(request, message);
}

/* Returns the length of a text that was cut, without an incomplete character at its end. */
static size_t whole_len(const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = len;

	while (at > 0 && (bytes[at - 1] & 0xc0) == 0x80)
		at--;
	if (at > 0 && spokei_utf8_len(bytes + at - 1, len - at + 1) == 0)
		return at - 1;
	return len;
}

void spoke_reply_error(struct spoke_request *request, int32_t code, const char *format, ...)
{
	char text[SPOKE_ERROR_TEXT_MAX] = "";
	struct spokei_message message = { .error_code = code };
	va_list args;
	int len = 0;

	va_start(args, format);
	if (format)
		len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len >= (int)sizeof(text))
		len = (int)whole_len(text, sizeof(text) - 1);
	message.error_text = spokei_span(text, len > 0 ? (size_t)len : 0);
	fail(request, &message);
}

void spoke_reply_exception(struct spoke_request *request, const char *class_name, int32_t code,
			   const char *text, struct spoke_value fields)
{
	struct spokei_message message = {
		.error_class = spokei_span(class_name, class_name ? strlen(class_name) : 0),
		.error_code = code,
		.error_text = spokei_span(text, text ? strlen(text) : 0),
		.value = fields,
	};
	/* A map of fields has the form of a map of attachments. */
	int error = spokei_attachments_check(fields, true);

	if (error)
		spokei_request_unsendable(request, error);
	else
		fail(request, &message);
}
