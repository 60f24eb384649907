/* SPDX-License-Identifier: Apache-2.0 */
/* Tells of answers that miss their callers: the second one to a request, and an exception of a
 * class that the caller may not know. The names are gone with the message, unless the handler still
 * runs. */
#include "cluster/serve/parts.h"
#include "core/base/log.h"
#include "core/engine/figures.h"
#include "transport/wire/message.h"

#define SHOWN 64u /* bytes of a name */
/* ... of those in a long sentence */
#define SERVICE_SHOWN 44u
#define METHOD_SHOWN 24u
#define CLASS_SHOWN 44u

/* Returns whether every consumer of Dubbo can read exceptions of the class, or of none. */
static bool is_of_dubbo(struct spoke_span name)
{
	static const char *const packages[] = { "java.lang.", "org.apache.dubbo." };
	bool found = name.len == 0;

	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(packages[i]);

		found = found || (name.len > len && memcmp(name.data, packages[i], len) == 0);
	}
	return found;
}

void spokei_request_tell_class(const struct spoke_request *request,
			       const struct spokei_message *answer)
{
	struct spokei_figures *figures = request->figures;
	const char *of = figures->service;
	char service[SERVICE_SHOWN];
	char method[METHOD_SHOWN];
	char name[CLASS_SHOWN];

	if (figures->class_told || !answer->foreign || answer->generic ||
	    is_of_dubbo(answer->error_class))
		return;
	figures->class_told = true;
	(void)spokei_log_escape_end(service, sizeof(service), of, strlen(of));
	(void)spokei_log_escape(method, sizeof(method), figures->method, strlen(figures->method));
	(void)spokei_log_escape_end(name, sizeof(name), answer->error_class.data,
				    answer->error_class.len);
	spokei_event(request->engine, SPOKE_OK,
		     "\"%s\" %s throws %s: unless Java's interface or serialize.allowlist names "
		     "it, callers see RpcException and retry (set retries=0)",
		     service, method, name);
}

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
