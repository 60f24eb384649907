/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a call, as JSON or as notes on stderr. */
#include "examples/spoke/answer.h"

#include "examples/spoke/json.h"
#include "examples/spoke/terminal.h"

#include <inttypes.h>
#include <stdio.h>

#define ENDPOINTS_SHOWN 16u

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

void answer_print_json(const struct spoke_result *result, int end)
{
	enum json_form form = terminal_out() ? JSON_TREE : JSON_LINE;

	printf("{\"ok\":%s,\"error\":\"%s\"", result->error ? "false" : "true",
	       spoke_errname(result->error));
	if (!result->error) {
		(void)fputs(",\"value\":", stdout);
		json_print(result->value, form, stdout);
	}
	if (result->error_text.len) {
		(void)fputs(",\"text\":", stdout);
		json_print_text(result->error_text.data, result->error_text.len, stdout);
	} else if (result->error) {
		printf(",\"text\":\"%s\"", spoke_strerror(result->error));
	}
	if (result->error_class.len) {
		(void)fputs(",\"class\":", stdout);
		json_print_text(result->error_class.data, result->error_class.len, stdout);
	}
	if (result->attachments.len) {
		(void)fputs(",\"attachments\":", stdout);
		json_print(result->attachments, form, stdout);
	}
	printf(",\"code\":%" PRId32 ",\"written\":%s,\"attempts\":%" PRIu32
	       ",\"queued_ms\":%.3f,\"waited_ms\":%.3f,\"exit\":%d}\n",
	       result->error_code, result->written ? "true" : "false", result->attempts,
	       ms(result->queued_ns), ms(result->waited_ns), end);
}

void answer_print_verbose(const struct spoke_consumer *consumer, const struct spoke_result *result)
{
	struct spoke_endpoint_info infos[ENDPOINTS_SHOWN];
	size_t count = spoke_consumer_endpoints(consumer, infos, ENDPOINTS_SHOWN);

	for (size_t i = 0; i < count && i < ENDPOINTS_SHOWN; i++) {
		if (infos[i].calls)
			(void)fprintf(stderr, "%s: %" PRIu64 " attempts, %" PRIu64 " failed, %s\n",
				      infos[i].name, infos[i].calls, infos[i].failures,
				      spoke_endpoint_state_name(infos[i].state));
	}
	(void)fprintf(stderr, "%" PRIu32 " attempts; written after %.3f ms, ended %.3f ms later\n",
		      result->attempts, ms(result->queued_ns), ms(result->waited_ns));
	if (result->attachments.len) {
		(void)fputs("attachments: ", stderr);
		json_print(result->attachments, JSON_LINE, stderr);
		(void)fputc('\n', stderr);
	}
}
