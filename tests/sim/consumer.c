/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated consumer: connects to all listed providers and makes calls on a timer. */
#include "tests/sim/journals.h"
#include "tests/sim/store.h"

#include "cluster/balancer/balancers.h"
#include "cluster/consumer/parts.h"

#include <stdio.h>
#include <string.h>

static const char *const method_names[SIM_MANNERS] = { "now", "later", "never", "error", "large" };

static void alarm_due(struct spoke_alarm *alarm)
{
	struct sim_consumer *consumer = spoke_container_of(alarm, struct sim_consumer, alarm);

	consumer->process.progress++;
	sim_leases_look(&consumer->process);
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
	sim_leases_look(&consumer->process);
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

static const struct spoke_policy *const policies[SIM_POLICIES] = {
	[SIM_FAILOVER] = &spoke_policy_failover,   [SIM_FAILFAST] = &spoke_policy_failfast,
	[SIM_FAILSAFE] = &spoke_policy_failsafe,   [SIM_FAILBACK] = &spoke_policy_failback,
	[SIM_FORKING] = &spoke_policy_forking,     [SIM_BROADCAST] = &spoke_policy_broadcast,
	[SIM_AVAILABLE] = &spoke_policy_available,
};

static void set_calls(const struct sim_calls_plan *plan, struct spoke_consumer_options *options)
{
	options->policy = policies[plan->policy];
	options->balancer = spokei_balancers[plan->balancer];
	options->retries = plan->retries ? plan->retries : SPOKE_NONE;
	options->retry_period_ns = plan->period_ns;
	options->retry_deadline_ns = plan->deadline_ns;
	options->failback_tasks_max = plan->tickets_max;
	options->failback_bytes_max = plan->ticket_bytes_max;
	options->failback_overflow = plan->drops_oldest ? SPOKE_OVERFLOW_DROP_OLDEST
							: SPOKE_OVERFLOW_REJECT;
	options->forks = plan->forks;
	options->endpoint_actives_max = plan->endpoint_actives;
	options->connections = plan->connections;
	options->wait_ready = plan->wait_ready;
	options->sticky = plan->sticky;
	options->lazy = plan->lazy;
}

/* Writes the URL parameters for settings that have no option field. */
static void print_parameters(const struct sim_consumer *consumer, char *text, size_t size)
{
	const struct sim_calls_plan *plan = &consumer->plan->calls;
	char journal[64];

	sim_journal_print(consumer, journal, sizeof(journal));
	(void)snprintf(text, size,
		       "?eject.failures=%u&eject.errors=%u&eject.calls=%u&eject.latency=%u&eject."
		       "time=%ums&registry.retry.period=%ums%s",
		       plan->eject_failures, plan->eject_failures ? 40 + plan->eject_failures : 0,
		       1 + plan->eject_failures, plan->eject_failures % 4 == 1 ? 3u : 0,
		       (unsigned)(plan->eject_ns / MS) + 10,
		       (unsigned)(consumer->process.world->plan->registry_retry_ns / MS), journal);
}

static bool make_methods(struct sim_consumer *consumer)
{
	const struct sim_calls_plan *plan = &consumer->plan->calls;
	struct spoke_method_options options = { .idempotent = plan->idempotent,
						.once = plan->once,
						.hedge_after_ns = plan->hedge_ns };

	if (spoke_consumer_method(consumer->consumer, method_names[0], &options,
				  &consumer->unlimited))
		return false;
	options.actives = plan->actives;
	for (unsigned i = 0; i < SIM_MANNERS; i++)
		if (spoke_consumer_method(consumer->consumer, method_names[i], &options,
					  &consumer->methods[i]))
			return false;
	return true;
}

static bool make(struct sim_consumer *consumer)
{
	static char urls[SIM_PROVIDERS][256];
	const char *more[SIM_PROVIDERS];
	const struct sim_world *world = consumer->process.world;
	unsigned count = world->plan->provider_count;
	char parameters[192];
	struct spoke_consumer_options options = {
		.serialization = consumer->plan->hessian2 ? SPOKE_SERIALIZATION_HESSIAN2
							  : SPOKE_SERIALIZATION_MSGPACK,
		.url = urls[0],
		.more_urls = more,
		.more_count = count - 1,
		.timeout_ns = consumer->plan->timeout_ns,
		.pending_max = consumer->plan->pending_max,
		.heartbeat_ns = consumer->plan->heartbeat_ns,
		.changed = changed,
		.changed_arg = consumer,
		.settled = sim_ticket_settled,
		.settled_arg = consumer,
		.tls = sim_secure_options(&consumer->process),
		.token = sim_access_token(consumer),
	};
	const struct spoke_engine_options with = { .env = &consumer->process.virt.env,
						   .timers_max = 100000 };

	set_calls(&consumer->plan->calls, &options);
	sim_journal_options(consumer, &options);
	print_parameters(consumer, parameters, sizeof(parameters));
	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(urls[i], sizeof(urls[i]), "%s://%s/sim.Echo%s",
			       consumer->plan->mprpc ? "msgpack-rpc" : "dubbo",
			       world->providers[i].address, parameters);
		if (i > 0)
			more[i - 1] = urls[i];
	}
	if (consumer->plan->registry) {
		(void)snprintf(urls[0], sizeof(urls[0]), "consumer://any/sim.Echo%s", parameters);
		options.more_count = 0;
		options.registry = "sim://world";
		options.registry_kind = &sim_registry_kind;
	}
	if (spoke_engine_new(&with, &consumer->process.engine) ||
	    spoke_consumer_new(consumer->process.engine, &options, &consumer->consumer))
		return false;
	sim_secure_tap(consumer->consumer->tls);
	sim_share(world, consumer->consumer->link);
	return make_methods(consumer) &&
	       spoke_alarm_every(consumer->process.engine, &consumer->alarm,
				 consumer->plan->every_ns, alarm_due) == 0 &&
	       sim_workers_start(consumer);
}

/* Starts the consumer; if there is no memory, tries again a little later. */
void sim_consumer_start(struct sim_consumer *consumer)
{
	struct sim_process *process = &consumer->process;
	struct sim_world *world = process->world;
	bool made;

	process->engine = NULL;
	consumer->consumer = NULL;
	sim_workers_reset(consumer);
	consumer->alarm = (struct spoke_alarm){ 0 };
	consumer->first_call = world->call_count;
	process->draining = false;
	process->closed = false;
	process->back_ns = 0;
	consumer->several = consumer->plan->registry || consumer->plan->calls.connections > 1;
	consumer->made = 0;
	consumer->repeats = 0;
	consumer->asked = 0;
	consumer->listed = false;
	consumer->window = (struct sim_window){ 0 };
	memset(consumer->ended, 0, sizeof(consumer->ended));
	memset(consumer->settled, 0, sizeof(consumer->settled));
	memset(consumer->connected_ns, 0, sizeof(consumer->connected_ns));
	memset(consumer->was_silent, 0, sizeof(consumer->was_silent));
	memset(consumer->last, 0, sizeof(consumer->last));
	made = make(consumer);
	sim_journal_started(consumer);
	if (made) {
		sim_note(world, "c% starts: %y, % retries", process->number,
			 consumer->plan->calls.policy, consumer->plan->calls.retries, 0);
		return;
	}
	sim_note(world, "c% cannot start", process->number, 0, 0, 0);
	sim_process_end(process);
	process->back_ns = world->virt.now_ns + 10 * MS;
}
