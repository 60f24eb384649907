/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the TLS of consumers and providers into the status and the metrics. */
#include "cluster/admin/secure.h"

#include "cluster/admin/members.h"
#include "cluster/admin/metrics.h"
#include "cluster/consumer/consumer.h"
#include "cluster/provider/provider.h"
#include "core/engine/engine.h"
#include "core/json/document.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/stream/tls/tls.h"

#include <spoke/tls.h>

#define DAY_S INT64_C(86400)

/* Returns whether there is a certificate, and the days until it ends: negative, if it has. */
static bool find_days(const struct spoke_engine *engine, const struct spokei_tls *tls,
		      int64_t *ret_days)
{
	const struct spoke_env *env = engine->env;
	int64_t ends_s = tls ? spokei_tls_ends(tls) : 0;
	int64_t left_s;

	if (ends_s == 0)
		return false;
	left_s = ends_s - (int64_t)(env->wall(env->ctx) / UINT64_C(1000000000));
	*ret_days = left_s < 0 ? -(-left_s + DAY_S - 1) / DAY_S : left_s / DAY_S;
	return true;
}

void spokei_status_certificate(struct spokei_json *json, const struct spoke_engine *engine,
			       const struct spokei_tls *tls)
{
	int64_t days;

	if (find_days(engine, tls, &days))
		spokei_json_put_u64(json, "certificate_days", days < 0 ? 0 : (uint64_t)days);
}

/* --- metrics */

static void put_days(struct spokei_lines *lines, const struct spoke_engine *engine,
		     const char *kind, unsigned at, const struct spokei_tls *tls)
{
	int64_t days;

	if (find_days(engine, tls, &days))
		spokei_lines_put(lines, "spoke_tls_certificate_days{%s=\"%u\"} %" PRId64 "\n", kind,
				 at, days);
}

static void put_certificates(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	const struct spoke_consumer *consumer = spokei_members_consumer(engine, NULL);
	const struct spoke_provider *provider = spokei_members_provider(engine, NULL);

	spokei_metrics_family(lines, "spoke_tls_certificate_days", "gauge",
			      "days until the own certificate ends; negative: it has ended.");
	for (unsigned at = 1; consumer && at <= SPOKEI_METRICS_ROWS; at++) {
		put_days(lines, engine, "consumer", at, spokei_consumer_look(consumer).tls);
		consumer = spokei_members_consumer(engine, consumer);
	}
	for (unsigned at = 1; provider && at <= SPOKEI_METRICS_ROWS; at++) {
		put_days(lines, engine, "provider", at, spokei_provider_look(provider).tls);
		provider = spokei_members_provider(engine, provider);
	}
}

static uint32_t count_secured(const struct spokei_link *link)
{
	uint32_t count = 0;

	for (struct spoke_list *node = link->conns.next; node != &link->conns; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		count += spokei_stream_look(&conn->stream, NULL);
	}
	return count;
}

void spokei_metrics_tls(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	const struct spoke_provider *provider = spokei_members_provider(engine, NULL);

	put_certificates(lines, engine);
	spokei_metrics_family(lines, "spoke_provider_tls_connections", "gauge",
			      "connections of a provider that use TLS.");
	for (unsigned at = 1; provider && at <= SPOKEI_METRICS_ROWS; at++) {
		const struct spokei_provider_view view = spokei_provider_look(provider);

		if (view.tls) {
			spokei_lines_put(lines,
					 "spoke_provider_tls_connections{provider=\"%u\"} "
					 "%" PRIu32 "\n",
					 at, count_secured(view.link));
		}
		provider = spokei_members_provider(engine, provider);
	}
}
