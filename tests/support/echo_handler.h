/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of services that answer with their first argument. */
#ifndef TESTS_SUPPORT_ECHO_HANDLER_H
#define TESTS_SUPPORT_ECHO_HANDLER_H

#include <spoke/provider.h>
#include <spoke/value.h>

static inline void echo_handler(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)arg;
	if (spoke_cursor_next(&args, &value))
		spoke_reply(request, value);
	else
		spoke_reply_error(request, 1, "echo: argument missing");
}

#endif
