/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a call as text. */
#include "core/base/log.h"

#include <spoke/consumer.h>

#include <stdio.h>
#include <string.h>

#define SHOWN 256u

/* The class in which providers of spoke wrap every error. */
#define OWN_CLASS "org.apache.dubbo.rpc.RpcException"

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void print_timing(const struct spoke_result *result, char *text, size_t size)
{
	if (result->written)
		(void)snprintf(text, size, "written after %.1f ms, waited %.1f ms",
			       ms(result->queued_ns), ms(result->waited_ns));
	else
		(void)snprintf(text, size, "not written for %.1f ms", ms(result->queued_ns));
}

/* Prints the class of an exception before its message, if it tells more than the error. */
static void print_class(struct spoke_span name, char *text, size_t size)
{
	size_t len = 0;

	if (name.len != strlen(OWN_CLASS) || memcmp(name.data, OWN_CLASS, name.len) != 0)
		len = spokei_log_escape(text, size - 3, name.data, name.len);
	(void)snprintf(text + len, size - len, "%s", len ? ": " : "");
}

size_t spoke_result_print(const struct spoke_result *result, char *text, size_t size)
{
	struct spoke_exception exception = { .message = result->error_text };
	char class_name[SHOWN];
	char message[SHOWN];
	char timing[96];
	char code[24] = "";
	int len;

	if (result->error == SPOKE_OK && result->value.len > 0)
		return spoke_value_print(result->value, text, size);
	(void)spoke_result_exception(result, 0, &exception);
	print_timing(result, timing, sizeof(timing));
	print_class(exception.class_name, class_name, sizeof(class_name));
	(void)spokei_log_escape(message, sizeof(message), exception.message.data,
				exception.message.len);
	if ((result->error == SPOKE_EREMOTE || result->error == SPOKE_EFORBIDDEN) &&
	    result->error_code)
		(void)snprintf(code, sizeof(code), " (code %d)", (int)result->error_code);
	if (class_name[0] || message[0] || code[0])
		len = snprintf(text, size, "%s: %s\"%s\"%s; %s", spoke_strerror(result->error),
			       class_name, message, code, timing);
	else
		len = snprintf(text, size, "%s; %s", spoke_strerror(result->error), timing);
	return len > 0 ? (size_t)len : 0;
}
