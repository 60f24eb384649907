/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futures of leases: asks that any thread may start, wait for and release. A future is
 * reference-counted: its user, its lease and each post in flight hold a share, and the last one
 * frees it. Everything about its lease happens on the engine's thread; other threads post. They
 * read the end of its validity from a number that the rooms of leases keep up to date.
 */
#include "cluster/lease/parts.h"
#include "cluster/lease/settings.h"
#include "core/engine/waiters.h"

#include <spoke/engine.h>

enum {
	TOLD = 1,  /* the answer is set */
	GIVEN = 2, /* its user has released or freed it */
};

struct spoke_lease_future {
	struct spokei_lease_mirror mirror; /* the argument of the lease's callbacks */
	struct spokei_desk *desk;
	struct spoke_leases *leases; /* while the desk is open */
	struct spokei_lease_clock clock;
	atomic_uint shares;
	atomic_uint state; /* TOLD, GIVEN */
	struct spokei_waiters told;
	struct spokei_waiters released;
	struct spoke_post begin;
	struct spoke_post release;
	struct spoke_lease lease; /* set when it begins; for other threads from TOLD on */
	bool held;                /* told as held, and neither lost nor released. Engine's thread */
	int released_error;       /* set before `released` */
	struct spoke_lease_answer answer; /* points into `bytes` */
	unsigned char *bytes;
	size_t bytes_len;
	struct spoke_lease_options options;
	size_t size; /* of this, with the name */
	char name[];
};

static struct spoke_lease_future *future_of(void *arg)
{
	return spoke_container_of((struct spokei_lease_mirror *)arg, struct spoke_lease_future,
				  mirror);
}

static bool is_told(const struct spoke_lease_future *future)
{
	return atomic_load_explicit(&future->state, memory_order_acquire) & TOLD;
}

static bool is_given(const struct spoke_lease_future *future)
{
	return atomic_load_explicit(&future->state, memory_order_acquire) & GIVEN;
}

static void add_share(struct spoke_lease_future *future)
{
	(void)atomic_fetch_add_explicit(&future->shares, 1, memory_order_relaxed);
}

static void drop_share(struct spoke_lease_future *future)
{
	struct spokei_desk *desk = future->desk;

	if (atomic_fetch_sub_explicit(&future->shares, 1, memory_order_acq_rel) > 1)
		return;
	spokei_free(desk->env, future->bytes, 1, future->bytes_len);
	spokei_free(desk->env, future, 1, future->size);
	spokei_desk_drop(desk);
}

/* Posts to the engine's thread, with a share. Returns false if the leases are gone. */
static bool post(struct spoke_lease_future *future, struct spoke_post *what)
{
	if (!spokei_desk_enter(future->desk))
		return false;
	add_share(future);
	spoke_engine_post(future->desk->engine, what);
	spokei_desk_leave(future->desk);
	return true;
}

/* --- on the engine's thread */

/* Copies an answer. Without memory its text is left out. */
static void keep_answer(struct spoke_lease_future *future, const struct spoke_lease_answer *from)
{
	size_t len = from->text.len;

	future->answer = *from;
	future->answer.text = (struct spoke_span){ "", 0 };
	if (len == 0)
		return;
	future->bytes = spokei_alloc_unset(future->desk->env, len);
	if (future->bytes == NULL)
		return;
	future->bytes_len = len;
	memcpy(future->bytes, from->text.data, len);
	future->answer.text = (struct spoke_span){ future->bytes, len };
}

static void finish_ask(struct spoke_lease_future *future, const struct spoke_lease_answer *answer)
{
	keep_answer(future, answer);
	(void)atomic_fetch_or_explicit(&future->state, TOLD, memory_order_acq_rel);
	spokei_waiters_end(&future->told, future->desk);
}

/* The share of the lease stays with one that is held. */
static void ask_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct spoke_lease_future *future = future_of(arg);
	struct spoke_lease_answer cancelled = { .error = SPOKE_ECANCELED };

	(void)lease;
	if (answer->error) {
		finish_ask(future, answer);
		drop_share(future);
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
	drop_share(future);
}

static int try_ask(struct spoke_lease_future *future)
{
	struct spoke_lease_options options = future->options;
	int error;

	if (spokei_desk_closed(future->desk))
		return SPOKE_ECLOSED;
	if (is_given(future))
		return SPOKE_ECANCELED;
	options.lost = lease_lost;
	options.arg = &future->mirror;
	error = spoke_lease_ask(future->leases, future->name, &options, ask_told, &future->lease);
	if (error == SPOKE_OK)
		spokei_lease_mirror(future->lease);
	return error;
}

/* Begins the ask, which takes over one share. */
static void begin(struct spoke_lease_future *future)
{
	const struct spoke_lease_answer refusal = { .error = try_ask(future) };

	if (refusal.error == SPOKE_OK)
		return;
	finish_ask(future, &refusal);
	drop_share(future);
}

static void begin_arrived(struct spoke_post *arrived)
{
	begin(spoke_container_of(arrived, struct spoke_lease_future, begin));
}

static void finish_release(struct spoke_lease_future *future, int error)
{
	future->released_error = error;
	spokei_waiters_end(&future->released, future->desk);
	drop_share(future);
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

	if (!spokei_desk_closed(future->desk))
		error = spoke_lease_release(future->lease, release_done, future);
	if (error) {
		finish_release(future, error);
		return;
	}
	future->held = false;
	if (held)
		drop_share(future);
}

static void release_arrived(struct spoke_post *arrived)
{
	release(spoke_container_of(arrived, struct spoke_lease_future, release));
}

/* --- functions for any thread */

static struct spoke_lease_future *make(struct spoke_leases *leases, struct spokei_desk *desk,
				       const char *name, const struct spoke_lease_options *options)
{
	size_t name_size = strlen(name) + 1;
	size_t size = sizeof(struct spoke_lease_future) + name_size;
	struct spoke_lease_future *future = spokei_alloc_unset(desk->env, size);

	if (future == NULL)
		return NULL;
	*future = (struct spoke_lease_future){
		.desk = desk,
		.leases = leases,
		.clock = leases->clock,
		.begin.run = begin_arrived,
		.release.run = release_arrived,
		.size = size,
	};
	if (options)
		future->options = *options;
	atomic_init(&future->shares, 1);
	memcpy(future->name, name, name_size);
	return future;
}

static int check(const struct spoke_leases *leases, const char *name,
		 const struct spoke_lease_options *options)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	struct spokei_lease_terms terms;

	if (leases == NULL || name == NULL || !spokei_lease_is_name(name, strlen(name)))
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
	struct spokei_desk *desk;
	int error = check(leases, name, options);

	if (error)
		return error;
	desk = spokei_desk_get(&leases->desk, leases->engine);
	if (desk == NULL)
		return SPOKE_ENOMEM;
	future = make(leases, desk, name, options);
	if (future == NULL) {
		spokei_desk_drop(desk);
		return SPOKE_ENOMEM;
	}
	if (spokei_engine_here(leases->engine)) {
		add_share(future);
		begin(future);
	} else if (!post(future, &future->begin)) {
		drop_share(future);
		return SPOKE_ECLOSED;
	}
	*ret_future = future;
	return SPOKE_OK;
}

const struct spoke_lease_answer *spoke_lease_future_answer(const struct spoke_lease_future *future)
{
	return is_told(future) ? &future->answer : NULL;
}

uint64_t spoke_lease_future_left(const struct spoke_lease_future *future)
{
	uint64_t end_ns = atomic_load_explicit(&future->mirror.end_ns, memory_order_acquire);
	uint64_t now_ns;

	if (end_ns == 0 || is_given(future) || spokei_desk_forked(future->desk))
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

/* Has the lease released, unless that was done before. A thread that is inside the desk has posted
 * before it leaves, so a later one may wait. Returns false if the leases are gone. */
static bool give(struct spoke_lease_future *future)
{
	if (!spokei_desk_enter(future->desk))
		return spokei_waiters_over(&future->released);
	if (!(atomic_fetch_or_explicit(&future->state, GIVEN, memory_order_acq_rel) & GIVEN)) {
		add_share(future);
		spoke_engine_post(future->desk->engine, &future->release);
	}
	spokei_desk_leave(future->desk);
	return true;
}

void spoke_lease_future_free(struct spoke_lease_future *future)
{
	if (future == NULL)
		return;
	if (!spokei_desk_forked(future->desk))
		(void)give(future);
	drop_share(future);
}

/* Returns why this thread may not wait; 0: it may. */
static int check_wait(const struct spoke_lease_future *future)
{
	if (spokei_desk_here(future->desk))
		return SPOKE_ETHREAD;
	return spokei_desk_forked(future->desk) ? SPOKE_EFORKED : SPOKE_OK;
}

int spoke_lease_future_wait(struct spoke_lease_future *future)
{
	int error;

	/* After the leases have gone, the engine's thread may have ended. */
	if (is_told(future) && spokei_desk_closed(future->desk))
		return future->answer.error;
	error = check_wait(future);
	if (error == SPOKE_OK && !is_told(future))
		error = spokei_waiters_wait(&future->told, future->desk, UINT64_MAX);
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
		error = spokei_waiters_wait(&future->released, future->desk, UINT64_MAX);
	return error ? error : future->released_error;
}
