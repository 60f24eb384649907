/* SPDX-License-Identifier: Apache-2.0 */
/* Checks callers by the lists of the provider and of the service. */
#include "cluster/serve/callers.h"

#include "cluster/serve/gate.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#include <stdio.h>

#define NAME_SHOWN 80u /* bytes of a service in the answer, and of the caller's name */

/* Writes the strongest name of a peer, escaped. */
static void show_caller(const struct spokei_conn *conn, char shown[NAME_SHOWN])
{
	const struct spoke_env *env = conn->stream.engine->env;
	char name[SPOKEI_IDENTITY_NAME];

	if (spokei_identity_print(env, conn->identity, &conn->peer, 0, name, sizeof(name)) == 0)
		(void)snprintf(name, sizeof(name), "a caller without a name");
	(void)spokei_log_escape_end(shown, NAME_SHOWN, name, strlen(name));
}

/* Writes a line about a connection that a list has refused for the first time. */
static void log_refused(const struct spokei_conn *conn, const char *service, const char *caller)
{
	struct spoke_engine *engine = conn->stream.engine;
	char peer[NAME_SHOWN];

	engine->env->net->print(engine->env->ctx, &conn->peer, peer, sizeof(peer));
	spokei_log(engine->log, SPOKE_LOG_WARN, "provider", SPOKEI_LOG_AUTH, engine->begin_ns,
		   "%s (%s) may not call %s: allow.callers", peer, caller, service);
}

/* Writes the name of a service, escaped; no name stands for the provider. */
static void show_service(struct spoke_span service, char shown[NAME_SHOWN])
{
	(void)spokei_log_escape_end(shown, NAME_SHOWN, service.data, service.len);
	if (*shown == '\0')
		(void)snprintf(shown, NAME_SHOWN, "the provider");
}

/* Makes the verdict on a caller that is not let in; its text is in `text`. The caller learns no
 * name that it has not sent: a request without one is for the default service, which the log names.
 */
static struct spoke_filter_verdict refuse(const struct spokei_conn *conn,
					  const struct spokei_message *message,
					  struct spoke_span service, bool is_new, char *text)
{
	char caller[NAME_SHOWN];
	char name[NAME_SHOWN];

	show_caller(conn, caller);
	show_service(service, name);
	if (is_new)
		log_refused(conn, name, caller);
	spokei_count(conn->stream.engine, SPOKE_STAT_REFUSED_CALLER);
	show_service(message->service, name);
	(void)snprintf(text, SPOKEI_GATE_TEXT, "%s does not let %s call it", name, caller);
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EFORBIDDEN,
		.text = text,
		.code = SPOKE_FORBIDDEN_CALLER,
	};
}

struct spoke_filter_verdict spokei_callers_judge(void *arg, const struct spoke_request *request)
{
	struct spokei_callers *const *callers = arg;
	bool is_new;

	if (spokei_conn_let_in(request->conn, *callers, &is_new) &&
	    spokei_conn_let_in(request->conn, request->service->callers, &is_new))
		return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
	return refuse(request->conn, request->message, request->service->name, is_new,
		      request->refusal);
}

bool spokei_callers_lets_know(void *arg, struct spokei_conn *conn,
			      const struct spokei_message *message, char *text,
			      struct spoke_filter_verdict *ret_verdict)
{
	struct spokei_callers *const *callers = arg;
	bool is_new;

	if (*callers == NULL || spokei_conn_let_in(conn, *callers, &is_new))
		return true;
	*ret_verdict = refuse(conn, message, message->service, is_new, text);
	return false;
}

bool spokei_callers_is_known(const struct spoke_request *request)
{
	return spokei_identity_is_known(request->conn ? request->conn->identity
						      : request->identity);
}
