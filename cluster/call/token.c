/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens on wires without attachments: a connection shows its token once, by the request "$token",
 * before all others. Its answer is not awaited, because requests are judged in their order; a peer
 * that refuses the token refuses the next request, too.
 */
#include "cluster/call/token.h"

#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/tokens.h"
#include "core/value/builder.h"
#include "transport/conn/conn.h"

#define TIMEOUT_NS UINT64_C(10000000000)
#define METHOD "$token"
#define SHOWN_MAX 3u /* times that it is shown again on one connection */

/* A request in flight. */
struct showing {
	struct spokei_pending pending;
	struct spokei_conn *conn;
	const struct spoke_env *env;
};

/* A token that was not written, or was refused, is shown before the next request: the peer may
 * accept it by then. A peer that knows no tokens is not asked for ever. */
static void shown(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	struct showing *showing = spoke_container_of(pending, struct showing, pending);

	if (!outcome->written || (outcome->error && showing->conn->unshown++ < SHOWN_MAX))
		showing->conn->showed = 0;
	spokei_free(showing->env, showing, 1, sizeof(*showing));
}

static int send_token(struct spokei_conn *conn, struct spoke_span service, struct spoke_span token)
{
	const struct spoke_env *env = conn->stream.engine->env;
	unsigned char bytes[SPOKEI_TOKEN_MAX + 8];
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.two_way = true,
		.codec = conn->asked_codec,
		.service = service,
		.method = { METHOD, sizeof(METHOD) - 1 },
		.arg_count = 1,
	};
	struct spoke_builder builder;
	struct showing *showing;
	int error;

	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_str(&builder, token.data, token.len);
	error = spoke_builder_finish(&builder, &message.args);
	if (error)
		return error;
	showing = spokei_alloc(env, 1, sizeof(*showing));
	if (showing == NULL)
		return SPOKE_ENOMEM;
	showing->conn = conn;
	showing->env = env;
	showing->pending.done = shown;
	showing->pending.timeout_ns = TIMEOUT_NS;
	error = spokei_conn_call(conn, &showing->pending, &message);
	if (error)
		spokei_free(env, showing, 1, sizeof(*showing));
	return error;
}

int spokei_token_show(struct spokei_conn *conn, struct spoke_span service, const char *token)
{
	struct spoke_span text = { token, strlen(token) };
	uint64_t print = spokei_token_print(text.data, text.len);
	int error;

	if (conn->showed == print)
		return SPOKE_OK;
	error = send_token(conn, service, text);
	if (error == SPOKE_OK)
		conn->showed = print;
	return error;
}
