/* SPDX-License-Identifier: Apache-2.0 */
/* Writes spans as JSON. */
#include "otlp_json.h"

#include <spoke/error.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void otlp_put(struct otlp_text *text, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->at + text->len, text->size - text->len, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= text->size - text->len)
		text->full = true;
	else
		text->len += (size_t)len;
}

/* Puts a text in quotation marks. Bytes that are not ASCII are replaced, because they may be
 * invalid UTF-8. */
static void otlp_put_text(struct otlp_text *text, const void *bytes, size_t len)
{
	otlp_put(text, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = ((const unsigned char *)bytes)[i];

		if (byte == '"' || byte == '\\')
			otlp_put(text, "\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			otlp_put(text, "\\u%04x", byte);
		else
			otlp_put(text, "%c", byte < 0x80 ? byte : '?');
	}
	otlp_put(text, "\"");
}

static void put_hex(struct otlp_text *text, const char *key, const unsigned char *bytes, size_t len)
{
	otlp_put(text, "\"%s\":\"", key);
	for (size_t i = 0; i < len; i++)
		otlp_put(text, "%02x", bytes[i]);
	otlp_put(text, "\",");
}

void otlp_put_attribute(struct otlp_text *text, const char *key, const void *bytes, size_t len)
{
	otlp_put(text, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
	otlp_put_text(text, bytes, len);
	otlp_put(text, "}},");
}

static void put_number(struct otlp_text *text, const char *key, uint64_t number)
{
	otlp_put(text, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRIu64 "\"}},", key, number);
}

void otlp_end_list(struct otlp_text *text)
{
	if (text->len > 0 && text->at[text->len - 1] == ',')
		text->len--;
	otlp_put(text, "]");
}

/* Puts the address and the port of a peer, e.g. "127.0.0.1:20880". */
static void put_peer(struct otlp_text *text, const char *peer)
{
	const char *colon = strrchr(peer, ':');

	if (*peer == '\0')
		return;
	otlp_put_attribute(text, "network.peer.address", peer,
			   colon ? (size_t)(colon - peer) : strlen(peer));
	if (colon)
		put_number(text, "network.peer.port", strtoul(colon + 1, NULL, 10));
}

static void put_attributes(struct otlp_text *text, const struct spoke_trace_span *span)
{
	otlp_put(text, "\"attributes\":[");
	otlp_put_attribute(text, "rpc.system", "spoke", 5);
	otlp_put_attribute(text, "rpc.service", span->service.data, span->service.len);
	otlp_put_attribute(text, "rpc.method", span->method.data, span->method.len);
	put_peer(text, span->peer);
	put_number(text, "spoke.queued_ns", span->queued_ns);
	if (span->kind == SPOKE_TRACE_CLIENT)
		put_number(text, "spoke.attempts", span->attempts);
	if (span->error)
		otlp_put_attribute(text, "error.type", spoke_errname(span->error),
				   strlen(spoke_errname(span->error)));
	otlp_end_list(text);
}

/* Puts an event for the end of each attempt. */
static void put_attempts(struct otlp_text *text, const struct spoke_trace_span *span)
{
	if (span->attempt_count == 0)
		return;
	otlp_put(text, ",\"events\":[");
	for (uint32_t i = 0; i < span->attempt_count; i++) {
		const struct spoke_trace_attempt *attempt = &span->attempt[i];
		const char *result = spoke_errname(attempt->error);

		otlp_put(text,
			 "{\"timeUnixNano\":\"%" PRIu64 "\",\"name\":\"attempt\",\"attributes\":[",
			 span->wall_ns + attempt->ended_ns);
		put_peer(text, attempt->peer);
		otlp_put_attribute(text, "spoke.result", result, strlen(result));
		put_number(text, "spoke.queued_ns", attempt->queued_ns);
		otlp_end_list(text);
		otlp_put(text, "},");
	}
	otlp_end_list(text);
}

static void put_status(struct otlp_text *text, const struct spoke_trace_span *span)
{
	otlp_put(text, ",\"status\":{");
	if (span->error) {
		otlp_put(text, "\"code\":2,\"message\":");
		otlp_put_text(text, span->error_text.data, span->error_text.len);
	}
	otlp_put(text, "}");
}

static void put_name(struct otlp_text *text, const struct spoke_trace_span *span)
{
	char name[512];
	size_t service = span->service.len < 255 ? span->service.len : 255;
	size_t method = span->method.len < 255 ? span->method.len : 255;

	if (service > 0)
		memcpy(name, span->service.data, service);
	name[service] = '/';
	if (method > 0)
		memcpy(name + service + 1, span->method.data, method);
	otlp_put_text(text, name, service + 1 + method);
}

void otlp_put_span(struct otlp_text *text, const struct spoke_trace_span *span)
{
	const struct spoke_trace_context *context = &span->context;

	otlp_put(text, "{");
	put_hex(text, "traceId", context->trace_id, sizeof(context->trace_id));
	put_hex(text, "spanId", context->span_id, sizeof(context->span_id));
	if (span->has_parent)
		put_hex(text, "parentSpanId", span->parent_id, sizeof(span->parent_id));
	if (context->state_len > 0) {
		otlp_put(text, "\"traceState\":");
		otlp_put_text(text, context->state, context->state_len);
		otlp_put(text, ",");
	}
	otlp_put(text, "\"name\":");
	put_name(text, span);
	otlp_put(text, ",\"kind\":%d,", span->kind == SPOKE_TRACE_CLIENT ? 3 : 2);
	otlp_put(text, "\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64 "\",",
		 span->wall_ns, span->wall_ns + span->took_ns);
	put_attributes(text, span);
	put_attempts(text, span);
	put_status(text, span);
	otlp_put(text, "}");
}
