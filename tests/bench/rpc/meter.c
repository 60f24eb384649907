/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of a client; see meter.h. */
#include "meter.h"

#include <string.h>
#include <unistd.h>

/* Returns the middle of a bucket. */
static uint64_t bucket_ns(uint32_t bucket)
{
	uint32_t shift;
	uint64_t low;

	if (bucket < METER_STEPS)
		return bucket;
	shift = bucket / METER_STEPS - 1;
	low = (uint64_t)(METER_STEPS + bucket % METER_STEPS) << shift;
	return low + ((UINT64_C(1) << shift) >> 1);
}

static uint64_t percentile_ns(const struct meter *meter, uint32_t percent)
{
	uint64_t rank = (meter->calls * percent + 99) / 100;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < METER_BUCKETS; i++) {
		seen += meter->latency[i];
		if (seen >= rank)
			return bucket_ns(i);
	}
	return bucket_ns(METER_BUCKETS - 1);
}

static struct host_calls minus(const struct host_calls *a, const struct host_calls *b)
{
	return (struct host_calls){
		.reads = a->reads - b->reads,
		.writes = a->writes - b->writes,
		.waits = a->waits - b->waits,
		.others = a->others - b->others,
		.bytes_read = a->bytes_read - b->bytes_read,
		.bytes_written = a->bytes_written - b->bytes_written,
	};
}

/* Saves all counters. */
static struct rpc_report read_gauges(const struct meter *meter)
{
	return (struct rpc_report){
		.elapsed_ns = meter->now_ns,
		.server_cpu_ns = host_cpu_ns(meter->plan->server_pid),
		.client_cpu_ns = host_cpu_ns(getpid()),
		.server = host_peek(meter->server_calls),
		.client = host_peek(host_calls),
	};
}

static void begin_span(struct meter *meter)
{
	*meter->report = read_gauges(meter);
	/* Calls that failed in the warm-up count as well. */
	meter->calls = 0;
	memset(meter->latency, 0, sizeof(meter->latency));
	meter->phase = METER_SPAN;
	meter->phase_end_ns = meter->now_ns + meter->plan->span_ns;
}

static void end_span(struct meter *meter)
{
	struct rpc_report from = *meter->report;
	struct rpc_report to = read_gauges(meter);

	*meter->report = (struct rpc_report){
		.elapsed_ns = to.elapsed_ns - from.elapsed_ns,
		.calls = meter->calls,
		.failed = meter->failed,
		.p50_ns = percentile_ns(meter, 50),
		.p99_ns = percentile_ns(meter, 99),
		.server_cpu_ns = to.server_cpu_ns - from.server_cpu_ns,
		.client_cpu_ns = to.client_cpu_ns - from.client_cpu_ns,
		.server = minus(&to.server, &from.server),
		.client = minus(&to.client, &from.client),
	};
	meter->phase = METER_OVER;
	meter->phase_end_ns = UINT64_MAX;
}

void meter_open(struct meter *meter, const struct rpc_plan *plan,
		const struct host_calls *server_calls, struct rpc_report *report)
{
	*meter = (struct meter){
		.plan = plan,
		.server_calls = server_calls,
		.report = report,
		.phase = METER_WARM,
		.batch = UINT64_MAX,
	};
	meter_restart(meter);
}

void meter_restart(struct meter *meter)
{
	meter->now_ns = host_now_ns();
	meter->phase_end_ns = meter->now_ns + meter->plan->warm_ns;
}

void meter_tick(struct meter *meter)
{
	meter->now_ns = host_now_ns();
	if (meter->now_ns < meter->phase_end_ns)
		return;
	if (meter->phase == METER_WARM)
		begin_span(meter);
	else if (meter->phase == METER_SPAN)
		end_span(meter);
}
