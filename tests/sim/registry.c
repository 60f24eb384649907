/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated registry: one list, shared by all processes. It answers requests in turns of the
 * requesting process. Subscribers are notified at the next look at the world. Entries of an ended
 * session stay for a while.
 */
#include "tests/sim/oracle.h"

#include <stdio.h>
#include <string.h>

/* --- list */

static bool is_there(const struct sim_entry *entry)
{
	return entry->by || entry->until_ns;
}

/* Schedules a notification of all subscribers. */
static void changed(struct sim_world *world)
{
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_session *session = &world->registry.sessions[i];

		if (session->process && session->subscription && session->tell_ns == 0)
			session->tell_ns = world->virt.now_ns + world->plan->registry_ns +
					   world->registry.slow_ns;
	}
}

/* Adds an entry; the same URL has one entry, as in a directory. */
static bool put(struct sim_session *by, struct spoke_registry_entry *of)
{
	struct sim_world *world = by->world;
	struct sim_entry *place = NULL;

	for (unsigned i = 0; i < SIM_ENTRIES; i++) {
		struct sim_entry *at = &world->registry.entries[i];

		if (is_there(at) && strcmp(at->url, of->text) == 0) {
			place = at;
			break;
		}
		if (place == NULL && !is_there(at))
			place = at;
	}
	if (place == NULL || strlen(of->text) >= sizeof(place->url))
		return false;
	place->by = by;
	place->until_ns = 0;
	place->of = of;
	memcpy(place->url, of->text, strlen(of->text) + 1);
	sim_note(world, "process % is listed", by->process->number, 0, 0, 0);
	changed(world);
	return true;
}

static void drop(const struct sim_session *by, const struct spoke_registry_entry *of)
{
	for (unsigned i = 0; i < SIM_ENTRIES; i++) {
		struct sim_entry *at = &by->world->registry.entries[i];

		if (at->by != by || at->of != of)
			continue;
		at->by = NULL;
		sim_note(by->world, "process % is no longer listed", by->process->number, 0, 0, 0);
		changed(by->world);
	}
}

static bool is_asked(const struct sim_session *session, const struct spoke_registry_entry *of)
{
	for (unsigned i = 0; i < SIM_ERRANDS; i++) {
		const struct sim_errand *errand = &session->world->registry.errands[i];

		if (errand->session == session && errand->of == of && !errand->quiet)
			return true;
	}
	return false;
}

/* --- notifications */

static void tell_list(struct sim_session *session)
{
	struct sim_world *world = session->world;
	static char urls[SIM_ENTRIES * SIM_URL];
	size_t count = 0;
	size_t len = 0;

	for (unsigned i = 0; i < SIM_ENTRIES && session->lie != 1; i++) {
		const struct sim_entry *entry = &world->registry.entries[i];

		if (!is_there(entry) || (session->lie && i % 2 == 0))
			continue;
		memcpy(urls + len, entry->url, strlen(entry->url) + 1);
		len += strlen(entry->url) + 1;
		count++;
	}
	sim_note(world, "c% receives a list of % providers", session->process->number, count, 0, 0);
	world->counts.lists++;
	/* The correct list follows later. */
	session->tell_ns = session->lie
				   ? world->virt.now_ns + sim_magnitude(&world->dice, MS, SECOND)
				   : 0;
	session->lie = 0;
	sim_list_told(session->process, count);
	session->up->list(session->arg, session->subscription, urls, count);
}

/* Drops an entry, and reports that unless a request for it is in flight. */
static void lose(struct sim_session *session, struct spoke_registry_entry *of)
{
	drop(session, of);
	if (!is_asked(session, of))
		session->up->state(session->arg, of, SPOKE_ELOST);
}

static void tell_lost(struct sim_session *session)
{
	struct spoke_registry_entry *subscription = session->subscription;
	const struct sim_entry *lost = session->lost;
	const bool all = session->lost_all;

	session->lost = NULL;
	session->lost_all = false;
	sim_note(session->world, "process % loses its session", session->process->number, 0, 0, 0);
	for (unsigned i = 0; i < SIM_ENTRIES; i++) {
		const struct sim_entry *entry = &session->world->registry.entries[i];

		if (entry->by == session && (all || entry == lost))
			lose(session, entry->of);
	}
	if (!all || subscription == NULL)
		return;
	session->subscription = NULL;
	session->tell_ns = 0;
	lose(session, subscription);
}

/* Sends a pending notification in a turn of its process. */
static void news_due(struct spoke_alarm *alarm)
{
	struct sim_session *session = spoke_container_of(alarm, struct sim_session, news);

	session->process->progress++;
	if (session->lost || session->lost_all)
		tell_lost(session);
	else if (session->tell_ns && session->subscription)
		tell_list(session);
}

/* --- requests */

static bool is_down(const struct sim_world *world)
{
	return world->registry.down_until_ns > world->virt.now_ns;
}

static uint64_t delay_of(struct sim_world *world)
{
	uint64_t now_ns = world->virt.now_ns;
	uint64_t delay_ns = world->plan->registry_ns + world->registry.slow_ns;

	if (world->registry.mute_until_ns > now_ns)
		delay_ns += world->registry.mute_until_ns - now_ns;
	return delay_ns;
}

static void drop_errand(struct sim_errand *errand)
{
	(void)spoke_alarm_cancel(&errand->alarm);
	errand->session = NULL;
}

static int do_errand(const struct sim_errand *errand)
{
	struct sim_session *session = errand->session;
	struct sim_registry *registry = &session->world->registry;

	if (is_down(session->world))
		return SPOKE_ECONNECT;
	if (registry->fail > 0) {
		registry->fail--;
		return SPOKE_ETIMEOUT;
	}
	if (errand->of->url && errand->wanted)
		return put(session, errand->of) ? SPOKE_OK : SPOKE_ELIMIT;
	if (errand->wanted) {
		session->subscription = errand->of;
		session->tell_ns = session->world->virt.now_ns;
	} else if (errand->of == session->subscription) {
		session->subscription = NULL;
	} else {
		drop(session, errand->of);
	}
	return SPOKE_OK;
}

static void errand_due(struct spoke_alarm *alarm)
{
	struct sim_errand *errand = spoke_container_of(alarm, struct sim_errand, alarm);
	const struct sim_errand done = *errand;
	struct sim_session *session = errand->session;
	int error = do_errand(errand);

	session->process->progress++;
	sim_note(session->world, "the registry answers process %: %e", session->process->number,
		 (uint64_t)(unsigned)error, 0, 0);
	drop_errand(errand);
	if (!done.quiet)
		session->up->state(session->arg, done.of, error);
}

static struct sim_errand *new_errand(struct sim_session *session)
{
	struct sim_registry *registry = &session->world->registry;

	for (unsigned i = 0; i < SIM_ERRANDS; i++)
		if (registry->errands[i].session == NULL)
			return &registry->errands[i];
	return NULL;
}

static int ask(struct sim_session *session, struct spoke_registry_entry *of, bool wanted)
{
	struct sim_world *world = session->world;
	struct sim_errand *errand = new_errand(session);

	session->process->progress++;
	if (errand == NULL || (is_down(world) && sim_chance(&world->dice, 300)))
		return SPOKE_EUNAVAILABLE;
	*errand = (struct sim_errand){ .session = session, .of = of, .wanted = wanted };
	if (spoke_alarm_after(session->engine, &errand->alarm, delay_of(world), errand_due) == 0)
		return SPOKE_OK;
	errand->session = NULL;
	return SPOKE_ENOMEM;
}

/* --- the vtable */

/* A request that replaces one in flight: if it fails at once, the earlier one is carried out. */
static void request(struct sim_session *session, struct spoke_registry_entry *of, bool wanted)
{
	struct sim_registry *registry = &session->world->registry;
	struct sim_errand *before[SIM_ERRANDS];
	unsigned count = 0;
	int error;

	for (unsigned i = 0; i < SIM_ERRANDS; i++)
		if (registry->errands[i].session == session && registry->errands[i].of == of)
			before[count++] = &registry->errands[i];
	error = ask(session, of, wanted);
	while (count-- > 0) {
		before[count]->quiet = true;
		if (error == 0)
			drop_errand(before[count]);
	}
	if (error)
		session->up->state(session->arg, of, error);
}

static void registry_want(void *registry, struct spoke_registry_entry *of)
{
	const struct sim_session *session = registry;

	if (of->url && sim_is_provider(session->process) &&
	    !sim_provider_is_online((const struct sim_provider *)session->process))
		sim_violation(session->world, SIM_S55, "p%u is offline and asks to be listed",
			      session->process->number);
	request(registry, of, true);
}

static void registry_unwant(void *registry, struct spoke_registry_entry *of)
{
	request(registry, of, false);
}

static int registry_open(struct spoke_engine *engine, const struct spoke_url *url,
			 const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	struct sim_world *world = sim_world_now;

	(void)url;
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_session *session = &world->registry.sessions[i];

		if (sim_process_at(world, i)->engine != engine)
			continue;
		*session = (struct sim_session){
			.world = world,
			.process = sim_process_at(world, i),
			.engine = engine,
			.up = up,
			.arg = arg,
		};
		*ret_registry = session;
		return SPOKE_OK;
	}
	return SPOKE_ELIMIT;
}

static void registry_close(void *registry)
{
	struct sim_session *session = registry;
	struct sim_world *world = session->world;

	for (unsigned i = 0; i < SIM_ERRANDS; i++)
		if (world->registry.errands[i].session == session)
			drop_errand(&world->registry.errands[i]);
	(void)spoke_alarm_cancel(&session->news);
	for (unsigned i = 0; i < SIM_ENTRIES; i++) {
		struct sim_entry *entry = &world->registry.entries[i];

		if (entry->by != session)
			continue;
		entry->by = NULL;
		entry->of = NULL;
		entry->until_ns = world->virt.now_ns + world->plan->registry_session_ns;
	}
	session->process = NULL;
}

const struct spoke_registry sim_registry_kind = {
	.scheme = "sim",
	.open = registry_open,
	.want = registry_want,
	.unwant = registry_unwant,
	.close = registry_close,
};

/* --- faults */

static struct sim_session *any_session(struct sim_world *world)
{
	for (unsigned i = 0; i < 2 * SIM_PROCESSES; i++) {
		struct sim_session *session =
			&world->registry.sessions[sim_throw(&world->dice) % SIM_PROCESSES];

		if (session->process)
			return session;
	}
	return NULL;
}

static void lose_all(struct sim_world *world)
{
	sim_note(world, "the registry loses all entries", 0, 0, 0, 0);
	for (unsigned i = 0; i < SIM_PROCESSES; i++)
		if (world->registry.sessions[i].process)
			world->registry.sessions[i].lost_all = true;
}

/* Removes one entry, as an administrator would. */
static bool lose_entry(struct sim_world *world)
{
	const struct sim_entry *entry =
		&world->registry.entries[sim_throw(&world->dice) % SIM_PROVIDERS];

	if (entry->by == NULL)
		return false;
	sim_note(world, "the registry loses p%", entry->by->process->number, 0, 0, 0);
	entry->by->lost = entry;
	return true;
}

static bool lie(struct sim_world *world, struct sim_session *session)
{
	if (session->subscription == NULL)
		return false;
	session->lie = (unsigned)sim_between(&world->dice, 1, 2);
	session->tell_ns = world->virt.now_ns;
	sim_note(world, "the registry sends c% a wrong list, kind %", session->process->number,
		 session->lie, 0, 0);
	return true;
}

bool sim_registry_fault(struct sim_world *world)
{
	struct sim_registry *registry = &world->registry;
	struct sim_session *session = any_session(world);
	uint64_t ns = sim_magnitude(&world->dice, MS, 4 * world->plan->interval_ns);

	if (session == NULL)
		return false;
	switch (sim_throw(&world->dice) % 8) {
	case 0:
		sim_note(world, "the registry fails for % us", ns / 1000, 0, 0, 0);
		registry->down_until_ns = world->virt.now_ns + ns;
		return true;
	case 1:
		sim_note(world, "the registry does not answer for % us", ns / 1000, 0, 0, 0);
		registry->mute_until_ns = world->virt.now_ns + ns;
		return true;
	case 2:
		registry->fail = (unsigned)sim_between(&world->dice, 1, 10);
		return true;
	case 3:
		registry->slow_ns = sim_chance(&world->dice, 500) ? ns : 0;
		return true;
	case 4:
		lose_all(world);
		return true;
	case 5:
		return lose_entry(world);
	case 6:
		session->lost_all = true;
		return true;
	default:
		return lie(world, session);
	}
}

void sim_registry_heal(struct sim_world *world)
{
	world->registry.down_until_ns = 0;
	world->registry.mute_until_ns = 0;
	world->registry.slow_ns = 0;
	world->registry.fail = 0;
	for (unsigned i = 0; i < SIM_PROCESSES; i++)
		world->registry.sessions[i].lie = 0;
	changed(world);
}

/* --- between turns */

static void expire(struct sim_world *world)
{
	for (unsigned i = 0; i < SIM_ENTRIES; i++) {
		struct sim_entry *entry = &world->registry.entries[i];

		if (entry->until_ns == 0 || entry->until_ns > world->virt.now_ns)
			continue;
		entry->until_ns = 0;
		changed(world);
	}
}

void sim_registry_look(struct sim_world *world)
{
	expire(world);
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_session *session = &world->registry.sessions[i];
		bool tells = session->tell_ns && session->tell_ns <= world->virt.now_ns &&
			     session->subscription && !is_down(world);

		if (session->process == NULL || session->process->engine != session->engine ||
		    session->process->virt.held_until_ns > world->virt.now_ns ||
		    (!tells && !session->lost && !session->lost_all) ||
		    spoke_timer_armed(&session->news.timer))
			continue;
		(void)!spoke_alarm_after(session->engine, &session->news, 0, news_due);
	}
}
