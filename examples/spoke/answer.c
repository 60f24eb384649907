/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a call, as JSON or as notes on stderr. */
#include "examples/spoke/answer.h"

#include "examples/spoke/json.h"
#include "examples/spoke/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ENDPOINTS_SHOWN 16u
#define FRAMES_SHOWN 5u /* lines of each stack trace */
#define STORY_MAX 8192u /* bytes of a printed exception */

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void print_causes(const struct spoke_result *result)
{
	struct spoke_exception exception;

	(void)fputs(",\"causes\":[", stdout);
	for (size_t i = 1; spoke_result_exception(result, i, &exception); i++) {
		(void)fputs(i > 1 ? ",{\"class\":" : "{\"class\":", stdout);
		json_print_text(exception.class_name.data, exception.class_name.len, stdout);
		(void)fputs(",\"text\":", stdout);
		json_print_text(exception.message.data, exception.message.len, stdout);
		(void)putchar('}');
	}
	(void)putchar(']');
}

void answer_print_json(const struct spoke_result *result, int end)
{
	enum spoke_json_form form = terminal_out() ? SPOKE_JSON_TREE : SPOKE_JSON_LINE;
	struct spoke_exception cause;

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
	if (spoke_result_exception(result, 1, &cause))
		print_causes(result);
	if (result->attachments.len) {
		(void)fputs(",\"attachments\":", stdout);
		json_print(result->attachments, form, stdout);
	}
	printf(",\"code\":%" PRId32 ",\"written\":%s,\"attempts\":%" PRIu32
	       ",\"queued_ms\":%.3f,\"waited_ms\":%.3f,\"exit\":%d}\n",
	       result->error_code, result->written ? "true" : "false", result->attempts,
	       ms(result->queued_ns), ms(result->waited_ns), end);
}

/* Is there more to print than the error text has? */
static bool has_story(const struct spoke_result *result)
{
	struct spoke_exception thrown;
	struct spoke_exception cause;
	struct spoke_stack_frame frame;

	return spoke_result_exception(result, 0, &thrown) &&
	       (spoke_exception_frames(&thrown, &frame, 1) > 0 ||
		spoke_result_exception(result, 1, &cause));
}

void answer_print_exception(const struct spoke_result *result)
{
	char text[STORY_MAX];

	if (!has_story(result))
		return;
	(void)spoke_result_print_exception(result, FRAMES_SHOWN, text, sizeof(text));
	(void)fprintf(stderr, "%s\n", text);
}

/* Java peers report a method with other types in these ways, by their version. */
void answer_print_hint(const struct spoke_result *result)
{
	static const char *const signs[] = { "NoSuchMethod", "Not found method",
					     "Service not found", "Fail to decode request" };
	const struct spoke_span *texts[] = { &result->error_text, &result->error_class };

	for (size_t i = 0; i < 2 * sizeof(signs) / sizeof(signs[0]); i++) {
		const struct spoke_span *text = texts[i % 2];

		if (text->len == 0 ||
		    !memmem(text->data, text->len, signs[i / 2], strlen(signs[i / 2])))
			continue;
		(void)fputs("The types were derived from the arguments: null as Object, an integer "
			    "as int or long by its size.\nIf the method takes others, name them, "
			    "e.g. --types 'Ljava/lang/String;J', or use --generic.\n",
			    stderr);
		return;
	}
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
		json_print(result->attachments, SPOKE_JSON_LINE, stderr);
		(void)fputc('\n', stderr);
	}
}
