/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of consumers with a journal: see lives.h. */
#include "tests/cluster/call/lives.h"

#include "core/virtual/files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct lives lives;

static void free_if(enum lives_frees here)
{
	struct spoke_consumer *consumer = lives.consumer;

	if (lives.frees != here)
		return;
	lives.consumer = NULL;
	spoke_consumer_free(consumer);
}

static void settled(void *arg, const struct spoke_ticket_result *how)
{
	struct lives_call *call = NULL;

	(void)arg;
	for (unsigned i = 0; i < lives.count; i++)
		if (lives.calls[i].id == how->id)
			call = &lives.calls[i];
	/* A ticket whose record was written, although it was not told before the end. */
	if (call == NULL)
		return;
	call->attempts = how->attempts;
	call->lasted_ns = how->lasted_ns;
	if (how->settlement == SPOKE_TICKET_KEPT) {
		call->kept++;
		return;
	}
	call->settled++;
	call->settlement = how->settlement;
	call->settled_error = how->result->error;
	lives.settled++;
	free_if(LIVES_FREE_IN_SETTLED);
}

static void recovered(void *arg, const struct spoke_recovered *what)
{
	(void)arg;
	lives.recovered = *what;
	lives.recoveries++;
	free_if(LIVES_FREE_IN_RECOVERED);
}

static void done(void *arg, const struct spoke_result *result)
{
	struct lives_call *call = arg;
	struct spoke_ticket_state state;

	call->ends++;
	call->error = result->error;
	(void)snprintf(call->text, sizeof(call->text), "%.*s", (int)result->error_text.len,
		       (const char *)result->error_text.data);
	if (result->error != SPOKE_EDEFERRED)
		return;
	assert_true(spoke_ticket_ask(lives.consumer, result->ticket, &state));
	call->id = state.id;
	call->told++;
	lives.told++;
}

RIG_STEP(lives_set_up)
{
	assert_int_equal(clusterrig_set_up(NULL), 0);
	memset(&lives, 0, sizeof(lives));
	lives.options.journal = LIVES_FOLDER;
	spokei_vfiles_harm(clusterrig.world.files, 1, NULL);
	(void)snprintf(lives.query, sizeof(lives.query),
		       "cluster=failback&retry.period=100ms&retries=50");
}

RIG_STEP(lives_tear_down)
{
	if (lives.engine) {
		spoke_engine_free(lives.engine);
		assert_int_equal(lives.process.blocks, 0);
		assert_int_equal(lives.process.user.fds, 0);
		spokei_world_process_fini(&lives.process);
	}
	assert_int_equal(clusterrig_tear_down(NULL), 0);
}

int lives_try(void)
{
	const struct spoke_engine_options options = { .env = &lives.process.env };
	struct spoke_consumer_options with = lives.options;
	char url[256];
	const char *more[RIG_PROVIDERS];
	int error;

	assert_null(lives.engine);
	spokei_world_process_init(&lives.process, &clusterrig.world);
	lives.process.boot_ahead_ns = lives.ahead_ns;
	assert_int_equal(spoke_engine_new(&options, &lives.engine), 0);
	lives.process.fail_at = lives.fail_at ? lives.process.demands + lives.fail_at : 0;
	(void)snprintf(url, sizeof(url), "%s/demo.Echo?%s", clusterrig.providers[0].url,
		       lives.query);
	with.url = url;
	for (unsigned i = 1; i < clusterrig.provider_count; i++)
		more[i - 1] = clusterrig.providers[i].url;
	with.more_urls = more;
	with.more_count = clusterrig.provider_count ? clusterrig.provider_count - 1 : 0;
	with.settled = settled;
	with.recovered = recovered;
	lives.recovered = (struct spoke_recovered){ .error = 1 };
	lives.recoveries = 0;
	error = spoke_consumer_new(lives.engine, &with, &lives.consumer);
	if (!error && !lives.lacks_method)
		error = spoke_consumer_method(lives.consumer, "echo", &lives.method, &lives.echo);
	return error;
}

void lives_begin(void)
{
	assert_int_equal(lives_try(), 0);
}

static void end_process(void)
{
	spokei_vfiles_cut(clusterrig.world.files, 0);
	spoke_engine_free(lives.engine);
	lives.engine = NULL;
	lives.consumer = NULL;
	assert_int_equal(lives.process.blocks, 0);
	spokei_world_process_fini(&lives.process);
}

void lives_kill(void)
{
	/* Callbacks of calls that end now are not those of a process. */
	static struct lives before;

	before = lives;
	lives.process.fail_at = 0;
	end_process();
	memcpy(lives.calls, before.calls, sizeof(lives.calls));
	lives.settled = before.settled;
	lives.told = before.told;
	spokei_vfiles_cut(clusterrig.world.files, UINT_MAX);
}

void lives_lose_power(void)
{
	lives_kill();
	spokei_vfiles_lose(clusterrig.world.files);
}

struct lives_call *lives_call(void)
{
	static const unsigned char one[] = { 0x01 };
	struct lives_call *call = &lives.calls[lives.count];
	int error;

	assert_true(lives.count < LIVES_CALLS);
	lives.count++;
	error = spoke_call(lives.echo, (struct spoke_span){ one, 1 }, NULL, done, call,
			   &call->name);
	if (error) {
		call->ends = 1;
		call->error = error;
		(void)snprintf(call->text, sizeof(call->text), "%s",
			       spoke_engine_why(lives.engine));
	}
	return call;
}

struct lives_call *lives_deferred(void)
{
	struct lives_call *call = lives_call();

	for (unsigned i = 0; i < 2000 && call->ends == 0; i++)
		clusterrig_pass(MS);
	assert_int_equal(call->error, SPOKE_EDEFERRED);
	return call;
}

void lives_check_book(void)
{
	for (unsigned i = 0; i < lives.count; i++)
		if (lives.calls[i].settled != lives.calls[i].told)
			fail_msg("ticket %u: told %u, settled %u", i, lives.calls[i].told,
				 lives.calls[i].settled);
}
