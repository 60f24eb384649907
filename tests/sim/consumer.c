/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of the world: connected to all providers, it calls now and then. */
#include "tests/sim/oracle.h"

#include <stdio.h>

static const char *const method_names[SIM_MANNERS] = { "now", "later", "never", "error", "large" };

static void alarm_due(struct spoke_alarm *alarm)
{
	struct sim_consumer *consumer = spoke_container_of(alarm, struct sim_consumer, alarm);

	consumer->process.progress++;
	if (consumer->process.world->healing)
		return;
	for (unsigned i = 0; i < consumer->plan->burst && consumer->consumer; i++)
		sim_call(consumer, false);
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct sim_consumer *consumer = arg;
	struct sim_world *world = consumer->process.world;

	sim_link_changed(&consumer->process, event);
	sim_fault_stall(&consumer->process);
	if (!world->healing && consumer->plan->frees_inside && sim_chance(&world->dice, 10))
		sim_consumer_free(consumer);
}

void sim_consumer_free(struct sim_consumer *consumer)
{
	struct spoke_consumer *freed = consumer->consumer;
	struct sim_world *world = consumer->process.world;

	if (freed == NULL)
		return;
	sim_note(world, "c% frees its consumer", consumer->process.number, 0, 0, 0);
	consumer->consumer = NULL;
	spoke_consumer_free(freed);
	consumer->process.closed = true;
	if (consumer->process.back_ns == 0)
		consumer->process.back_ns = world->virt.now_ns +
					    sim_magnitude(&world->dice, MS, 200 * MS);
}

static bool make(struct sim_consumer *consumer)
{
	static char urls[SIM_PROVIDERS][96];
	const char *more[SIM_PROVIDERS];
	const struct sim_world *world = consumer->process.world;
	unsigned count = world->plan->provider_count;
	struct spoke_consumer_options options = {
		.policy = &spoke_failfast,
		.url = urls[0],
		.more_urls = more,
		.more_count = count - 1,
		.timeout_ns = consumer->plan->timeout_ns,
		.pending_max = consumer->plan->pending_max,
		.heartbeat_ns = consumer->plan->heartbeat_ns,
		.changed = changed,
		.changed_arg = consumer,
	};
	const struct spoke_engine_options with = { .env = &consumer->process.virt.env,
						   .timers_max = 100000 };

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(urls[i], sizeof(urls[i]), "%s://%s/sim.Echo",
			       consumer->plan->mprpc ? "msgpack-rpc" : "dubbo",
			       world->providers[i].address);
		if (i > 0)
			more[i - 1] = urls[i];
	}
	if (spoke_engine_new(&with, &consumer->process.engine) ||
	    spoke_consumer_new(consumer->process.engine, &options, &consumer->consumer))
		return false;
	for (unsigned i = 0; i < SIM_MANNERS; i++)
		if (spoke_consumer_method(consumer->consumer, method_names[i], NULL,
					  &consumer->methods[i]))
			return false;
	return spoke_alarm_every(consumer->process.engine, &consumer->alarm,
				 consumer->plan->every_ns, alarm_due) == 0;
}

/* Without memory it tries again a little later. */
void sim_consumer_start(struct sim_consumer *consumer)
{
	struct sim_process *process = &consumer->process;
	struct sim_world *world = process->world;

	process->engine = NULL;
	consumer->consumer = NULL;
	consumer->alarm = (struct spoke_alarm){ 0 };
	consumer->first_call = world->call_count;
	process->draining = false;
	process->closed = false;
	process->back_ns = 0;
	for (unsigned i = 0; i < SIM_PROVIDERS; i++) {
		consumer->connected_ns[i] = 0;
		consumer->last[i] = NULL;
	}
	if (make(consumer)) {
		sim_note(world, "c% begins", process->number, 0, 0, 0);
		return;
	}
	sim_note(world, "c% cannot begin", process->number, 0, 0, 0);
	sim_process_end(process);
	process->back_ns = world->virt.now_ns + 10 * MS;
}
