/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners of one owner; shares their addresses with owners on other engines, and hands
 * connections over where the kernel cannot distribute them. */
#include "transport/listen/group.h"
#include "core/base/address.h"
#include "core/base/env.h"
#include "core/base/pace.h"

#include "core/engine/weak.h"
#include "transport/listen/handoff.h"
#include "transport/listen/quota.h"

/* Addresses that other groups may join. They are read on other threads: addresses are only added,
 * and those below `count` do not change. */
struct shared_addresses {
	_Atomic(size_t) count;
	struct shared_address {
		struct spoke_address address;
		unsigned marks;
		struct spokei_rules *rules; /* a copy, or NULL */
		bool handed; /* by handing connections over; else the kernel distributes them */
	} at[SPOKEI_LISTENERS_MAX];
};

struct spokei_listen_group {
	struct spoke_engine *engine;
	spokei_accept accept;
	void *arg;
	struct spokei_bucket *events;
	struct spokei_quota quota;
	struct spokei_rules *rules; /* of all addresses, or NULL */
	/* Its own, then those where it has joined. */
	struct listening {
		struct spokei_listener *listener;
		unsigned marks;
		const struct spokei_rules *rules; /* of the listener; may be NULL */
	} at[SPOKEI_LISTENERS_MAX];
	size_t own_count;
	size_t joined_count;
	_Atomic(struct spokei_weak *) weak; /* by which other groups reach it; NULL: none has */
	_Atomic(struct shared_addresses *) shared; /* NULL: none */
	struct spoke_list takers;                  /* handoffs to groups that joined this one */
	unsigned taker_count;
	unsigned turn;                  /* of the next connection; 0: its own */
	struct spokei_handoff *handoff; /* by which it takes connections itself, or NULL */
	bool held;                      /* accepts nothing */
	bool joined;
	bool draining;
	_Atomic(bool) stopped;
};

static bool has_room(const struct spokei_listen_group *group)
{
	return !group->held && group->quota.count < group->quota.limits.max;
}

/* Tells the first group how many connections this one has room for. */
static void update_room(struct spokei_listen_group *group)
{
	const struct spokei_quota *quota = &group->quota;

	if (group->handoff)
		spokei_handoff_want(group->handoff,
				    has_room(group) ? quota->limits.max - quota->count : 0);
}

/* --- connections */

static void accept_one(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spokei_listen_group *group = arg;

	group->accept(group->arg, fd, peer, marks);
	update_room(group);
}

const struct spokei_rules *spokei_listen_group_rules(const struct spokei_listen_group *group)
{
	return group->rules;
}

void spokei_listen_group_rule(struct spokei_listen_group *group, struct spokei_rules *rules)
{
	spokei_rules_free(group->engine->env, group->rules);
	group->rules = rules;
}

static void reject(struct spokei_listen_group *group, int fd, int error, bool of_peer)
{
	struct spoke_engine *engine = group->engine;

	spokei_quota_reject(engine, fd, error, of_peer);
	if (spokei_bucket_take(group->events, 1, engine->begin_ns))
		spokei_event(engine, error, "closed a connection that another engine handed over");
}

static void accept_handed(struct spokei_listen_group *group, const struct spokei_handed *handed)
{
	enum spokei_rules_verdict verdict = spokei_rules_admit(group->engine->env, group->rules,
							       NULL, handed->fd, &handed->peer);
	bool of_peer = false;
	int error = SPOKE_ECLOSED;

	/* The first engine has judged it by its own rules and those of the address. */
	if (verdict != SPOKEI_RULES_ADMIT) {
		spokei_rules_deny(group->engine, handed->fd, &handed->peer, verdict);
		return;
	}
	/* No connection gives way to it: the first engine had room, too. */
	if (!spokei_listen_group_stopped(group))
		error = SPOKE_ELIMIT;
	if (error == SPOKE_ELIMIT && has_room(group))
		error = spokei_quota_enter(&group->quota, &handed->peer, &of_peer);
	if (error) {
		reject(group, handed->fd, error, of_peer);
		return;
	}
	spokei_count(group->engine, SPOKE_STAT_ACCEPTED);
	accept_one(group, handed->fd, &handed->peer, handed->marks);
}

static void take_handed(void *arg)
{
	struct spokei_listen_group *group = arg;
	struct spokei_handed handed;

	while (spokei_handoff_take(group->handoff, &handed))
		accept_handed(group, &handed);
	update_room(group);
}

struct spokei_quota_peer *spokei_listen_group_peer(const struct spokei_listen_group *group,
						   const struct spoke_address *peer)
{
	return spokei_quota_peer(&group->quota, peer);
}

void spokei_listen_group_left(struct spokei_listen_group *group,
			      struct spokei_quota_peer *quota_peer)
{
	spokei_quota_leave(&group->quota, quota_peer);
	update_room(group);
}

/* --- the first group: hands connections over */

static int prepare_sharing(struct spokei_listen_group *group)
{
	struct shared_addresses *shared;

	if (atomic_load_explicit(&group->shared, memory_order_relaxed))
		return SPOKE_OK;
	shared = spokei_alloc(group->engine->env, 1, sizeof(*shared));
	if (shared == NULL)
		return SPOKE_ENOMEM;
	atomic_store_explicit(&group->shared, shared, memory_order_release);
	return SPOKE_OK;
}

static struct spokei_handoff *taker_at(const struct spokei_listen_group *group, unsigned index)
{
	struct spoke_list *node = group->takers.next;

	while (index-- > 0)
		node = node->next;
	return spoke_container_of(node, struct spokei_handoff, node);
}

/* Turn 0 is the group's own. Groups that are full or drain are skipped. If all are, the group's
 * listener applies its own limits, and makes room among its own connections. */
static bool offer_in_turn(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spokei_listen_group *group = arg;
	unsigned turns = group->taker_count + 1;

	for (unsigned i = 0; i < turns; i++) {
		unsigned turn = group->turn % turns;

		group->turn = turn + 1;
		if (turn == 0 && has_room(group) && !group->draining)
			return false;
		if (turn > 0 && spokei_handoff_offer(taker_at(group, turn - 1), fd, peer, marks))
			return true;
	}
	return false;
}

/* Takes over the copy of the rules. */
static void share(struct spokei_listen_group *group, const struct spokei_listener *listener,
		  const struct spokei_listen_at *at, struct spokei_rules *copy)
{
	struct shared_addresses *shared = atomic_load_explicit(&group->shared,
							       memory_order_relaxed);
	size_t count = atomic_load_explicit(&shared->count, memory_order_relaxed);

	shared->at[count] = (struct shared_address){ *spokei_listener_address(listener), at->marks,
						     copy,
						     at->sharing == SPOKEI_LISTEN_BY_HANDOFF };
	atomic_store_explicit(&shared->count, count + 1, memory_order_release);
}

static void drop_taker(struct spokei_listen_group *group, struct spokei_handoff *taker)
{
	spokei_list_remove(&taker->node);
	group->taker_count--;
	spokei_handoff_drop(taker);
}

/* Drops those that have parted, because many may have joined before this one. */
static void taker_joined(void *arg, struct spokei_handoff *handoff)
{
	struct spokei_listen_group *group = arg;

	for (struct spoke_list *node = group->takers.next; node != &group->takers;) {
		struct spokei_handoff *taker = spoke_container_of(node, struct spokei_handoff,
								  node);

		node = node->next;
		if (spokei_handoff_parted(taker))
			drop_taker(group, taker);
	}
	spokei_list_append(&group->takers, &handoff->node);
	group->taker_count++;
}

/* --- listening */

/* Opens a listener, which takes over the rules if there is no error. */
static int open_listener(struct spokei_listen_group *group, const struct spokei_listen_at *at,
			 struct listening *ret)
{
	const struct spokei_listener_at where = {
		.address = at->address,
		.marks = at->marks,
		.shared = at->sharing == SPOKEI_LISTEN_BY_KERNEL,
		.has_mode = at->has_mode,
		.mode = at->mode,
		.rules = at->rules,
		.owner_rules = &group->rules,
		.divert = at->sharing == SPOKEI_LISTEN_BY_HANDOFF ? offer_in_turn : NULL,
	};

	int error = spokei_listener_new(group->engine, &where, &group->quota, accept_one, group,
					&ret->listener);

	ret->marks = at->marks;
	ret->rules = at->rules;
	if (!error && group->held)
		spokei_listener_hold(ret->listener, true);
	return error;
}

static int open_shared(struct spokei_listen_group *group, const struct spokei_listen_at *at,
		       struct listening *ret)
{
	const struct spoke_env *env = group->engine->env;
	struct spokei_rules *copy;
	int error = prepare_sharing(group);

	if (error == 0)
		error = spokei_rules_copy(env, at->rules, &copy);
	if (error)
		return error;
	error = open_listener(group, at, ret);
	if (error)
		spokei_rules_free(env, copy);
	else
		share(group, ret->listener, at, copy);
	return error;
}

int spokei_listen_group_open(struct spokei_listen_group *group, const struct spokei_listen_at *at)
{
	struct listening *next = &group->at[group->own_count];
	int error;

	SPOKE_ASSERT(!group->joined);
	if (group->own_count == SPOKEI_LISTENERS_MAX)
		return SPOKE_ELIMIT;
	if (at->sharing == SPOKEI_LISTEN_ALONE)
		error = open_listener(group, at, next);
	else
		error = open_shared(group, at, next);
	group->own_count += error == 0;
	return error;
}

void spokei_listen_group_hold(struct spokei_listen_group *group, bool held)
{
	group->held = held;
	for (size_t i = 0; i < spokei_listen_group_count(group); i++)
		spokei_listener_hold(group->at[i].listener, held);
	update_room(group);
}

size_t spokei_listen_group_count(const struct spokei_listen_group *group)
{
	return group->own_count + group->joined_count;
}

size_t spokei_listen_group_own(const struct spokei_listen_group *group)
{
	return group->own_count;
}

const struct spoke_address *spokei_listen_group_address(const struct spokei_listen_group *group,
							size_t index)
{
	SPOKE_ASSERT(index < spokei_listen_group_count(group));
	return spokei_listener_address(group->at[index].listener);
}

unsigned spokei_listen_group_marks(const struct spokei_listen_group *group, size_t index)
{
	SPOKE_ASSERT(index < spokei_listen_group_count(group));
	return group->at[index].marks;
}

const struct spokei_rules *spokei_listen_group_rules_at(const struct spokei_listen_group *group,
							size_t index)
{
	SPOKE_ASSERT(index < spokei_listen_group_count(group));
	return group->at[index].rules;
}

void spokei_listen_group_print(const struct spokei_listen_group *group, size_t index, char *text,
			       size_t size)
{
	const struct spoke_env *env = group->engine->env;

	env->net->print(env->ctx, spokei_listen_group_address(group, index), text, size);
	if (group->at[index].marks & SPOKEI_LISTENER_SHM)
		spokei_address_share(text);
}

const struct spokei_quota *spokei_listen_group_quota(const struct spokei_listen_group *group)
{
	return &group->quota;
}

void spokei_listen_group_limit(struct spokei_listen_group *group,
			       const struct spokei_quota_limits *limits)
{
	spokei_quota_change(&group->quota, limits);
	update_room(group);
}

/* --- joining: takes connections */

size_t spokei_listen_group_shared(const struct spokei_listen_group *group)
{
	const struct shared_addresses *shared = atomic_load_explicit(&group->shared,
								     memory_order_acquire);

	return shared ? atomic_load_explicit(&shared->count, memory_order_acquire) : 0;
}

bool spokei_listen_group_stopped(const struct spokei_listen_group *group)
{
	return atomic_load_explicit(&group->stopped, memory_order_relaxed);
}

bool spokei_listen_group_joined(const struct spokei_listen_group *group)
{
	return group->joined;
}

/* Asks the first group to hand connections over. */
static int ask_for_connections(struct spokei_listen_group *group, struct spokei_listen_group *first)
{
	struct spokei_handoff_ends ends = {
		.first = spokei_weak_get(&first->weak, first->engine),
		.second = spokei_weak_get(&group->weak, group->engine),
		.joined = taker_joined,
		.arrive = take_handed,
		.first_arg = first,
		.second_arg = group,
	};
	struct spokei_handoff *handoff = NULL;

	if (ends.first && ends.second)
		handoff = spokei_handoff_new(group->engine->env, &ends);
	if (handoff == NULL) {
		spokei_weak_drop(ends.first);
		spokei_weak_drop(ends.second);
		return SPOKE_ENOMEM;
	}
	group->handoff = handoff;
	update_room(group);
	if (spokei_handoff_join(handoff))
		return SPOKE_OK;
	group->handoff = NULL;
	spokei_handoff_drop(handoff);
	return SPOKE_ECLOSED;
}

/* Listens at an address of the first group, with a copy of its rules. */
static int open_joined(struct spokei_listen_group *group, const struct shared_address *shared)
{
	const struct spoke_env *env = group->engine->env;
	struct spokei_listen_at at = {
		.address = &shared->address,
		.sharing = SPOKEI_LISTEN_BY_KERNEL,
		.marks = shared->marks,
	};
	int error = spokei_rules_copy(env, shared->rules, &at.rules);

	if (error)
		return error;
	error = open_listener(group, &at, &group->at[spokei_listen_group_count(group)]);
	if (error)
		spokei_rules_free(env, at.rules);
	return error;
}

static int join_all(struct spokei_listen_group *group, struct spokei_listen_group *first,
		    const struct shared_addresses *shared, size_t count)
{
	bool handed = false;
	int error = SPOKE_OK;

	if (count > SPOKEI_LISTENERS_MAX - group->own_count) {
		spokei_event(group->engine, SPOKE_ELIMIT,
			     "join: %zu addresses besides %zu of its own, and a provider listens "
			     "at %u at most",
			     count, group->own_count, SPOKEI_LISTENERS_MAX);
		return SPOKE_ELIMIT;
	}
	for (size_t i = 0; i < count && error == 0; i++) {
		if (shared->at[i].handed) {
			handed = true;
			continue;
		}
		error = open_joined(group, &shared->at[i]);
		group->joined_count += error == 0;
	}
	/* Last, because it cannot be undone. */
	if (error == 0 && handed)
		error = ask_for_connections(group, first);
	return error;
}

int spokei_listen_group_join(struct spokei_listen_group *group, struct spokei_listen_group *first)
{
	size_t count = spokei_listen_group_shared(first);
	int error = join_all(group, first,
			     atomic_load_explicit(&first->shared, memory_order_acquire), count);

	group->joined = error == 0;
	while (error && group->joined_count > 0) {
		group->joined_count--;
		spokei_listener_free(group->at[spokei_listen_group_count(group)].listener);
	}
	return error;
}

/* --- life */

int spokei_listen_group_new(struct spoke_engine *engine,
			    const struct spokei_listen_options *options,
			    struct spokei_listen_group **ret_group)
{
	struct spokei_listen_group *group = spokei_alloc(engine->env, 1, sizeof(*group));

	if (group == NULL)
		return SPOKE_ENOMEM;
	group->engine = engine;
	group->accept = options->accept;
	group->arg = options->arg;
	group->events = options->events;
	spokei_quota_init(&group->quota, engine->env, &options->limits);
	spokei_quota_give_way(&group->quota, options->make_room, options->arg);
	spokei_list_init(&group->takers);
	*ret_group = group;
	return SPOKE_OK;
}

/* Takes the connections that were handed over; no more are. */
static void part(struct spokei_listen_group *group)
{
	if (group->handoff == NULL)
		return;
	spokei_handoff_part(group->handoff);
	take_handed(group);
}

void spokei_listen_group_drain(struct spokei_listen_group *group)
{
	size_t count = spokei_listen_group_count(group);

	group->draining = true;
	for (size_t i = 0; i < count; i++)
		spokei_listener_sweep(group->at[i].listener);
	part(group);
}

void spokei_listen_group_stop(struct spokei_listen_group *group)
{
	size_t count = spokei_listen_group_count(group);

	atomic_store_explicit(&group->stopped, true, memory_order_relaxed);
	group->own_count = 0;
	group->joined_count = 0;
	while (count > 0)
		spokei_listener_free(group->at[--count].listener);
	part(group);
}

static void free_shared(struct spokei_listen_group *group)
{
	const struct spoke_env *env = group->engine->env;
	struct shared_addresses *shared = atomic_load_explicit(&group->shared,
							       memory_order_relaxed);
	size_t count = spokei_listen_group_shared(group);

	for (size_t i = 0; i < count; i++)
		spokei_rules_free(env, shared->at[i].rules);
	spokei_free(env, shared, 1, sizeof(*shared));
}

bool spokei_listen_group_free(struct spokei_listen_group *group)
{
	const struct spoke_env *env;
	struct spokei_weak *weak;

	if (group == NULL)
		return true;
	env = group->engine->env;
	weak = atomic_load_explicit(&group->weak, memory_order_acquire);
	if (!spokei_weak_close(weak))
		return false;
	spokei_weak_drop(weak);
	while (group->taker_count > 0)
		drop_taker(group, taker_at(group, 0));
	spokei_handoff_drop(group->handoff);
	spokei_quota_fini(&group->quota);
	spokei_rules_free(env, group->rules);
	free_shared(group);
	spokei_free(env, group, 1, sizeof(*group));
	return true;
}
