/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the metrics of consumers, endpoints and providers. */
#include "cluster/admin/members.h"
#include "cluster/admin/metrics.h"
#include "cluster/call/caller.h"
#include "cluster/consumer/consumer.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/info.h"
#include "cluster/provider/provider.h"
#include "transport/conn/link.h"

/* A family with one row for each consumer, endpoint or provider. */
struct family {
	const char *name;
	const char *type;
	const char *help;
};

static void put_owner(struct spokei_lines *lines, const char *name, const char *kind, unsigned at)
{
	spokei_lines_put(lines, "%s{%s=\"%u\"", name, kind, at);
}

/* --- consumers */

enum of_consumer {
	CALLS,
	READY,
	TICKETS,
	TICKET_BYTES,
	OF_CONSUMER,
};

static const struct family of_consumer[OF_CONSUMER] = {
	[CALLS] = { "spoke_calls_in_flight", "gauge", "calls in flight, without tickets." },
	[READY] = { "spoke_endpoints_ready", "gauge", "endpoints that are connected and healthy." },
	[TICKETS] = { "spoke_tickets", "gauge", "failback calls that wait as tickets." },
	[TICKET_BYTES] = { "spoke_ticket_bytes", "gauge", "bytes held by tickets." },
};

static uint64_t value_of(const struct spoke_consumer *consumer, enum of_consumer which)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);

	switch (which) {
	case CALLS:
		return spokei_members_calls(consumer);
	case READY:
		return spokei_directory_ready(view.directory);
	case TICKETS:
		return view.caller->retry.tasks;
	case TICKET_BYTES:
		return view.caller->retry.bytes;
	case OF_CONSUMER:
		break;
	}
	return 0;
}

/* Counts the endpoints in each state. */
static void put_states(struct spokei_lines *lines, const struct spoke_consumer *consumer,
		       unsigned at)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);
	uint64_t counts[SPOKE_ENDPOINT_REMOVED + 1] = { 0 };
	const struct spokei_endpoint *endpoint = NULL;

	while ((endpoint = spokei_directory_next(view.directory, endpoint)) != NULL)
		counts[spokei_endpoint_state(endpoint)]++;
	for (unsigned i = 0; i <= SPOKE_ENDPOINT_REMOVED; i++) {
		put_owner(lines, "spoke_endpoints", "consumer", at);
		spokei_metrics_label(lines, ",", "service", view.service);
		spokei_lines_put(lines, ",state=\"%s\"} %" PRIu64 "\n",
				 spoke_endpoint_state_name((enum spoke_endpoint_state)i),
				 counts[i]);
	}
}

void spokei_metrics_consumers(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	const struct spoke_consumer *consumer;
	unsigned at;

	for (unsigned i = 0; i < OF_CONSUMER; i++) {
		const struct family *family = &of_consumer[i];

		spokei_metrics_family(lines, family->name, family->type, family->help);
		consumer = spokei_members_consumer(engine, NULL);
		for (at = 1; consumer && at <= SPOKEI_METRICS_ROWS; at++) {
			put_owner(lines, family->name, "consumer", at);
			spokei_metrics_label(lines, ",", "service",
					     spokei_consumer_look(consumer).service);
			spokei_lines_put(lines, "} %" PRIu64 "\n",
					 value_of(consumer, (enum of_consumer)i));
			consumer = spokei_members_consumer(engine, consumer);
		}
	}
	spokei_metrics_family(lines, "spoke_endpoints", "gauge", "endpoints by state.");
	consumer = spokei_members_consumer(engine, NULL);
	for (at = 1; consumer && at <= SPOKEI_METRICS_ROWS / 8; at++) {
		put_states(lines, consumer, at);
		consumer = spokei_members_consumer(engine, consumer);
	}
}

/* --- endpoints */

enum of_endpoint {
	ACTIVES,
	BEGUN,
	FAILURES,
	MISSED,
	EJECTED,
	SECURED,
	MEAN,
	OF_ENDPOINT,
};

static const struct family of_endpoint[OF_ENDPOINT] = {
	[ACTIVES] = { "spoke_endpoint_calls_in_flight", "gauge",
		      "calls in flight at the endpoint." },
	[BEGUN] = { "spoke_endpoint_calls_total", "counter",
		    "attempts that were sent to the endpoint." },
	[FAILURES] = { "spoke_endpoint_failures_total", "counter",
		       "attempts that failed at the endpoint." },
	[MISSED] = { "spoke_endpoint_heartbeats_missed", "gauge",
		     "consecutive heartbeats without a reply." },
	[EJECTED] = { "spoke_endpoint_ejected", "gauge", "1: ejected after consecutive failures." },
	[SECURED] = { "spoke_endpoint_tls", "gauge", "1: a connection to it uses TLS." },
	[MEAN] = { "spoke_endpoint_duration_mean_seconds", "gauge",
		   "recent mean duration of answered calls; 0: none." },
};

/* Two listed endpoints of a consumer differ in at least one of these labels. */
static void put_labels(struct spokei_lines *lines, const char *service,
		       const struct spokei_endpoint *endpoint)
{
	spokei_metrics_label(lines, ",", "service", service);
	spokei_metrics_label(lines, ",", "endpoint", endpoint->name);
	spokei_metrics_label(lines, ",", "wire", endpoint->options.wire->name);
	if (*endpoint->group)
		spokei_metrics_label(lines, ",", "group", endpoint->group);
	if (*endpoint->version)
		spokei_metrics_label(lines, ",", "version", endpoint->version);
	spokei_lines_put(lines, "}");
}

static void put_value(struct spokei_lines *lines, const struct spokei_endpoint *endpoint,
		      enum of_endpoint which)
{
	struct spoke_endpoint_info info;
	uint64_t number = 0;

	spokei_endpoint_info(endpoint, &info);
	switch (which) {
	case MEAN:
		spokei_metrics_seconds(lines, info.mean_ns);
		return;
	case ACTIVES:
		number = info.actives;
		break;
	case FAILURES:
		number = info.failures;
		break;
	case MISSED:
		number = info.missed;
		break;
	case EJECTED:
		number = info.ejected;
		break;
	case SECURED:
		number = info.tls;
		break;
	case BEGUN:
		number = info.calls;
		break;
	case OF_ENDPOINT:
		break;
	}
	spokei_lines_put(lines, " %" PRIu64 "\n", number);
}

/* Endpoints that are no longer listed are omitted, because their labels may be in use again. */
static unsigned put_endpoints(struct spokei_lines *lines, const struct spoke_consumer *consumer,
			      unsigned at, enum of_endpoint which, unsigned room)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);
	const struct spokei_candidates *candidates = &view.directory->candidates;
	unsigned rows = 0;

	for (size_t i = 0; i < candidates->shown.count && rows < room; i++, rows++) {
		const struct spokei_endpoint *endpoint = candidates->endpoints[i];

		put_owner(lines, of_endpoint[which].name, "consumer", at);
		put_labels(lines, view.service, endpoint);
		put_value(lines, endpoint, which);
	}
	return rows;
}

void spokei_metrics_endpoints(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	for (unsigned i = 0; i < OF_ENDPOINT; i++) {
		const struct family *family = &of_endpoint[i];
		const struct spoke_consumer *consumer = spokei_members_consumer(engine, NULL);
		unsigned room = SPOKEI_METRICS_ROWS;

		spokei_metrics_family(lines, family->name, family->type, family->help);
		for (unsigned at = 1; consumer && room > 0; at++) {
			room -= put_endpoints(lines, consumer, at, (enum of_endpoint)i, room);
			consumer = spokei_members_consumer(engine, consumer);
		}
	}
}

/* --- providers */

void spokei_metrics_providers(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	static const struct family families[] = {
		{ "spoke_provider_connections", "gauge", "connections of a provider." },
		{ "spoke_requests_in_flight", "gauge", "requests being served." },
		{ "spoke_provider_draining", "gauge", "1: the provider accepts no more requests." },
	};

	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct spoke_provider *provider = spokei_members_provider(engine, NULL);

		spokei_metrics_family(lines, families[i].name, families[i].type, families[i].help);
		for (unsigned at = 1; provider && at <= SPOKEI_METRICS_ROWS; at++) {
			const struct spokei_provider_view view = spokei_provider_look(provider);
			const uint32_t values[] = { view.link->conn_count, view.link->serving_count,
						    view.draining };

			put_owner(lines, families[i].name, "provider", at);
			spokei_lines_put(lines, "} %" PRIu32 "\n", values[i]);
			provider = spokei_members_provider(engine, provider);
		}
	}
}
