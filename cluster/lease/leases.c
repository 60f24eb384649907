/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the leases of one engine at one store; the events of the store; the timers. */
#include "cluster/lease/parts.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/view.h"
#include "core/base/pace.h"
#include "core/engine/desk.h"
#include "core/engine/roll.h"
#include "core/memory/map.h"

#include <stdio.h>

#define EVENTS_A_SECOND 10u
#define COMMANDS_MORE 64u

const char spokei_leases_kind[] = "leases";

/* Leases with their settings, in one block of memory. */
struct block {
	struct spoke_leases leases;
	struct spokei_lease_settings settings;
	struct spokei_member member;
	struct spokei_map lines;
	struct spokei_bucket events;
};

static struct block *block_of(struct spoke_leases *leases)
{
	return spoke_container_of(leases, struct block, leases);
}

static struct spoke_leases *leases_of(struct spokei_member *member)
{
	return &spoke_container_of(member, struct block, member)->leases;
}

struct spoke_leases *spokei_leases_of(struct spokei_member *member)
{
	return leases_of(member);
}

struct spokei_member *spokei_leases_member(struct spoke_leases *leases)
{
	return &block_of(leases)->member;
}

/* --- timers */

/* The time of a lease is over. */
static void end_lease(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;

	spokei_lease_happen_now(lease, SPOKEI_LEASE_PASS, &spokei_lease_no_words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_OVER && lease->node.next == NULL)
		spokei_lease_finish(lease, SPOKE_EUNAVAILABLE);
}

/* Has a lease do what its state demands: try, renew, release. */
static void go_on(struct spokei_lease *lease)
{
	switch ((enum spokei_lease_state)lease->life.state) {
	case SPOKEI_LEASE_HELD:
		if (!lease->life.fixed)
			spokei_lease_is_due(lease);
		break;
	case SPOKEI_LEASE_WAITING:
	case SPOKEI_LEASE_RETURNING:
		if (lease->line == NULL && lease->node.next == NULL)
			spokei_lease_todo(lease);
		else if (lease->line && spokei_lease_is_first(lease))
			spokei_lease_line_todo(lease->line);
		break;
	case SPOKEI_LEASE_RELEASING:
		if (!lease->under && lease->node.next == NULL)
			spokei_lease_todo(lease);
		break;
	case SPOKEI_LEASE_NONE:
	case SPOKEI_LEASE_ASKING:
	case SPOKEI_LEASE_OVER:
	case SPOKEI_LEASE_STATES:
	default:
		break;
	}
}

/* The timer is armed again first, while its place on the wheel is free for sure. */
static void lease_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_lease *lease = spoke_container_of(timer, struct spokei_lease, timer);

	(void)arg;
	(void)spokei_lease_arm(lease, UINT64_MAX);
	if (spokei_leases_now(lease->leases) >= lease->life.end_ns)
		end_lease(lease);
	else
		go_on(lease);
}

/* --- events of the store */

static void store_ready(void *arg)
{
	struct spoke_leases *leases = arg;

	leases->reached = true;
	leases->why[0] = '\0';
	leases->hold_ns = 0;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.state != SPOKEI_LEASE_HELD)
			go_on(lease);
	}
	spokei_leases_renew(leases);
	spokei_leases_send(leases);
}

/* Asks that do not wait end with the second failure in a row: a connection that was lost may be
 * made again at once. */
static void store_down(void *arg, int error, struct spoke_span text)
{
	struct spoke_leases *leases = arg;
	const struct spokei_lease_words words = { .text = text };
	bool reached = leases->reached;

	(void)error;
	(void)snprintf(leases->why, sizeof(leases->why), "%.*s", (int)text.len,
		       (const char *)text.data);
	leases->reached = false;
	for (uint32_t i = 0; i < leases->cells.used && !reached && !leases->ended; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.once && spokei_lease_is_ask(&lease->life))
			spokei_lease_happen_now(lease, SPOKEI_LEASE_UNREACHABLE, &words);
	}
}

static struct spokei_lease_line *line_of(struct spokei_redis_channel *channel)
{
	return spoke_container_of(channel, struct spokei_lease_line, channel);
}

/* A message before this moment may have been missed. */
static void store_subscribed(void *arg, struct spokei_redis_channel *channel)
{
	(void)arg;
	spokei_lease_line_wake(line_of(channel));
}

/* Any message on this channel, e.g. about a release, is worth a try. */
static void store_message(void *arg, struct spokei_redis_channel *channel,
			  struct spoke_span payload)
{
	(void)arg;
	(void)payload;
	spokei_lease_line_wake(line_of(channel));
}

static const struct spokei_redis_up redis_up = {
	.ready = store_ready,
	.down = store_down,
	.subscribed = store_subscribed,
	.message = store_message,
};

/* --- the end */

static void free_memory(struct spoke_leases *leases)
{
	const struct spoke_env *env = leases->engine->env;

	spokei_slab_fini(&leases->cells);
	spokei_slab_fini(&leases->commands);
	spokei_map_fini(leases->lines);
	spokei_lease_settings_free(env, &block_of(leases)->settings);
	spokei_free(env, block_of(leases), 1, sizeof(struct block));
}

static void leases_bury(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, bury);
	struct spokei_desk *desk = atomic_load_explicit(&leases->desk, memory_order_acquire);

	if (!spokei_list_empty(&leases->news) || leases->cells.count > 0 ||
	    (leases->freed && !spokei_desk_close(desk))) {
		spokei_engine_dead(leases->engine, task);
		return;
	}
	if (!leases->freed) {
		spokei_roll_retire(leases->engine, &block_of(leases)->member);
		return;
	}
	/* It may be queued with nothing to tell. */
	spokei_task_drop(&leases->tell);
	spokei_desk_drop(desk);
	spokei_roll_drop(leases->engine, &block_of(leases)->member);
	free_memory(leases);
}

/* Ends one lease; its user is called by a task. */
static void close_lease(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	bool forked = spokei_engine_forked(leases->engine);

	spokei_lease_happen_now(lease, SPOKEI_LEASE_CLOSE, NULL);
	if (lease->life.state == SPOKEI_LEASE_RELEASING && !forked &&
	    spokei_redis_is_ready(leases->redis))
		spokei_lease_send_release(lease);
	if (lease->tell == SPOKEI_LEASE_TELL_NOTHING && lease->node.next)
		spokei_list_remove(&lease->node);
	if (lease->node.next == NULL)
		spokei_list_append(&leases->news, &lease->node);
	(void)spoke_wheel_cancel(leases->engine->wheel, &lease->timer);
}

static void forget_commands(struct spoke_leases *leases)
{
	for (uint32_t i = 0; i < leases->commands.used; i++) {
		const struct spokei_lease_command *command = spokei_slab_at(&leases->commands, i);

		if (command->cell)
			spokei_slab_give(&leases->commands, command->cell);
	}
}

/* Ends everything. Commands under way are forgotten by the store, and so is their memory. */
static void end_leases(struct spoke_leases *leases)
{
	if (leases->ended)
		return;
	leases->draining = true;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.state != SPOKEI_LEASE_NONE)
			close_lease(lease);
	}
	leases->ended = true;
	spokei_redis_free(leases->redis);
	leases->redis = NULL;
	forget_commands(leases);
	spokei_task_drop(&leases->send);
	spokei_task_drop(&leases->renew);
	spokei_task_drop(&leases->rest);
	spokei_early_drop(&leases->early);
	spokei_engine_soon(leases->engine, &leases->tell);
	spokei_engine_dead(leases->engine, &leases->bury);
}

void spoke_leases_free(struct spoke_leases *leases)
{
	if (leases == NULL || leases->freed)
		return;
	spokei_engine_refresh(leases->engine);
	leases->freed = true;
	end_leases(leases);
	spokei_engine_dead(leases->engine, &leases->bury);
}

static void leases_close(struct spokei_member *member)
{
	end_leases(leases_of(member));
}

static void leases_member_free(struct spokei_member *member)
{
	spoke_leases_free(leases_of(member));
}

static void leases_rest(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, rest);

	if (leases->cells.count == 0)
		end_leases(leases);
}

/* Leases that are held stay until they are released or lost. */
static void leases_drain(struct spokei_member *member)
{
	struct spoke_leases *leases = leases_of(member);

	leases->draining = true;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (spokei_lease_is_ask(&lease->life))
			spokei_lease_happen_now(lease, SPOKEI_LEASE_CLOSE, NULL);
	}
	spokei_engine_soon(leases->engine, &leases->rest);
}

/* The store's clock went on while the machine slept: everything is due, and all timers are late.
 * The timers of leases that were ended before, in a callback of this turn, stay off. */
static void leases_woke(struct spokei_member *member)
{
	struct spoke_leases *leases = leases_of(member);

	if (leases->ended)
		return;
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);

		if (lease->life.state == SPOKEI_LEASE_NONE ||
		    lease->life.state == SPOKEI_LEASE_OVER)
			continue;
		(void)spokei_lease_arm(lease, UINT64_MAX);
		go_on(lease);
	}
}

/* --- the beginning */

/* Makes a UUID of version 4: no two clients of a store have the same. */
static void make_uuid(const struct spoke_env *env, char to[SPOKEI_LEASE_UUID])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char dice[16];
	size_t at = 0;

	env->dice(env->ctx, dice, sizeof(dice));
	dice[6] = (unsigned char)((dice[6] & 0x0f) | 0x40);
	dice[8] = (unsigned char)((dice[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(dice); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			to[at++] = '-';
		to[at++] = digits[dice[i] >> 4];
		to[at++] = digits[dice[i] & 15];
	}
	SPOKE_ASSERT(at == SPOKEI_LEASE_UUID);
}

static void init_leases(struct spoke_leases *leases)
{
	struct spoke_engine *engine = leases->engine;
	const struct spoke_env *env = engine->env;

	spokei_lease_clock_init(&leases->clock, env);
	make_uuid(env, leases->uuid);
	spokei_slab_init_lasting(&leases->cells, env, sizeof(struct spokei_lease),
				 leases->settings->max);
	spokei_slab_init_lasting(&leases->commands, env, sizeof(struct spokei_lease_command),
				 leases->settings->max + COMMANDS_MORE);
	leases->lines = &block_of(leases)->lines;
	spokei_map_init(leases->lines, env);
	spokei_list_init(&leases->todo);
	spokei_list_init(&leases->lines_todo);
	spokei_list_init(&leases->due);
	spokei_list_init(&leases->news);
	leases->send.run = spokei_leases_send_task;
	leases->renew.run = spokei_leases_renew_task;
	leases->tell.run = spokei_leases_tell;
	leases->rest.run = leases_rest;
	leases->bury.run = leases_bury;
	leases->early.begin = spokei_leases_early;
	leases->patience_ns = spokei_lease_patience(leases->settings->ttl_ns);
	leases->events = &block_of(leases)->events;
	*leases->events = spokei_bucket_make(EVENTS_A_SECOND, EVENTS_A_SECOND, engine->begin_ns);
	block_of(leases)->member = (struct spokei_member){
		.kind = spokei_leases_kind,
		.close = leases_close,
		.drain = leases_drain,
		.woke = leases_woke,
		.free = leases_member_free,
	};
}

static int leases_new(struct spoke_engine *engine, const struct spoke_leases_options *options,
		      struct spoke_leases **ret_leases)
{
	struct spoke_leases *leases;
	struct block *block;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	block = spokei_alloc(engine->env, 1, sizeof(*block));
	if (block == NULL)
		return SPOKE_ENOMEM;
	leases = &block->leases;
	leases->engine = engine;
	leases->settings = &block->settings;
	error = spokei_lease_settings(engine, options, &block->settings);
	if (error)
		goto err_after_alloc;
	init_leases(leases);
	error = spokei_engine_class(engine, "lease", lease_due, &leases->timer_class);
	if (error == SPOKE_OK)
		error = spokei_redis_new(engine, &block->settings.redis, &redis_up, leases,
					 &leases->redis);
	spokei_lease_settings_fini(&block->settings);
	if (error)
		goto err_after_alloc;
	spokei_redis_patience(leases->redis, leases->patience_ns);
	spokei_roll_add(engine, &block_of(leases)->member);
	*ret_leases = leases;
	return SPOKE_OK;

err_after_alloc:
	spokei_lease_settings_free(engine->env, &block->settings);
	spokei_free(engine->env, block, 1, sizeof(*block));
	return error;
}

int spoke_leases_new(struct spoke_engine *engine, const struct spoke_leases_options *options,
		     struct spoke_leases **ret_leases)
{
	uint64_t begun;

	if (engine == NULL || options == NULL || ret_leases == NULL)
		return SPOKE_EINVAL;
	begun = spokei_why_begin(engine);
	return spokei_why_end(engine, begun, leases_new(engine, options, ret_leases), "new leases");
}

void spoke_leases_look(const struct spoke_leases *leases, struct spoke_leases_look *ret_look)
{
	uint64_t now_ns = spokei_leases_now(leases);
	const char *address = leases->redis ? spokei_redis_address(leases->redis) : "";
	size_t len = strlen(address);

	*ret_look = (struct spoke_leases_look){
		.connected = leases->redis && spokei_redis_is_ready(leases->redis),
		.asked = leases->asks,
		.held = leases->held,
		.left_min_ns = UINT64_MAX,
	};
	if (len >= sizeof(ret_look->store))
		len = sizeof(ret_look->store) - 1;
	memcpy(ret_look->store, address, len);
	(void)snprintf(ret_look->why, sizeof(ret_look->why), "%s", leases->why);
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		const struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		uint64_t left_ns = spokei_lease_left_at(&lease->life, now_ns);

		if (lease->life.state == SPOKEI_LEASE_HELD && left_ns < ret_look->left_min_ns)
			ret_look->left_min_ns = left_ns;
	}
}
