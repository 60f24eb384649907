/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users of a gateway. They are in a hash table with chains through the users, because most of
 * their memory would else be the table's. The pass runs once in each turn with changes: it reports
 * users that came or left, then writes messages. Messages to one user go first. All messages to all
 * users share one pass over the connections, because each connection has its cursor. The rest goes
 * on in the next turn, after the descriptors were read. The sweep ends the things that are over by
 * time.
 */
#include "cluster/comet/comet.h"
#include "core/base/siphash.h"
#include "core/text/encoding.h"

#define BUCKETS_FIRST 64u
#define SLICE_NS UINT64_C(500000)
#define SLICE_WRITES 256u
#define LOOK_EVERY 16u    /* writes between two readings of the clock */
#define VISIT_EVERY 256u  /* connections visited without a write between two readings */
#define BROADCAST_MIN 32u /* connections that a slice visits at least */
#define SWEEP_MS 3600000u

static size_t size_of(const struct spokei_comet_user *user)
{
	return offsetof(struct spokei_comet_user, id) + user->len;
}

bool spokei_comet_is_user(struct spoke_span id)
{
	const unsigned char *bytes = id.data;
	size_t len;

	if (id.len == 0 || id.len > SPOKE_COMET_USER_MAX)
		return false;
	for (size_t i = 0; i < id.len; i += len) {
		len = spokei_utf8_len(bytes + i, id.len - i);
		if (len == 0 || spokei_utf8_is_control(bytes + i, len))
			return false;
	}
	return true;
}

/* --- the table */

static struct spokei_comet_user **bucket_of(const struct spoke_comet *comet, const void *id,
					    size_t len)
{
	return &comet->buckets[spokei_siphash(comet->hash_key, id, len) &
			       (comet->bucket_count - 1)];
}

struct spokei_comet_user *spokei_comet_find(const struct spoke_comet *comet, struct spoke_span id)
{
	struct spokei_comet_user *user;

	if (comet->bucket_count == 0 || id.len == 0)
		return NULL;
	user = *bucket_of(comet, id.data, id.len);
	while (user && (user->len != id.len || memcmp(user->id, id.data, id.len) != 0))
		user = user->chain;
	return user;
}

/* Without memory the chains just become longer. */
static bool grow(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;
	const uint32_t old_count = comet->bucket_count;
	struct spokei_comet_user **old = comet->buckets;
	uint32_t count = old_count ? 2 * old_count : BUCKETS_FIRST;
	struct spokei_comet_user **buckets = spokei_alloc(env, count,
							  sizeof(struct spokei_comet_user *));

	if (buckets == NULL)
		return old_count > 0;
	comet->buckets = buckets;
	comet->bucket_count = count;
	for (uint32_t i = 0; i < old_count; i++) {
		struct spokei_comet_user *user = old[i];

		while (user) {
			struct spokei_comet_user *next = user->chain;
			struct spokei_comet_user **bucket = bucket_of(comet, user->id, user->len);

			user->chain = *bucket;
			*bucket = user;
			user = next;
		}
	}
	spokei_free(env, old, old_count, sizeof(struct spokei_comet_user *));
	return true;
}

/* --- presence */

/* Moving an alarm that is set needs no room in the wheel, and it is set from the beginning on. */
void spokei_comet_sweep_at(struct spoke_comet *comet, uint32_t ms)
{
	uint32_t now_ms = spokei_comet_ms(comet);
	int32_t in_ms = spokei_comet_until(ms, now_ms);

	if (spokei_comet_until(comet->sweep_ms, ms) <= 0)
		return;
	if (spoke_alarm_after(comet->engine, &comet->sweep,
			      in_ms > 0 ? (uint64_t)in_ms * 1000000 : 0,
			      spokei_comet_sweep) == SPOKE_OK)
		comet->sweep_ms = ms;
}

void spokei_comet_dirty(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	SPOKE_ASSERT(!(user->flags & SPOKEI_COMET_ABSENT));
	if (user->flags & SPOKEI_COMET_DIRTY)
		return;
	user->flags |= SPOKEI_COMET_DIRTY;
	user->at.here.next_dirty = NULL;
	*comet->dirty_end = user;
	comet->dirty_end = &user->at.here.next_dirty;
	spokei_run_soon(comet->engine, &comet->pass);
}

/* Puts a user without connections into the list of the absent ones, for `ms`. */
static void make_absent(struct spokei_comet_user *user, struct spoke_list *list, uint32_t ms)
{
	struct spoke_comet *comet = user->comet;

	SPOKE_ASSERT(user->count == 0 &&
		     !(user->flags & (SPOKEI_COMET_DIRTY | SPOKEI_COMET_ABSENT)));
	user->flags |= SPOKEI_COMET_ABSENT;
	user->due_ms = spokei_comet_ms(comet) + ms;
	spokei_list_append(list, &user->at.node);
	spokei_comet_sweep_at(comet, user->due_ms);
}

void spokei_comet_here(struct spokei_comet_user *user)
{
	if (!(user->flags & SPOKEI_COMET_ABSENT))
		return;
	spokei_list_remove(&user->at.node);
	user->flags &= (uint8_t)~SPOKEI_COMET_ABSENT;
	user->at.here.first = NULL;
	user->at.here.next_dirty = NULL;
}

int spokei_comet_find_or_make(struct spoke_comet *comet, struct spoke_span id,
			      struct spokei_comet_user **ret)
{
	struct spokei_comet_user *user = spokei_comet_find(comet, id);
	struct spokei_comet_user **bucket;

	*ret = user;
	if (user)
		return SPOKE_OK;
	if (comet->figures[SPOKE_COMET_FIGURE_USERS] >= comet->with.users_max)
		return SPOKE_ELIMIT;
	if (comet->figures[SPOKE_COMET_FIGURE_USERS] >= comet->bucket_count && !grow(comet))
		return SPOKE_ENOMEM;
	user = spokei_alloc(comet->engine->env, 1, offsetof(struct spokei_comet_user, id) + id.len);
	if (user == NULL)
		return SPOKE_ENOMEM;
	user->comet = comet;
	user->floor = comet->forgotten;
	user->len = (uint8_t)id.len;
	memcpy(user->id, id.data, id.len);
	bucket = bucket_of(comet, user->id, user->len);
	user->chain = *bucket;
	*bucket = user;
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_USERS);
	make_absent(user, &comet->absent, spokei_comet_ms_of(comet->with.keep_ns));
	*ret = user;
	return SPOKE_OK;
}

/* --- rings */

static void free_ring(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	if (user->ring == NULL)
		return;
	spokei_comet_ring_clear(comet, user->ring);
	spokei_list_remove(&user->ring->node);
	spokei_free(comet->engine->env, user->ring, 1, sizeof(*user->ring));
	user->ring = NULL;
}

int spokei_comet_user_add(struct spokei_comet_user *user, struct spokei_comet_message *message)
{
	struct spoke_comet *comet = user->comet;
	struct spokei_comet_ring *ring = user->ring;
	int error;

	/* A list of users may name one twice. */
	if (ring && ring->count > 0 && spokei_comet_ring_at(ring, ring->count - 1) == message)
		return SPOKE_OK;
	if (ring == NULL) {
		ring = spokei_alloc(comet->engine->env, 1, sizeof(*ring));
		if (ring == NULL)
			return SPOKE_ENOMEM;
		ring->user = user;
		ring->look_ms = spokei_comet_ms(comet) + spokei_comet_ms_of(comet->with.ring_ns);
		spokei_list_append(&comet->rings, &ring->node);
		spokei_comet_sweep_at(comet, ring->look_ms);
		user->ring = ring;
	}
	error = spokei_comet_ring_add(comet, ring, message);
	if (error && ring->count == 0)
		free_ring(user);
	return error;
}

/* --- the end */

/* A client of this user that comes later may have missed everything up to the floor. */
static void free_user(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	free_ring(user);
	if (user->floor > comet->forgotten)
		comet->forgotten = user->floor;
	comet->figures[SPOKE_COMET_FIGURE_USERS]--;
	spokei_free(comet->engine->env, user, 1, size_of(user));
}

/* Forgets an absent user. */
static void forget(struct spokei_comet_user *user)
{
	struct spokei_comet_user **at = bucket_of(user->comet, user->id, user->len);

	spokei_comet_here(user);
	while (*at != user)
		at = &(*at)->chain;
	*at = user->chain;
	free_user(user);
}

void spokei_comet_forget_all(struct spoke_comet *comet)
{
	for (uint32_t i = 0; i < comet->bucket_count; i++) {
		while (comet->buckets[i]) {
			struct spokei_comet_user *user = comet->buckets[i];

			comet->buckets[i] = user->chain;
			free_user(user);
		}
	}
	spokei_free(comet->engine->env, comet->buckets, comet->bucket_count,
		    sizeof(struct spokei_comet_user *));
	comet->buckets = NULL;
	comet->bucket_count = 0;
	comet->dirty = NULL;
	comet->dirty_end = &comet->dirty;
	spokei_list_init(&comet->grace);
	spokei_list_init(&comet->absent);
}

/* --- users that come and leave */

static void tell(struct spoke_comet *comet, struct spoke_span user, enum spoke_comet_change change)
{
	if (comet->with.change)
		comet->with.change(comet->with.arg, user, change);
}

static struct spoke_span id_of(const struct spokei_comet_user *user)
{
	return (struct spoke_span){ user->id, user->len };
}

/* A client that polls has no connection between two polls, but it has not left. */
static void settle_absent(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	bool was_here = user->flags & SPOKEI_COMET_TOLD;

	if (was_here && (user->flags & SPOKEI_COMET_POLLED)) {
		make_absent(user, &comet->grace, SPOKEI_COMET_GRACE_MS);
		return;
	}
	user->flags &= (uint8_t)~SPOKEI_COMET_TOLD;
	make_absent(user, &comet->absent, spokei_comet_ms_of(comet->with.keep_ns));
	if (was_here)
		tell(comet, id_of(user), SPOKE_COMET_LEFT);
}

static void settle(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	struct spokei_comet_conn *next;

	if (user->count == 0) {
		settle_absent(user);
		return;
	}
	if (!(user->flags & SPOKEI_COMET_TOLD)) {
		user->flags |= SPOKEI_COMET_TOLD | SPOKEI_COMET_KNOWN;
		tell(comet, id_of(user), SPOKE_COMET_CAME);
		if (comet->closed)
			return;
	}
	for (struct spokei_comet_conn *conn = user->at.here.first; conn; conn = next) {
		next = conn->next;
		spokei_comet_pump(conn);
	}
}

static struct spokei_comet_user *take_dirty(struct spoke_comet *comet)
{
	struct spokei_comet_user *user = comet->dirty;

	comet->dirty = user->at.here.next_dirty;
	if (comet->dirty == NULL)
		comet->dirty_end = &comet->dirty;
	user->flags &= (uint8_t)~SPOKEI_COMET_DIRTY;
	return user;
}

/* --- the pass: a slice once in each turn with changes, bounded by time and by writes */

struct slice {
	struct spoke_comet *comet;
	uint64_t ends_ns;
	uint32_t writes; /* value of comet->writes at which it ends */
	uint32_t look;   /* ... at which the clock is read next */
	uint32_t visits; /* since the clock was read */
};

static bool slice_is_over(struct slice *slice)
{
	const struct spoke_env *env = slice->comet->engine->env;
	uint32_t writes = slice->comet->writes;

	if ((int32_t)(writes - slice->writes) >= 0)
		return true;
	if ((int32_t)(writes - slice->look) < 0 && ++slice->visits < VISIT_EVERY)
		return false;
	slice->look = writes + LOOK_EVERY;
	slice->visits = 0;
	return env->now(env->ctx) >= slice->ends_ns;
}

/* Visits the connections that are left in the pass of messages to all. */
static void broadcast(struct spoke_comet *comet, struct slice *slice)
{
	for (uint32_t i = 0; comet->pass_left > 0 && (i < BROADCAST_MIN || !slice_is_over(slice));
	     i++) {
		struct spokei_comet_conn *conn;

		if (comet->pass_at >= comet->used)
			comet->pass_at = 0;
		conn = spokei_comet_cell(comet, comet->pass_at++);
		comet->pass_left--;
		if (conn->state == SPOKEI_COMET_OPEN && conn->user != comet->nobody)
			spokei_comet_pump(conn);
	}
}

void spokei_comet_pass(struct spokei_task *task)
{
	struct spoke_comet *comet = spoke_container_of(task, struct spoke_comet, pass);
	const struct spoke_env *env = comet->engine->env;
	struct slice slice = {
		.comet = comet,
		.writes = comet->writes + SLICE_WRITES,
		.look = comet->writes + LOOK_EVERY,
	};

	if (comet->closed)
		return;
	slice.ends_ns = env->now(env->ctx) + SLICE_NS;
	spokei_comet_deliver(comet);
	while (!comet->closed && comet->dirty && !slice_is_over(&slice))
		settle(take_dirty(comet));
	if (comet->closed)
		return;
	broadcast(comet, &slice);
	if (comet->dirty || comet->pass_left > 0)
		spokei_run_soon(comet->engine, &comet->pass);
}

/* --- the sweep: things that are over by time, without a timer each */

static bool is_due(const struct spoke_comet *comet, uint32_t ms)
{
	return spokei_comet_until(ms, spokei_comet_ms(comet)) <= 0;
}

static struct spokei_comet_user *first_user(const struct spoke_list *list)
{
	return spoke_container_of(spokei_list_first(list), struct spokei_comet_user, at.node);
}

/* The client has not polled again: the user has left. */
static void end_grace(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	spokei_comet_here(user);
	user->flags &= (uint8_t) ~(SPOKEI_COMET_TOLD | SPOKEI_COMET_POLLED);
	make_absent(user, &comet->absent, spokei_comet_ms_of(comet->with.keep_ns));
	tell(comet, id_of(user), SPOKE_COMET_LEFT);
}

static void end_user(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;
	bool known = user->flags & SPOKEI_COMET_KNOWN;
	char id[SPOKE_COMET_USER_MAX];
	struct spoke_span span = { id, user->len };

	memcpy(id, user->id, user->len);
	forget(user);
	if (known)
		tell(comet, span, SPOKE_COMET_ENDED);
}

static void look_at_ring(struct spoke_comet *comet, struct spokei_comet_ring *ring)
{
	spokei_comet_ring_age(comet, ring);
	if (ring->count == 0 && ring->user) {
		free_ring(ring->user);
		return;
	}
	ring->look_ms = spokei_comet_ms(comet) + spokei_comet_ms_of(comet->with.ring_ns);
	spokei_list_remove(&ring->node);
	spokei_list_append(&comet->rings, &ring->node);
}

static struct spokei_comet_ring *first_ring(const struct spoke_comet *comet)
{
	return spoke_container_of(spokei_list_first(&comet->rings), struct spokei_comet_ring, node);
}

static struct spokei_comet_ask *first_ask(const struct spoke_comet *comet)
{
	return spoke_container_of(spokei_list_first(&comet->asks), struct spokei_comet_ask, node);
}

/* Each list is in the order in which its entries are due. */
static void sweep(struct spoke_comet *comet)
{
	while (!spokei_list_empty(&comet->asks) && is_due(comet, first_ask(comet)->due_ms))
		spokei_comet_unanswered(first_ask(comet));
	while (is_due(comet, first_ring(comet)->look_ms))
		look_at_ring(comet, first_ring(comet));
	while (!comet->closed && !spokei_list_empty(&comet->grace) &&
	       is_due(comet, first_user(&comet->grace)->due_ms))
		end_grace(first_user(&comet->grace));
	while (!comet->closed && !spokei_list_empty(&comet->absent) &&
	       is_due(comet, first_user(&comet->absent)->due_ms))
		end_user(first_user(&comet->absent));
}

/* The alarm is set again first, while its room in the wheel is free; then it only moves. */
void spokei_comet_sweep(struct spoke_alarm *alarm)
{
	struct spoke_comet *comet = spoke_container_of(alarm, struct spoke_comet, sweep);

	comet->sweep_ms = spokei_comet_ms(comet) + SWEEP_MS + 1;
	spokei_comet_sweep_at(comet, spokei_comet_ms(comet) + SWEEP_MS);
	sweep(comet);
	if (comet->closed)
		return;
	spokei_comet_sweep_at(comet, first_ring(comet)->look_ms);
	if (!spokei_list_empty(&comet->asks))
		spokei_comet_sweep_at(comet, first_ask(comet)->due_ms);
	if (!spokei_list_empty(&comet->grace))
		spokei_comet_sweep_at(comet, first_user(&comet->grace)->due_ms);
	if (!spokei_list_empty(&comet->absent))
		spokei_comet_sweep_at(comet, first_user(&comet->absent)->due_ms);
}
