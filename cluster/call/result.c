/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a call as text. */
#include "core/base/log.h"

#include <spoke/consumer.h>

#include <stdio.h>

#define SHOWN 256u

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

size_t spoke_result_print(const struct spoke_result *result, char *text, size_t size)
{
	char from_peer[SHOWN] = "";
	char timing[96];
	int len;

	if (result->written) {
		(void)snprintf(timing, sizeof(timing), "written after %.1f ms, waited %.1f ms",
			       ms(result->queued_ns), ms(result->waited_ns));
	} else {
		(void)snprintf(timing, sizeof(timing), "not written for %.1f ms",
			       ms(result->queued_ns));
	}
	if (result->error_text.len)
		(void)spokei_log_escape(from_peer, sizeof(from_peer), result->error_text.data,
					result->error_text.len);
	if (result->error == SPOKE_EREMOTE && result->error_code) {
		len = snprintf(text, size, "%s: \"%s\" (code %d); %s",
			       spoke_strerror(result->error), from_peer, (int)result->error_code,
			       timing);
	} else if (result->error_text.len) {
		len = snprintf(text, size, "%s: \"%s\"; %s", spoke_strerror(result->error),
			       from_peer, timing);
	} else {
		len = snprintf(text, size, "%s; %s", spoke_strerror(result->error), timing);
	}
	return len > 0 ? (size_t)len : 0;
}
