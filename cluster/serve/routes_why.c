/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a service is refused: finds the handler, or the other service, that is the reason.
 */
#include "cluster/serve/routes.h"

#include "core/base/log.h"

#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define SHOWN 64u /* bytes of a name */

static bool is_first(const struct spoke_handler *handlers, size_t at)
{
	const char *method = handlers[at].method;

	for (size_t i = 0; i < at; i++) {
		const char *before = handlers[i].method;

		if (method == before || (method && before && strcmp(method, before) == 0))
			return false;
	}
	return true;
}

static void explain_handler(const struct spoke_handler *handlers, size_t at, const char *service,
			    char *why, size_t size)
{
	const struct spoke_handler *handler = &handlers[at];
	char method[SHOWN];

	(void)spokei_log_escape(method, sizeof(method), handler->method ? handler->method : "",
				handler->method ? strlen(handler->method) : 0);
	if (handler->method && *handler->method == '\0') {
		(void)snprintf(why, size, "handler %zu of %s has an empty name; NULL: all others",
			       at, service);
	} else if (handler->handle == NULL) {
		(void)snprintf(why, size, "method \"%s\" of %s has no function", method, service);
	} else if (handler->flags & ~(unsigned)(SPOKE_HANDLER_POOL | SPOKE_HANDLER_SAFE)) {
		(void)snprintf(why, size, "method \"%s\" of %s has unknown flags", method, service);
	} else if (!is_first(handlers, at) && handler->method) {
		(void)snprintf(why, size, "method \"%s\" of %s is there twice", method, service);
	} else if (!is_first(handlers, at)) {
		(void)snprintf(why, size, "%s has two handlers for all other methods", service);
	}
}

void spokei_routes_explain(const struct spoke_service_options *options,
			   const struct spoke_handler *handlers, size_t count, int error, char *why,
			   size_t size)
{
	const char *name = options->name ? options->name : "";
	char service[SHOWN];

	(void)spokei_log_escape_end(service, sizeof(service), name, strlen(name));
	*why = '\0';
	if (error == SPOKE_ETOOLARGE) {
		(void)snprintf(why, size,
			       "the names of %s are too long: version and group with it, and a "
			       "method, have at most %u bytes",
			       service, SPOKEI_SERVICE_KEY_MAX - 2);
		return;
	}
	if (*name == '\0') {
		(void)snprintf(why, size, "it has no name; write e.g. demo.EchoService");
		return;
	}
	for (size_t i = 0; handlers && i < count && *why == '\0'; i++)
		explain_handler(handlers, i, service, why, size);
	if (*why)
		return;
	if (error == SPOKE_EEXIST)
		(void)snprintf(why, size, "%s is there already, with the same version and group",
			       service);
	else
		(void)snprintf(why, size, "%s has %zu handlers at no address, or too many", service,
			       count);
}
