/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces TLS if the library is missing: nothing falls back to plain bytes. */
#include "transport/stream/tls/tls.h"

#ifndef SPOKE_WITH_TLS

#include <stdio.h>

#define SENTENCE "tls: not built in; build spoke with OpenSSL 3 (apt-get install libssl-dev)"

int spokei_tls_new(struct spoke_engine *engine, const struct spokei_tls_options *options,
		   char why[SPOKEI_TLS_WHY], struct spokei_tls **ret_tls)
{
	(void)engine;
	(void)options;
	(void)ret_tls;
	(void)snprintf(why, SPOKEI_TLS_WHY, "%s", SENTENCE);
	return SPOKE_EUNSUPPORTED;
}

int spokei_tls_check_peers(const struct spoke_env *env, const char *list, char why[SPOKEI_TLS_WHY])
{
	(void)env;
	(void)list;
	(void)why;
	return SPOKE_OK;
}

void spokei_tls_limit(struct spokei_tls *tls, const struct spokei_tls_limits *limits)
{
	(void)tls;
	(void)limits;
}

void spokei_tls_watch(struct spokei_tls *tls, void (*refuse)(struct spokei_stream *stream))
{
	(void)tls;
	(void)refuse;
}

void spokei_tls_reload(struct spokei_tls *tls)
{
	(void)tls;
}

void spokei_tls_hold(struct spokei_tls *tls, struct spoke_list *held)
{
	(void)tls;
	(void)held;
}

void spokei_tls_read_held(struct spoke_list *held)
{
	(void)held;
}

int spokei_tls_verdict(const struct spoke_list *held)
{
	(void)held;
	return SPOKE_OK;
}

void spokei_tls_let_go(struct spoke_list *held, bool takes)
{
	(void)held;
	(void)takes;
}

void spokei_tls_free(struct spokei_tls *tls)
{
	(void)tls;
}

int64_t spokei_tls_ends(const struct spokei_tls *tls)
{
	(void)tls;
	return 0;
}

enum spoke_tls_verify spokei_tls_verifies(const struct spokei_tls *tls)
{
	(void)tls;
	return SPOKE_TLS_VERIFY_DEFAULT;
}

const struct spokei_stream_kind *spokei_tls_kind(const struct spokei_tls *tls)
{
	(void)tls;
	return &spokei_stream_socket;
}

const struct spokei_stream_kind *spokei_tls_secure_kind(const struct spokei_tls *tls)
{
	(void)tls;
	return &spokei_stream_socket;
}

const struct spokei_stream_kind *spokei_tls_or_plain(const struct spokei_tls *tls)
{
	(void)tls;
	return &spokei_stream_socket;
}

#endif
