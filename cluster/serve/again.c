/* SPDX-License-Identifier: Apache-2.0 */
/* Tells of handlers that answer a request twice. The names are gone with the message, unless the
 * handler still runs. */
#include "cluster/serve/parts.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/wire/message.h"

#define SHOWN 64u /* bytes of a name */

void spokei_request_tell_again(struct spoke_request *request)
{
	const struct spokei_message *message = request->message;
	char service[SHOWN];
	char method[SHOWN];

	(void)spokei_log_escape_end(service, sizeof(service), message->service.data,
				    message->service.len);
	(void)spokei_log_escape(method, sizeof(method), message->method.data, message->method.len);
	spokei_event(request->engine, SPOKE_ESTATE,
		     "handler of \"%s\", method \"%s\", answers a request twice; only the first "
		     "answer is sent, mend the handler",
		     service, method);
}

SPOKEI_NOINLINE void spokei_request_answered_again(struct spoke_request *request)
{
	atomic_store_explicit(&request->again, true, memory_order_relaxed);
	if (!request->on_pool)
		spokei_request_tell_again(request);
}
