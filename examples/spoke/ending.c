/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes and error messages of verbs. */
#include "examples/spoke/ending.h"

#include <spoke/error.h>
#include <spoke/host.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int output_errno; /* of the first output that could not be written */

int ending_say(int end, const char *verb, const char *format, ...)
{
	va_list args;

	(void)ending_show();
	(void)fprintf(stderr, "spoke%s%s: ", *verb ? " " : "", verb);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	return end;
}

int ending_quiet_engine(const struct spoke_engine_options *options,
			struct spoke_engine **ret_engine)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_engine_options with = *options;

	if (!with.log && !env->variable(env->ctx, "SPOKE_LOG"))
		with.log = "off";
	return spoke_engine_new(&with, ret_engine);
}

bool ending_show(void)
{
	if (fflush(stdout) && !output_errno)
		output_errno = errno;
	return !ferror(stdout);
}

int ending_flush(int end, const char *verb)
{
	const char *reason = "some of it is lost";

	if (ending_show() || output_errno == EPIPE)
		return end;
	/* Without a number, a print has failed before it could be flushed. */
	if (output_errno)
		reason = strerror(output_errno); /* NOLINT(concurrency-mt-unsafe): one thread */
	return ending_say(VERB_REMOTE, verb, "cannot write the output: %s", reason);
}

const char *ending_reason(const struct spoke_link_event *event)
{
	if (event->reason && *event->reason)
		return event->reason;
	return event->error ? spoke_strerror(event->error) : "";
}

void ending_cause(const char *reason, struct spoke_span text, int error, char *out, size_t size)
{
	const char *behind;

	(void)snprintf(out, size, "%.*s", (int)text.len, text.len ? (const char *)text.data : "");
	behind = strstr(out, ": ");
	if (*reason)
		(void)snprintf(out, size, "%s", reason);
	else if (behind)
		memmove(out, behind + 2, strlen(behind + 2) + 1);
	else if (error != SPOKE_EHANDSHAKE || !*out) /* of a handshake the text is the cause */
		(void)snprintf(out, size, "%s", spoke_strerror(error));
}
