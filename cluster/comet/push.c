/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which a program pushes messages, closes users' connections, and counts; and how
 * pushes reach the gateways of other engines.
 */
#include "cluster/comet/comet.h"
#include "core/engine/weak.h"

#include <stdio.h>

#define BYTES_MAX 4194304u /* on their way to one gateway; one broadcast may be larger */
#define CLOSED UINT32_MAX  /* a count: its gateway has joined other ones */

/* A push or a kick, also from one gateway to another. */
struct push {
	enum {
		TO_USERS,
		TO_ALL,
		KICK, /* the data is the reason */
	} act;
	const struct spoke_span *users;
	size_t count;
	struct spoke_comet_message message;
};

struct spoke_span spoke_comet_text(const char *text)
{
	return (struct spoke_span){ text, text ? strlen(text) : 0 };
}

/* --- for the users of this gateway */

static int refuse_user(struct spoke_comet *comet)
{
	spokei_why_set(comet->engine,
		       "push: the id of a user is 1 to %u bytes of UTF-8 without control "
		       "characters",
		       SPOKE_COMET_USER_MAX);
	return SPOKE_EINVAL;
}

/* A user that did not get the message has missed it. */
static int push_to(struct spoke_comet *comet, struct spoke_span id, bool keep,
		   struct spokei_comet_message *message, struct spoke_comet_result *result)
{
	struct spokei_comet_user *user;
	int error = SPOKE_OK;

	if (!spokei_comet_is_user(id))
		return refuse_user(comet);
	user = spokei_comet_find(comet, id);
	if (user == NULL && keep)
		error = spokei_comet_find_or_make(comet, id, &user);
	if (user == NULL) {
		comet->forgotten = message->number;
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_DROPPED);
		return error;
	}
	error = spokei_comet_user_add(user, message);
	if (error)
		user->floor = message->number;
	if (user->count > 0)
		spokei_comet_dirty(user);
	if (error)
		return error;
	result->users++;
	result->connections += user->count;
	return SPOKE_OK;
}

static void pass_over_all(struct spoke_comet *comet)
{
	comet->pass_left = comet->used;
	if (comet->pass_left > 0)
		spokei_run_soon(comet->engine, &comet->pass);
}

static int push_to_all(struct spoke_comet *comet, struct spokei_comet_message *message,
		       struct spoke_comet_result *result)
{
	int error = spokei_comet_ring_add(comet, &comet->all, message);

	if (error)
		return error;
	pass_over_all(comet);
	result->users = (uint32_t)comet->figures[SPOKE_COMET_FIGURE_ONLINE];
	result->connections = (uint32_t)(comet->figures[SPOKE_COMET_FIGURE_EVENTS] +
					 comet->figures[SPOKE_COMET_FIGURE_SOCKETS] +
					 comet->figures[SPOKE_COMET_FIGURE_POLLS]);
	return SPOKE_OK;
}

/* Pushes a message that is made. Of several errors, the first is returned. */
static int push_here(struct spoke_comet *comet, const struct push *push,
		     struct spokei_comet_message *made, struct spoke_comet_result *result)
{
	int first = SPOKE_OK;

	*result = (struct spoke_comet_result){ .users = 0 };
	(void)spokei_comet_print_id(comet, made->number, result->id);
	if (push->act == TO_ALL)
		first = push_to_all(comet, made, result);
	for (size_t i = 0; i < push->count; i++) {
		int error = push_to(comet, push->users[i], push->message.keep, made, result);

		if (first == SPOKE_OK)
			first = error;
	}
	spokei_comet_drop(comet, made);
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_PUSHED);
	return first;
}

static uint32_t kick_here(struct spoke_comet *comet, struct spoke_span id, const char *reason)
{
	struct spokei_comet_user *user = spokei_comet_find(comet, id);
	uint32_t count = 0;

	while (user && user->count > 0) {
		spokei_comet_count(comet, SPOKE_COMET_FIGURE_CLOSED_KICKED);
		spokei_comet_end_with(user->at.here.first, SPOKEI_COMET_KICKED, reason);
		count++;
	}
	return count;
}

/* --- from other gateways */

/* There is no memory for a message: its users have missed it. */
static void miss(struct spoke_comet *comet, const struct push *push)
{
	const uint64_t number = ++comet->number;

	if (push->act == TO_ALL) {
		comet->all_floor = number;
		pass_over_all(comet);
	}
	for (size_t i = 0; i < push->count; i++) {
		struct spokei_comet_user *user = spokei_comet_find(comet, push->users[i]);

		if (user == NULL) {
			comet->forgotten = number;
			continue;
		}
		user->floor = number;
		if (user->count > 0)
			spokei_comet_dirty(user);
	}
}

static void take_broadcast(struct spoke_comet *comet, const struct push *push)
{
	struct spokei_comet_message *made;
	struct spoke_comet_result result;
	char reason[SPOKEI_COMET_REASON];

	if (push->act == KICK) {
		(void)snprintf(reason, sizeof(reason), "%.*s", (int)push->message.data.len,
			       (const char *)push->message.data.data);
		(void)kick_here(comet, push->users[0], reason);
	} else if (spokei_comet_make(comet, &push->message, &made)) {
		miss(comet, push);
	} else {
		(void)push_here(comet, push, made, &result);
	}
}

/* --- the gateways that have joined */

struct peer {
	struct spoke_comet *comet;
	_Atomic(struct spokei_weak *) weak; /* closed with the gateway; NULL: not yet */
	_Atomic(size_t) bytes;              /* on their way to it */
};

/* Gateways that have joined one, and this one. The list only grows, and all threads read it. */
struct spokei_comet_peers {
	const struct spoke_env *env;
	_Atomic(uint32_t) shares; /* references: of gateways, and of broadcasts */
	_Atomic(uint32_t) count;  /* of `list`; those that have ended stay */
	struct peer list[SPOKE_COMET_JOINED_MAX];
};

/* A push on its way to the engine of another gateway. The bytes on their way to a gateway are
 * bounded: all others get a push, or none does. */
struct broadcast {
	struct spoke_post post;
	struct broadcast *next; /* of the same push */
	const struct spoke_env *env;
	struct spokei_comet_peers *peers;
	struct peer *to;
	size_t size;
	struct push push;
	struct spoke_span users[]; /* then the texts */
};

static struct spokei_comet_peers *share_peers(struct spokei_comet_peers *peers)
{
	(void)atomic_fetch_add_explicit(&peers->shares, 1, memory_order_relaxed);
	return peers;
}

static void drop_peers(struct spokei_comet_peers *peers)
{
	if (peers == NULL || atomic_fetch_sub_explicit(&peers->shares, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < SPOKE_COMET_JOINED_MAX; i++)
		spokei_weak_drop(atomic_load_explicit(&peers->list[i].weak, memory_order_relaxed));
	spokei_free(peers->env, peers, 1, sizeof(*peers));
}

static int add_peer(struct spokei_comet_peers *peers, struct spoke_comet *comet)
{
	uint32_t count = atomic_load_explicit(&peers->count, memory_order_relaxed);

	do {
		if (count >= SPOKE_COMET_JOINED_MAX)
			return count == CLOSED ? SPOKE_ESTATE : SPOKE_ELIMIT;
	} while (!atomic_compare_exchange_weak_explicit(&peers->count, &count, count + 1,
							memory_order_acq_rel,
							memory_order_relaxed));
	peers->list[count].comet = comet;
	spokei_weak_share(comet->weak);
	atomic_store_explicit(&peers->list[count].weak, comet->weak, memory_order_release);
	return SPOKE_OK;
}

int spokei_comet_open_peers(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;
	_Atomic(struct spokei_weak *) weak = NULL;

	comet->weak = spokei_weak_get(&weak, comet->engine);
	if (comet->weak == NULL)
		return SPOKE_ENOMEM;
	spokei_weak_drop(comet->weak); /* one reference suffices */
	comet->own = spokei_alloc(env, 1, sizeof(*comet->own));
	if (comet->own == NULL)
		return SPOKE_ENOMEM;
	comet->own->env = env;
	comet->peers = share_peers(share_peers(comet->own));
	return add_peer(comet->own, comet);
}

bool spokei_comet_leave_peers(struct spoke_comet *comet)
{
	if (!spokei_weak_close(comet->weak))
		return false;
	spokei_weak_drop(comet->weak);
	drop_peers(comet->own);
	drop_peers(comet->peers);
	return true;
}

static int refuse(struct spoke_comet *comet, const char *why)
{
	spokei_event(comet->engine, SPOKE_EINVAL, "join of gateways: %s", why);
	return SPOKE_EINVAL;
}

static int join(struct spoke_comet *comet, struct spoke_comet *first)
{
	uint32_t alone = 1;
	int error = spokei_engine_check(comet->engine);

	if (error)
		return error;
	if (comet->engine == first->engine)
		return refuse(comet, "both are on the same engine");
	if (comet->engine->env->net != first->engine->env->net)
		return refuse(comet, "the engines have different networks");
	if (comet->own == NULL || first->own == NULL)
		return refuse(comet, "set the option shared of both");
	if (comet->closed || comet->draining || spokei_weak_closed(first->weak))
		return SPOKE_ECLOSED;
	/* From now on no other one joins this one. */
	if (!atomic_compare_exchange_strong_explicit(&comet->own->count, &alone, CLOSED,
						     memory_order_acq_rel, memory_order_relaxed))
		return SPOKE_ESTATE;
	error = add_peer(first->own, comet);
	if (error) {
		atomic_store_explicit(&comet->own->count, 1, memory_order_release);
		return error;
	}
	drop_peers(comet->peers);
	comet->peers = share_peers(first->own);
	return SPOKE_OK;
}

int spoke_comet_join(struct spoke_comet *comet, struct spoke_comet *first)
{
	uint64_t begun = spokei_why_begin(comet->engine);

	return spokei_why_end(comet->engine, begun, join(comet, first), "join of gateways");
}

/* --- broadcasts */

static void end_broadcast(struct broadcast *broadcast)
{
	(void)atomic_fetch_sub_explicit(&broadcast->to->bytes, broadcast->size,
					memory_order_relaxed);
	drop_peers(broadcast->peers);
	spokei_free(broadcast->env, broadcast, 1, broadcast->size);
}

/* On the thread of the gateway, if it is not closed. */
static void broadcast_arrives(struct spoke_post *post)
{
	struct broadcast *broadcast = spoke_container_of(post, struct broadcast, post);
	struct peer *to = broadcast->to;

	if (!spokei_weak_closed(atomic_load_explicit(&to->weak, memory_order_relaxed)))
		take_broadcast(to->comet, &broadcast->push);
	end_broadcast(broadcast);
}

/* Takes room of a gateway. */
static bool take_room(struct peer *to, size_t size)
{
	size_t bytes = atomic_load_explicit(&to->bytes, memory_order_relaxed);

	do {
		if (bytes > 0 && (size > BYTES_MAX || bytes > BYTES_MAX - size))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&to->bytes, &bytes, bytes + size,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* Copies a text to *at, which moves behind the copy. */
static struct spoke_span copy(char **at, struct spoke_span text)
{
	struct spoke_span made = { *at, text.len };

	if (text.len)
		memcpy(*at, text.data, text.len);
	*at += text.len;
	return made;
}

static int make_broadcast(struct spoke_comet *comet, const struct push *push, struct peer *to,
			  struct broadcast **ret)
{
	const struct spoke_env *env = comet->engine->env;
	size_t size = sizeof(struct broadcast) + push->count * sizeof(struct spoke_span) +
		      push->message.event.len + push->message.data.len;
	struct broadcast *broadcast;
	char *at;

	for (size_t i = 0; i < push->count; i++)
		size += push->users[i].len;
	if (!take_room(to, size))
		return SPOKE_ELIMIT;
	broadcast = spokei_alloc(env, 1, size);
	if (broadcast == NULL) {
		(void)atomic_fetch_sub_explicit(&to->bytes, size, memory_order_relaxed);
		return SPOKE_ENOMEM;
	}
	broadcast->post.run = broadcast_arrives;
	broadcast->next = *ret;
	broadcast->env = env;
	broadcast->peers = share_peers(comet->peers);
	broadcast->to = to;
	broadcast->size = size;
	broadcast->push = *push;
	broadcast->push.users = broadcast->users;
	at = (char *)(broadcast->users + push->count);
	broadcast->push.message.event = copy(&at, push->message.event);
	broadcast->push.message.data = copy(&at, push->message.data);
	for (size_t i = 0; i < push->count; i++)
		broadcast->users[i] = copy(&at, push->users[i]);
	*ret = broadcast;
	return SPOKE_OK;
}

/* Makes a broadcast for each of the others; *ret_broadcasts is NULL if there are none, and has to
 * be sent else. Returns 0, ELIMIT (too much is on its way to one of them) or ENOMEM. */
static int pack(struct spoke_comet *comet, const struct push *push,
		struct broadcast **ret_broadcasts)
{
	struct spokei_comet_peers *peers = comet->peers;
	int error = SPOKE_OK;

	*ret_broadcasts = NULL;
	for (size_t i = 0; peers && i < SPOKE_COMET_JOINED_MAX && error == SPOKE_OK; i++) {
		struct peer *to = &peers->list[i];
		const struct spokei_weak *weak = atomic_load_explicit(&to->weak,
								      memory_order_acquire);

		if (weak && !spokei_weak_closed(weak) && to->comet != comet)
			error = make_broadcast(comet, push, to, ret_broadcasts);
	}
	while (error && *ret_broadcasts) {
		struct broadcast *broadcast = *ret_broadcasts;

		*ret_broadcasts = broadcast->next;
		end_broadcast(broadcast);
	}
	return error;
}

static void send_all(struct broadcast *broadcasts)
{
	while (broadcasts) {
		struct broadcast *broadcast = broadcasts;
		struct spokei_weak *weak = atomic_load_explicit(&broadcast->to->weak,
								memory_order_relaxed);

		broadcasts = broadcast->next;
		if (spokei_weak_enter(weak)) {
			spoke_engine_post(weak->engine, &broadcast->post);
			spokei_weak_leave(weak);
		} else {
			end_broadcast(broadcast);
		}
	}
}

/* --- pushing */

/* Pushes here, and in all gateways that have joined this one. */
static int push_everywhere(struct spoke_comet *comet, const struct push *push,
			   struct spoke_comet_result *ret)
{
	struct broadcast *broadcasts;
	struct spokei_comet_message *made;
	struct spoke_comet_result result;
	int error = spokei_engine_check(comet->engine);

	if (error == SPOKE_OK && comet->closed)
		error = SPOKE_ECLOSED;
	if (error == SPOKE_OK)
		error = spokei_comet_make(comet, &push->message, &made);
	if (error)
		return error;
	error = pack(comet, push, &broadcasts);
	if (error) {
		spokei_comet_drop(comet, made);
		return error;
	}
	error = push_here(comet, push, made, &result);
	send_all(broadcasts);
	if (ret)
		*ret = result;
	return error;
}

int spoke_comet_push_many(struct spoke_comet *comet, const struct spoke_span *users, size_t count,
			  const struct spoke_comet_message *message, struct spoke_comet_result *ret)
{
	const struct push push = {
		.act = TO_USERS,
		.users = users,
		.count = count,
		.message = *message,
	};

	return push_everywhere(comet, &push, ret);
}

int spoke_comet_push(struct spoke_comet *comet, struct spoke_span user,
		     const struct spoke_comet_message *message, struct spoke_comet_result *ret)
{
	int error = spokei_engine_check(comet->engine);

	if (error)
		return error;
	if (!spokei_comet_is_user(user))
		return refuse_user(comet);
	return spoke_comet_push_many(comet, &user, 1, message, ret);
}

int spoke_comet_push_all(struct spoke_comet *comet, const struct spoke_comet_message *message,
			 struct spoke_comet_result *ret)
{
	const struct push push = { .act = TO_ALL, .message = *message };

	return push_everywhere(comet, &push, ret);
}

/* --- users */

uint32_t spoke_comet_kick(struct spoke_comet *comet, struct spoke_span id, const char *reason)
{
	const struct push push = {
		.act = KICK,
		.users = &id,
		.count = 1,
		.message.data = spoke_comet_text(reason),
	};
	struct broadcast *broadcasts;
	int error;

	if (spokei_engine_check(comet->engine) || comet->closed)
		return 0;
	error = pack(comet, &push, &broadcasts);
	if (error)
		spokei_event(comet->engine, error, "comet: a kick does not reach other gateways");
	send_all(broadcasts);
	return kick_here(comet, id, reason);
}

uint32_t spoke_comet_connections(const struct spoke_comet *comet, struct spoke_span id)
{
	const struct spokei_comet_user *user;

	if (spokei_engine_check(comet->engine))
		return 0;
	user = spokei_comet_find(comet, id);
	return user ? user->count : 0;
}

size_t spoke_comet_users(const struct spoke_comet *comet, struct spoke_span *users, size_t max)
{
	size_t count = 0;

	if (spokei_engine_check(comet->engine))
		return 0;
	for (uint32_t i = 0; i < comet->bucket_count && count < max; i++) {
		const struct spokei_comet_user *user = comet->buckets[i];

		for (; user && count < max; user = user->chain) {
			if (user->count > 0)
				users[count++] = (struct spoke_span){ user->id, user->len };
		}
	}
	return (size_t)comet->figures[SPOKE_COMET_FIGURE_ONLINE];
}

/* --- figures */

static const struct {
	const char *name;
	const char *sentence;
} figures[SPOKE_COMET_FIGURE_COUNT] = {
#define ROW(constant, name, sentence) { #name, sentence },
	SPOKE_COMET_FIGURES(ROW)
#undef ROW
};

uint64_t spoke_comet_figure(const struct spoke_comet *comet, enum spoke_comet_figure figure)
{
	return (unsigned)figure < SPOKE_COMET_FIGURE_COUNT ? comet->figures[figure] : 0;
}

const char *spoke_comet_figure_sentence(enum spoke_comet_figure figure)
{
	return (unsigned)figure < SPOKE_COMET_FIGURE_COUNT ? figures[figure].sentence : NULL;
}

const char *spoke_comet_figure_name(enum spoke_comet_figure figure)
{
	return (unsigned)figure < SPOKE_COMET_FIGURE_COUNT ? figures[figure].name : NULL;
}
