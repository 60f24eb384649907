/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of <spoke/lease.h>: the leases of one engine at one store, from the first to the
 * end; asks and leases on the engine's thread, and futures for other threads; uses, and rows for
 * the page. holding.c does what they ask for.
 */
#include "cluster/lease/parts.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/use.h"
#include "cluster/lease/view.h"
#include "core/base/pace.h"
#include "core/engine/future.h"
#include "core/engine/members.h"
#include "core/engine/weak.h"
#include "core/text/encoding.h"

#include <spoke/engine.h>

#include <stdio.h>

#define SEARCHED 4096u /* cells, at most */
#define EVENTS_A_SECOND 10u

/* Leases with the parts of them that only this file knows. */
struct block {
	struct spoke_leases leases;
	struct spokei_member member;
	struct spokei_lease_settings settings;
	struct spokei_bucket events; /* limits events about single leases */
};

static struct block *block_of(struct spoke_leases *leases)
{
	return spoke_container_of(leases, struct block, leases);
}

bool spokei_leases_may_log(struct spoke_leases *leases)
{
	return spokei_bucket_take(&block_of(leases)->events, 1, leases->engine->begin_ns);
}

/* --- the end */

static void free_memory(struct spoke_leases *leases)
{
	const struct spoke_env *env = leases->engine->env;

	spokei_slab_fini(&leases->cells);
	spokei_slab_fini(&leases->commands);
	spokei_map_fini(&leases->queues);
	spokei_lease_settings_free(env, &block_of(leases)->settings);
	spokei_free(env, block_of(leases), 1, sizeof(struct block));
}

static void finalise(struct spokei_task *task)
{
	struct spoke_leases *leases = spoke_container_of(task, struct spoke_leases, end);
	struct spokei_weak *weak = atomic_load_explicit(&leases->weak, memory_order_acquire);

	if (!spokei_list_empty(&leases->untold) || leases->cells.count > 0 ||
	    (leases->freed && !spokei_weak_close(weak))) {
		spokei_run_freeing(leases->engine, task);
		return;
	}
	if (!leases->freed) {
		spokei_member_retire(leases->engine, &block_of(leases)->member);
		return;
	}
	/* It may be queued with nothing to tell. */
	spokei_task_drop(&leases->tell);
	spokei_weak_drop(weak);
	spokei_member_drop(&block_of(leases)->member);
	free_memory(leases);
}

void spoke_leases_free(struct spoke_leases *leases)
{
	if (leases == NULL || spokei_engine_keeps(leases->engine, "spoke_leases_free()") ||
	    leases->freed)
		return;
	leases->freed = true;
	spokei_leases_end(leases);
	spokei_run_freeing(leases->engine, &leases->end);
}

static void leases_close(struct spokei_member *member)
{
	spokei_leases_end(spokei_leases_of(member));
}

static void leases_member_free(struct spokei_member *member)
{
	spoke_leases_free(spokei_leases_of(member));
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
	leases->end.run = finalise;
	block->member = (struct spokei_member){
		.kind = spokei_leases_kind,
		.close = leases_close,
		.free = leases_member_free,
	};
	spokei_lease_clock_init(&leases->clock, engine->env);
	make_uuid(engine->env, leases->uuid);
	block->events = spokei_bucket_make(EVENTS_A_SECOND, EVENTS_A_SECOND, engine->begin_ns);
	error = spokei_lease_settings(engine, options, &block->settings);
	if (error == SPOKE_OK)
		error = spokei_leases_begin(leases, &block->member);
	if (error) {
		spokei_lease_settings_free(engine->env, &block->settings);
		spokei_free(engine->env, block, 1, sizeof(*block));
		return error;
	}
	spokei_member_add(engine, &block->member);
	*ret_leases = leases;
	return SPOKE_OK;
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

int spoke_leases_look(const struct spoke_leases *leases, struct spoke_leases_look *ret_look)
{
	int error = spokei_engine_check(leases->engine);
	uint64_t now_ns;

	*ret_look = (struct spoke_leases_look){ .left_min_ns = UINT64_MAX };
	if (error)
		return error;
	now_ns = spokei_leases_now(leases);
	ret_look->connected = leases->redis && spokei_redis_is_ready(leases->redis);
	ret_look->asked = leases->asks;
	ret_look->held = leases->held;
	(void)snprintf(ret_look->store, sizeof(ret_look->store), "%s",
		       leases->redis ? spokei_redis_address(leases->redis) : "");
	(void)snprintf(ret_look->why, sizeof(ret_look->why), "%s", leases->why);
	for (uint32_t i = 0; i < leases->cells.used; i++) {
		const struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		uint64_t left_ns = spokei_lease_left_at(&lease->life, now_ns);

		if (lease->life.state == SPOKEI_LEASE_HELD && left_ns < ret_look->left_min_ns)
			ret_look->left_min_ns = left_ns;
	}
	return SPOKE_OK;
}

/* --- asks and leases, on the engine's thread */

/* Returns whether a lease can have this name. */
static bool is_name(const char *name, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t step = spokei_utf8_len((const unsigned char *)name + at, len - at);

		if (step == 0)
			return false;
		at += step;
	}
	return len > 0 && len <= SPOKE_LEASE_NAME_MAX;
}

static int check(const struct spoke_leases *leases, const char *name, spoke_lease_told_fn told)
{
	int error;

	if (leases == NULL || name == NULL || told == NULL || !is_name(name, strlen(name)))
		return SPOKE_EINVAL;
	error = spokei_engine_check(leases->engine);
	return error == SPOKE_OK && leases->draining ? SPOKE_ECLOSED : error;
}

static int read_terms(struct spoke_leases *leases, const struct spoke_lease_options *options,
		      struct spokei_lease_terms *ret)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	int error = spokei_lease_terms(leases->settings, options, ret, why);

	if (error)
		spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, error, "%s", why);
	return error;
}

int spoke_lease_ask(struct spoke_leases *leases, const char *name,
		    const struct spoke_lease_options *options, spoke_lease_told_fn told,
		    struct spoke_lease *ret_lease)
{
	static const struct spoke_lease_options defaults;
	const struct spoke_lease_options *with = options ? options : &defaults;
	struct spokei_lease *lease;
	struct spokei_lease_terms terms;
	int error = check(leases, name, told);

	if (error == SPOKE_OK)
		error = read_terms(leases, with, &terms);
	if (error == SPOKE_OK)
		error = spokei_lease_take(leases, name, &terms, &lease);
	if (error)
		return error;
	lease->life.fixed = with->fixed;
	lease->told = told;
	lease->lost = with->lost;
	lease->arg = with->arg;
	if (ret_lease)
		*ret_lease = spokei_lease_public(lease);
	return SPOKE_OK;
}

/* Finds no lease on other threads than the engine's. */
static struct spokei_lease *find(struct spoke_lease lease)
{
	if (lease.leases == NULL || spokei_engine_elsewhere(lease.leases->engine))
		return NULL;
	return spokei_slab_get(&lease.leases->cells, lease.handle);
}

uint64_t spoke_lease_left(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	if (found == NULL || spokei_engine_forked(lease.leases->engine))
		return 0;
	return spokei_lease_left_at(&found->life, spokei_leases_now(lease.leases));
}

uint64_t spoke_lease_fence(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	return found && found->life.state == SPOKEI_LEASE_HELD ? found->life.fence : 0;
}

struct spoke_span spoke_lease_name(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	return found ? spokei_lease_name_of(found) : (struct spoke_span){ "", 0 };
}

int spoke_lease_release(struct spoke_lease lease, spoke_lease_released_fn done, void *arg)
{
	struct spokei_lease *found;
	int error = lease.leases ? spokei_engine_check(lease.leases->engine) : SPOKE_ENOENT;

	if (error)
		return error;
	found = find(lease);
	if (found == NULL ||
	    (found->life.state != SPOKEI_LEASE_HELD && !spokei_lease_is_ask(&found->life)))
		return SPOKE_ENOENT;
	spokei_lease_give(found, done, arg);
	return SPOKE_OK;
}

/* --- uses */

int spokei_lease_use_check(struct spoke_lease lease, const struct spoke_engine *engine)
{
	if (lease.leases->engine != engine)
		return SPOKE_EINVAL;
	return spoke_lease_left(lease) > 0 ? SPOKE_OK : SPOKE_ELEASE;
}

int spokei_lease_use_begin(struct spoke_lease lease, const struct spoke_engine *engine,
			   struct spokei_lease_use *use)
{
	int error = spokei_lease_use_check(lease, engine);

	if (error)
		return error;
	use->lease = lease;
	spokei_uses_join(&find(lease)->uses, &use->use);
	return SPOKE_OK;
}

/* --- futures
 *
 * Asks that any thread may start, wait for and release. A future is reference-counted: its user,
 * its lease and each post in flight hold a share, and the last one frees it. Everything about its
 * lease happens on the engine's thread; other threads post. They read the end of its validity from
 * a number that holding.c keeps up to date.
 */

enum {
	TOLD = 1,  /* the answer is set */
	GIVEN = 2, /* its user has released or freed it */
};

struct spoke_lease_future {
	struct spokei_future shared;
	struct spokei_lease_mirror mirror; /* the argument of the lease's callbacks */
	struct spoke_leases *leases;       /* while the weak handle is open */
	struct spokei_lease_clock clock;
	struct spokei_waiters told;
	struct spokei_waiters released;
	struct spoke_post begin;
	struct spoke_post release;
	struct spoke_lease lease; /* set when it begins; for other threads from TOLD on */
	bool held;                /* told as held, and neither lost nor released. Engine's thread */
	int released_error;       /* set before `released` */
	struct spoke_lease_answer answer; /* points into bytes of `shared` */
	struct spoke_lease_options options;
	char name[];
};

static struct spoke_lease_future *future_of(void *arg)
{
	return spoke_container_of((struct spokei_lease_mirror *)arg, struct spoke_lease_future,
				  mirror);
}

static bool is_told(const struct spoke_lease_future *future)
{
	return spokei_future_marks(&future->shared) & TOLD;
}

static bool is_given(const struct spoke_lease_future *future)
{
	return spokei_future_marks(&future->shared) & GIVEN;
}

/* --- futures, on the engine's thread */

/* Copies an answer. Without memory its text is left out. */
static void keep_answer(struct spoke_lease_future *future, const struct spoke_lease_answer *from)
{
	size_t len = from->text.len;
	unsigned char *bytes;

	future->answer = *from;
	future->answer.text = (struct spoke_span){ "", 0 };
	if (len == 0)
		return;
	bytes = spokei_future_bytes(&future->shared, len);
	if (bytes == NULL)
		return;
	memcpy(bytes, from->text.data, len);
	future->answer.text = (struct spoke_span){ bytes, len };
}

static void finish_ask(struct spoke_lease_future *future, const struct spoke_lease_answer *answer)
{
	keep_answer(future, answer);
	(void)spokei_future_mark(&future->shared, TOLD);
	spokei_waiters_end(&future->told, future->shared.weak);
}

/* The share of the lease stays with one that is held. */
static void ask_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct spoke_lease_future *future = future_of(arg);
	struct spoke_lease_answer cancelled = { .error = SPOKE_ECANCELED };

	(void)lease;
	if (answer->error) {
		finish_ask(future, answer);
		spokei_future_drop(&future->shared);
		return;
	}
	future->held = true;
	/* A release that came too late to cancel is on its way here. */
	finish_ask(future, is_given(future) ? &cancelled : answer);
}

static void lease_lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	struct spoke_lease_future *future = future_of(arg);

	future->held = false;
	if (future->options.lost && !is_given(future))
		future->options.lost(future->options.arg, lease, why);
	spokei_future_drop(&future->shared);
}

static int try_ask(struct spoke_lease_future *future)
{
	struct spoke_lease_options options = future->options;
	struct spokei_lease *lease;
	int error;

	if (spokei_weak_closed(future->shared.weak))
		return SPOKE_ECLOSED;
	if (is_given(future))
		return SPOKE_ECANCELED;
	options.lost = lease_lost;
	options.arg = &future->mirror;
	error = spoke_lease_ask(future->leases, future->name, &options, ask_told, &future->lease);
	if (error)
		return error;
	lease = find(future->lease);
	SPOKE_ASSERT(lease != NULL);
	lease->mirrored = true;
	return SPOKE_OK;
}

/* Begins the ask, which takes over one share. */
static void begin_arrived(struct spoke_post *arrived)
{
	struct spoke_lease_future *future = spoke_container_of(arrived, struct spoke_lease_future,
							       begin);
	const struct spoke_lease_answer refusal = { .error = try_ask(future) };

	if (refusal.error == SPOKE_OK)
		return;
	finish_ask(future, &refusal);
	spokei_future_drop(&future->shared);
}

static void finish_release(struct spoke_lease_future *future, int error)
{
	future->released_error = error;
	spokei_waiters_end(&future->released, future->shared.weak);
	spokei_future_drop(&future->shared);
}

static void release_done(void *arg, int error)
{
	finish_release(arg, error);
}

/* A lease that was held ends without another callback, so its share ends here. That of an ask ends
 * when it is told as cancelled. */
static void release(struct spoke_lease_future *future)
{
	bool held = future->held;
	int error = SPOKE_ENOENT;

	if (!spokei_weak_closed(future->shared.weak))
		error = spoke_lease_release(future->lease, release_done, future);
	if (error) {
		finish_release(future, error);
		return;
	}
	future->held = false;
	if (held)
		spokei_future_drop(&future->shared);
}

static void release_arrived(struct spoke_post *arrived)
{
	release(spoke_container_of(arrived, struct spoke_lease_future, release));
}

/* --- futures, for any thread */

static struct spoke_lease_future *make(struct spoke_leases *leases, struct spokei_weak *weak,
				       const char *name, const struct spoke_lease_options *options)
{
	size_t name_size = strlen(name) + 1;
	size_t size = sizeof(struct spoke_lease_future) + name_size;
	struct spoke_lease_future *future = spokei_alloc_unset(weak->env, size);

	if (future == NULL)
		return NULL;
	*future = (struct spoke_lease_future){
		.shared = spokei_future_make(weak, size),
		.leases = leases,
		.clock = leases->clock,
		.begin.run = begin_arrived,
		.release.run = release_arrived,
	};
	if (options)
		future->options = *options;
	memcpy(future->name, name, name_size);
	return future;
}

static int check_start(const struct spoke_leases *leases, const char *name,
		       const struct spoke_lease_options *options)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	struct spokei_lease_terms terms;

	if (leases == NULL || name == NULL || !is_name(name, strlen(name)))
		return SPOKE_EINVAL;
	if (spokei_engine_forked(leases->engine))
		return SPOKE_EFORKED;
	return spokei_lease_terms(leases->settings, options, &terms, why);
}

int spoke_lease_start(struct spoke_leases *leases, const char *name,
		      const struct spoke_lease_options *options,
		      struct spoke_lease_future **ret_future)
{
	struct spoke_lease_future *future;
	struct spokei_weak *weak;
	int error = check_start(leases, name, options);

	if (error)
		return error;
	weak = spokei_weak_get(&leases->weak, leases->engine);
	if (weak == NULL)
		return SPOKE_ENOMEM;
	future = make(leases, weak, name, options);
	if (future == NULL) {
		spokei_weak_drop(weak);
		return SPOKE_ENOMEM;
	}
	error = spokei_future_begin(&future->shared, &future->begin);
	if (error == SPOKE_OK)
		*ret_future = future;
	return error;
}

const struct spoke_lease_answer *spoke_lease_future_answer(const struct spoke_lease_future *future)
{
	return is_told(future) ? &future->answer : NULL;
}

uint64_t spoke_lease_future_left(const struct spoke_lease_future *future)
{
	uint64_t end_ns = atomic_load_explicit(&future->mirror.end_ns, memory_order_acquire);
	uint64_t now_ns;

	if (end_ns == 0 || is_given(future) || spokei_weak_forked(future->shared.weak))
		return 0;
	now_ns = spokei_lease_clock_now(&future->clock);
	return now_ns < end_ns ? end_ns - now_ns : 0;
}

struct spoke_lease spoke_lease_future_lease(const struct spoke_lease_future *future)
{
	bool held = is_told(future) && future->answer.error == SPOKE_OK && !is_given(future) &&
		    atomic_load_explicit(&future->mirror.end_ns, memory_order_acquire) != 0;

	return held ? future->lease : (struct spoke_lease){ NULL, 0 };
}

/* Has the lease released, unless that was done before. A thread that is inside the weak handle has
 * posted before it leaves, so a later one may wait. Returns false if the leases are gone. */
static bool give(struct spoke_lease_future *future)
{
	if (!spokei_weak_enter(future->shared.weak))
		return spokei_waiters_over(&future->released);
	if (!(spokei_future_mark(&future->shared, GIVEN) & GIVEN)) {
		spokei_future_share(&future->shared);
		spoke_engine_post(future->shared.weak->engine, &future->release);
	}
	spokei_weak_leave(future->shared.weak);
	return true;
}

void spoke_lease_future_free(struct spoke_lease_future *future)
{
	if (future == NULL)
		return;
	if (!spokei_weak_forked(future->shared.weak))
		(void)give(future);
	spokei_future_drop(&future->shared);
}

/* Returns why this thread may not wait; 0: it may. */
static int check_wait(const struct spoke_lease_future *future)
{
	if (spokei_weak_here(future->shared.weak))
		return SPOKE_ETHREAD;
	return spokei_weak_forked(future->shared.weak) ? SPOKE_EFORKED : SPOKE_OK;
}

int spoke_lease_future_wait(struct spoke_lease_future *future)
{
	int error;

	/* After the leases have gone, the engine's thread may have ended. */
	if (is_told(future) && spokei_weak_closed(future->shared.weak))
		return future->answer.error;
	error = check_wait(future);
	if (error == SPOKE_OK && !is_told(future))
		error = spokei_waiters_wait(&future->told, future->shared.weak, UINT64_MAX);
	return error ? error : future->answer.error;
}

int spoke_lease_future_release(struct spoke_lease_future *future)
{
	int error = check_wait(future);

	if (error)
		return error;
	if (!give(future))
		return SPOKE_ENOENT;
	if (!spokei_waiters_over(&future->released))
		error = spokei_waiters_wait(&future->released, future->shared.weak, UINT64_MAX);
	return error ? error : future->released_error;
}

/* --- for the page */

static const char *name_of(const struct spokei_lease *lease)
{
	switch ((enum spokei_lease_state)lease->life.state) {
	case SPOKEI_LEASE_WAITING:
		return "waiting";
	case SPOKEI_LEASE_ASKING:
	case SPOKEI_LEASE_RETURNING:
		return "asking";
	case SPOKEI_LEASE_HELD:
		return "held";
	case SPOKEI_LEASE_RELEASING:
		return "releasing";
	case SPOKEI_LEASE_NONE:
	case SPOKEI_LEASE_OVER:
	case SPOKEI_LEASE_STATES:
		break;
	}
	return NULL;
}

const char spokei_leases_kind[] = "leases";

struct spoke_leases *spokei_leases_of(struct spokei_member *member)
{
	return &spoke_container_of(member, struct block, member)->leases;
}

const struct spokei_lease_settings *spokei_leases_settings(const struct spoke_leases *leases)
{
	return leases->settings;
}

size_t spokei_leases_rows(const struct spoke_leases *leases, struct spokei_lease_row *rows,
			  size_t max)
{
	uint64_t now_ns = spokei_leases_now(leases);
	size_t count = 0;

	for (uint32_t i = 0; i < leases->cells.used && i < SEARCHED && count < max; i++) {
		const struct spokei_lease *lease = spokei_slab_at(&leases->cells, i);
		const char *state = name_of(lease);

		if (state == NULL)
			continue;
		rows[count++] = (struct spokei_lease_row){
			.id = lease->handle,
			.name = spokei_lease_name_of(lease),
			.state = state,
			.left_ns = spokei_lease_left_at(&lease->life, now_ns),
			.fence = lease->life.state == SPOKEI_LEASE_HELD ? lease->life.fence : 0,
		};
	}
	return count;
}
