/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests of leases: see leaserig.h. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/scene.h"

#include <string.h>

struct leaserig leaserig;

#define rig leaserig

void leaserig_pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

/* --- programs */

static void count_line(void *ctx, const struct spoke_log_line *line)
{
	struct spokei_world_process *process = ctx;

	(void)line;
	spoke_container_of(process, struct leaserig_program, process)->logged++;
}

static void open_program(struct leaserig_program *program)
{
	spokei_world_process_init(&program->process, &rig.world);
	program->process.env.log = count_line;
	spokei_faults_init(&program->faulty, &program->process.env);
	assert_int_equal(
		spoke_engine_new(&(struct spoke_engine_options){ .env = &program->faulty.env },
				 &program->engine),
		SPOKE_OK);
}

static void close_program(struct leaserig_program *program)
{
	leaserig_leave(program);
	assert_int_equal(program->faulty.blocks, 0);
	assert_int_equal(program->faulty.fds, 0);
	spokei_world_process_fini(&program->process);
}

void leaserig_join(struct leaserig_program *program, const struct spoke_leases_options *options)
{
	struct spoke_leases_options with = options ? *options : (struct spoke_leases_options){ 0 };

	with.store = "redis://" LEASERIG_AT;
	assert_int_equal(spoke_leases_new(program->engine, &with, &program->leases), SPOKE_OK);
	leaserig_pass(20 * MS);
}

void leaserig_leave(struct leaserig_program *program)
{
	spoke_leases_free(program->leases);
	program->leases = NULL;
	spoke_engine_free(program->engine);
	program->engine = NULL;
}

RIG_STEP(leaserig_set_up_world)
{
	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 1);
	fakeredis_start(&rig.server, &rig.world, LEASERIG_AT);
	open_program(&rig.one);
	open_program(&rig.two);
}

int leaserig_set_up(void **state)
{
	if (leaserig_set_up_world(state))
		return -1;
	leaserig_join(&rig.one, NULL);
	return 0;
}

/* Every ask was told once. One that was held has ended once, as released or lost. */
static void check_records(void)
{
	for (unsigned i = 0; i < rig.asked; i++) {
		const struct leaserig_ask *ask = &rig.asks[i];

		assert_int_equal(ask->told, 1);
		if (ask->error)
			assert_int_equal(ask->lost, 0);
		else
			assert_int_equal(ask->lost + ask->given, 1);
		assert_int_equal(ask->released, ask->given);
	}
}

RIG_STEP(leaserig_tear_down)
{
	close_program(&rig.one);
	close_program(&rig.two);
	check_records();
	assert_int_equal(rig.server.protocol_errors, 0);
	assert_int_equal(rig.server.unknown_commands, 0);
	if (rig.replica.process.world)
		fakeredis_stop(&rig.replica);
	fakeredis_stop(&rig.server);
	spokei_world_fini(&rig.world);
}

/* --- asks */

static void note_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct leaserig_ask *ask = arg;
	size_t len = answer->text.len < sizeof(ask->text) - 1 ? answer->text.len
							      : sizeof(ask->text) - 1;

	assert_int_equal(ask->lease.handle, lease.handle);
	assert_int_equal(ask->told++, 0);
	ask->error = answer->error;
	ask->fence = answer->fence;
	ask->left_ns = answer->left_ns;
	ask->told_ns = rig.world.now_ns;
	ask->left_at_call_ns = spoke_lease_left(lease);
	if (len > 0)
		memcpy(ask->text, answer->text.data, len);
	if (answer->error == SPOKE_OK && rig.held < sizeof(rig.order) / sizeof(rig.order[0]))
		rig.order[rig.held++] = ask;
	if (answer->error != SPOKE_OK)
		assert_int_equal(ask->left_at_call_ns, 0);
	if (ask->then)
		ask->then(ask);
}

static void note_lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	struct leaserig_ask *ask = arg;

	assert_int_equal(ask->told, 1);
	assert_int_equal(ask->error, SPOKE_OK);
	assert_int_equal(ask->lost++, 0);
	assert_int_equal(ask->released, 0);
	ask->why = why;
	ask->lost_ns = rig.world.now_ns;
	ask->left_at_call_ns = spoke_lease_left(lease);
	assert_int_equal(ask->left_at_call_ns, 0);
	if (ask->then)
		ask->then(ask);
}

static void note_released(void *arg, int error)
{
	struct leaserig_ask *ask = arg;

	assert_int_equal(ask->released++, 0);
	ask->end = error;
	ask->released_ns = rig.world.now_ns;
}

struct leaserig_ask *leaserig_ask_if(struct leaserig_program *program, const char *name,
				     const struct spoke_lease_options *options)
{
	struct spoke_lease_options with = options ? *options : (struct spoke_lease_options){ 0 };
	struct leaserig_ask *ask = &rig.asks[rig.asked];

	assert_true(rig.asked < LEASERIG_ASKS);
	ask->program = program;
	with.lost = note_lost;
	with.arg = ask;
	if (spoke_lease_ask(program->leases, name, &with, note_told, &ask->lease))
		return NULL;
	assert_int_equal(ask->told, 0);
	rig.asked++;
	return ask;
}

struct leaserig_ask *leaserig_ask_with(struct leaserig_program *program, const char *name,
				       const struct spoke_lease_options *options)
{
	struct leaserig_ask *ask = leaserig_ask_if(program, name, options);

	assert_non_null(ask);
	return ask;
}

struct leaserig_ask *leaserig_try(const char *name)
{
	return leaserig_ask_with(&rig.one, name, NULL);
}

struct leaserig_ask *leaserig_wait(const char *name)
{
	return leaserig_ask_with(&rig.one, name,
				 &(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER });
}

struct leaserig_ask *leaserig_hold(const char *name)
{
	struct leaserig_ask *ask = leaserig_try(name);

	leaserig_pass(10 * MS);
	assert_int_equal(ask->told, 1);
	assert_int_equal(ask->error, SPOKE_OK);
	return ask;
}

void leaserig_release(struct leaserig_ask *ask)
{
	ask->given = true;
	assert_int_equal(spoke_lease_release(ask->lease, note_released, ask), SPOKE_OK);
	assert_int_equal(ask->released, 0);
	assert_int_equal(spoke_lease_left(ask->lease), 0);
}
