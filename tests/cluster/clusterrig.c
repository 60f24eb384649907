/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of consumer tests: see clusterrig.h. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct clusterrig clusterrig;

#define rig clusterrig

/* --- providers */

static void note_run(struct rig_provider *by, const struct spoke_request *request)
{
	struct spoke_value attachments = spoke_request_attachments(request);
	struct rig_run *run = &rig.run_list[rig.runs % RIG_RUNS];
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_cursor pairs;
	struct spoke_span name;
	struct spoke_span text;

	memset(run, 0, sizeof(*run));
	run->at_ns = rig.world.now_ns;
	run->provider = (unsigned)(by - rig.providers);
	rig.runs++;
	by->runs++;
	if (attachments.len == 0 || spoke_cursor_map(attachments, &pairs))
		return;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (spoke_value_str(key, &name) || spoke_value_str(value, &text))
			continue;
		if (name.len == 8 && memcmp(name.data, "spoke.id", 8) == 0 && text.len == 32)
			memcpy(run->id, text.data, 32);
		if (name.len == 12 && memcmp(name.data, "spoke.repeat", 12) == 0 && text.len < 32)
			memcpy(run->repeat, text.data, text.len);
		if (name.len == 13 && memcmp(name.data, "spoke.attempt", 13) == 0)
			run->attempt = (unsigned)strtoul((const char *)text.data, NULL, 10);
	}
}

static void slow_due(struct spoke_alarm *alarm)
{
	static const unsigned char nil[] = { 0xc0 };
	struct rig_slow *slow = spoke_container_of(alarm, struct rig_slow, alarm);
	struct spoke_request *request = slow->request;

	slow->request = NULL;
	spoke_reply(request, (struct spoke_value){ nil, 1 });
}

static void serve_slowly(struct rig_provider *by, struct spoke_request *request)
{
	uint64_t after_ns;
	unsigned at = 0;

	while (by->slow[at].request)
		assert_true(++at < RIG_RUNS);
	by->slow[at].request = request;
	by->dice = by->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	after_ns = (by->dice >> 20) % (2 * MS);
	if (by->dice >> 33 & 1 && by->dice >> 34 & 1 && by->dice >> 35 & 1 && by->dice >> 36 & 1)
		after_ns *= 8;
	after_ns += by->least_ns;
	assert_int_equal(spoke_alarm_after(by->engine, &by->slow[at].alarm, after_ns, slow_due), 0);
}

static void serve(struct spoke_request *request, void *arg)
{
	struct rig_provider *by = arg;
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { 0 };

	note_run(by, request);
	assert_true(spoke_cursor_next(&args, &value));
	if (by->manner == RIG_ERROR) {
		spoke_reply_error(request, 7, "as it was told");
	} else if (by->manner == RIG_SLOW) {
		serve_slowly(by, request);
	} else if (by->manner == RIG_SILENT) {
		assert_true(by->held_count < RIG_RUNS);
		by->held[by->held_count++] = request;
	} else {
		spoke_reply(request, value);
	}
}

static struct spoke_filter_verdict refuse(void *arg, const struct spoke_request *request)
{
	const struct rig_provider *by = arg;

	(void)request;
	if (by->manner == RIG_REFUSE)
		return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_REFUSE,
						      .error = SPOKE_EREFUSED };
	if (by->manner == RIG_FORBID)
		return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_REFUSE,
						      .error = SPOKE_EFORBIDDEN };
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

void clusterrig_start(unsigned which)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static struct spoke_filter filters[RIG_PROVIDERS];
	static const struct spoke_filter *list[RIG_PROVIDERS];
	struct rig_provider *by = &rig.providers[which];
	struct spoke_engine_options engine = { .env = &by->process.env };
	struct spoke_handler handler = { .handle = serve, .arg = by };
	struct spoke_provider_options options = { .filters = &list[which],
						  .filter_count = 1,
						  .dedupe_ns = rig.dedupe_ns };

	filters[which] = (struct spoke_filter){
		.name = "refuse",
		.arg = by,
		.before_request = refuse,
	};
	list[which] = &filters[which];
	assert_null(by->engine);
	assert_int_equal(spoke_engine_new(&engine, &by->engine), 0);
	assert_int_equal(spoke_provider_new(by->engine, &options, &by->provider), 0);
	assert_int_equal(spoke_provider_add(by->provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(by->provider, by->url), 0);
}

void clusterrig_kill(unsigned which)
{
	struct rig_provider *by = &rig.providers[which];

	for (unsigned i = 0; i < by->held_count; i++)
		spoke_reply_error(by->held[i], 1, "gone");
	by->held_count = 0;
	for (unsigned i = 0; i < RIG_RUNS; i++) {
		if (by->slow[i].request == NULL)
			continue;
		(void)spoke_alarm_cancel(&by->slow[i].alarm);
		slow_due(&by->slow[i].alarm);
	}
	spoke_engine_free(by->engine);
	by->engine = NULL;
}

void clusterrig_provide(unsigned count)
{
	rig.provider_count = count;
	for (unsigned i = 0; i < count; i++)
		clusterrig_start(i);
}

/* --- set-up */

RIG_STEP(clusterrig_set_up)
{
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 5);
	rig.engine = scene_engine(&rig.world, &rig.process, &rig.faulty, NULL);
	for (unsigned i = 0; i < RIG_PROVIDERS; i++) {
		struct rig_provider *by = &rig.providers[i];

		spokei_world_process_init(&by->process, &rig.world);
		(void)snprintf(by->address, sizeof(by->address), "127.0.0.1:%u", 20880 + i);
		(void)snprintf(by->url, sizeof(by->url), "dubbo://%s", by->address);
	}
}

RIG_STEP(clusterrig_tear_down)
{
	for (unsigned i = 0; i < RIG_PROVIDERS; i++)
		if (rig.providers[i].engine)
			clusterrig_kill(i);
	scene_leave(&rig.process, NULL, &rig.engine);
	assert_int_equal(rig.ended, rig.call_count);
	for (unsigned i = 0; i < rig.call_count; i++) {
		assert_int_equal(rig.calls[i].ends, 1);
		assert_int_equal(rig.calls[i].settled, rig.calls[i].error == SPOKE_EDEFERRED);
	}
	for (unsigned i = 0; i < RIG_PROVIDERS; i++)
		spokei_world_process_fini(&rig.providers[i].process);
	spokei_world_fini(&rig.world);
}

/* --- the consumer */

static struct rig_call *call_of(struct spoke_ticket ticket)
{
	for (unsigned i = rig.call_count; i > 0; i--)
		if (rig.calls[i - 1].ticket.handle == ticket.handle && !rig.calls[i - 1].settled)
			return &rig.calls[i - 1];
	return NULL;
}

static void settled(void *arg, const struct spoke_ticket_result *how)
{
	struct rig_call *call = call_of(how->ticket);

	(void)arg;
	assert_false(rig.calling);
	if (call == NULL) {
		fail_msg("a ticket that nobody has");
		return;
	}
	assert_int_equal(call->error, SPOKE_EDEFERRED);
	call->settled++;
	call->settlement = how->settlement;
	call->settled_error = how->result->error;
	call->settled_attempts = how->attempts;
	call->lasted_ns = how->lasted_ns;
	call->id = how->id;
	rig.settled++;
	rig.settled_by[how->settlement]++;
	if (rig.in_settled)
		rig.in_settled(call);
}

void clusterrig_consume(const char *query, const struct spoke_consumer_options *options)
{
	struct spoke_consumer_options with = { 0 };
	char first[256];
	const char *more[RIG_PROVIDERS];
	unsigned running = 0;

	if (options)
		with = *options;
	(void)snprintf(first, sizeof(first), "%s/demo.Echo?%s", rig.providers[0].url, query);
	with.url = first;
	for (unsigned i = 1; i < rig.provider_count; i++)
		more[i - 1] = rig.providers[i].url;
	with.more_urls = more;
	with.more_count = rig.provider_count - 1;
	with.settled = settled;
	assert_int_equal(spoke_consumer_new(rig.engine, &with, &rig.consumer), 0);
	for (unsigned i = 0; i < rig.provider_count; i++)
		running += rig.providers[i].engine != NULL;
	for (unsigned i = 0; i < 1000 && spoke_consumer_ready(rig.consumer) < running; i++)
		clusterrig_pass(MS);
}

struct spoke_method *clusterrig_method(const char *name, const struct spoke_method_options *options)
{
	struct spoke_method *method = NULL;

	assert_int_equal(spoke_consumer_method(rig.consumer, name, options, &method), 0);
	return method;
}

void clusterrig_pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

uint64_t clusterrig_stat(enum spoke_stat stat)
{
	return spoke_stat_get(rig.engine, stat);
}

static void done(void *arg, const struct spoke_result *result)
{
	struct rig_call *call = arg;

	assert_false(rig.calling);
	call->ends++;
	rig.ended++;
	call->error = result->error;
	call->attempts = result->attempts;
	call->written = result->written;
	call->fallback = result->fallback;
	call->ticket = result->ticket;
	if (rig.in_done)
		rig.in_done(call);
}

int clusterrig_try(struct spoke_method *method, const struct spoke_call_options *options)
{
	static const unsigned char one[] = { 0x01 };
	struct rig_call *call = &rig.calls[rig.call_count];
	bool was = rig.calling;
	int error;

	assert_true(rig.call_count < RIG_CALLS);
	rig.calling = true;
	rig.call_count++;
	error = spoke_call(method, (struct spoke_span){ one, 1 }, options, done, call, &call->name);
	rig.calling = was;
	if (error)
		rig.call_count--;
	return error;
}

struct rig_call *clusterrig_call_with(struct spoke_method *method,
				      const struct spoke_call_options *options)
{
	struct rig_call *call = &rig.calls[rig.call_count];

	assert_int_equal(clusterrig_try(method, options), 0);
	return call;
}

struct rig_call *clusterrig_call(struct spoke_method *method)
{
	return clusterrig_call_with(method, NULL);
}

void clusterrig_end(struct rig_call *call)
{
	for (unsigned i = 0; i < 100000 && call->ends == 0; i++)
		clusterrig_pass(MS);
	assert_int_equal(call->ends, 1);
}

struct spoke_method *clusterrig_failback(const char *query)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "cluster=failback&%s", query);
	clusterrig_consume(text, NULL);
	return clusterrig_method("echo", NULL);
}

struct rig_call *clusterrig_deferred(struct spoke_method *method)
{
	struct rig_call *call = clusterrig_call(method);

	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EDEFERRED);
	assert_true(call->ticket.handle != 0);
	return call;
}

void clusterrig_free_consumer(void)
{
	spoke_consumer_free(rig.consumer);
	rig.consumer = NULL;
}
