/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users of a gateway: a hash table of them, with chains through the users, because most of
 * their memory would else be the table's; and the lists of those that are absent.
 */
#include "cluster/comet/parts.h"
#include "core/base/siphash.h"
#include "core/text/utf8.h"

#define BUCKETS_FIRST 64u

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
	spokei_comet_absent(user, &comet->absent, spokei_comet_ms_of(comet->with.keep_ns));
	*ret = user;
	return SPOKE_OK;
}

/* --- presence */

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
	spokei_engine_soon(comet->engine, &comet->pass);
}

void spokei_comet_absent(struct spokei_comet_user *user, struct spoke_list *list, uint32_t ms)
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

/* --- rings */

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
		ring->floor = &user->floor;
		ring->look_ms = spokei_comet_ms(comet) + spokei_comet_ms_of(comet->with.ring_ns);
		spokei_list_append(&comet->rings, &ring->node);
		spokei_comet_sweep_at(comet, ring->look_ms);
		user->ring = ring;
	}
	error = spokei_comet_ring_add(comet, ring, message);
	if (error && ring->count == 0)
		spokei_comet_ring_free(user);
	return error;
}

void spokei_comet_ring_free(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	if (user->ring == NULL)
		return;
	spokei_comet_ring_clear(comet, user->ring);
	spokei_list_remove(&user->ring->node);
	spokei_free(comet->engine->env, user->ring, 1, sizeof(*user->ring));
	user->ring = NULL;
}

/* --- the end */

/* A client of this user that comes later may have missed everything up to the floor. */
static void free_user(struct spokei_comet_user *user)
{
	struct spoke_comet *comet = user->comet;

	spokei_comet_ring_free(user);
	if (user->floor > comet->forgotten)
		comet->forgotten = user->floor;
	comet->figures[SPOKE_COMET_FIGURE_USERS]--;
	spokei_free(comet->engine->env, user, 1, size_of(user));
}

void spokei_comet_forget(struct spokei_comet_user *user)
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

/* --- the sweep */

/* Moving an alarm that is set needs no room in the wheel, and it is set from the beginning on. */
void spokei_comet_sweep_at(struct spoke_comet *comet, uint32_t ms)
{
	uint32_t now_ms = spokei_comet_ms(comet);
	int32_t in_ms = spokei_comet_until(ms, now_ms);

	if (spokei_comet_until(comet->sweep_ms, ms) <= 0)
		return;
	if (spoke_alarm_after(comet->engine, &comet->sweep,
			      in_ms > 0 ? (uint64_t)in_ms * 1000000 : 0, comet->swept) == SPOKE_OK)
		comet->sweep_ms = ms;
}
