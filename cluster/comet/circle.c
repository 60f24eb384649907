/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways of several engines that have joined. A push to one of them goes to each of the others as
 * a parcel, which is posted to its engine. A circle lists them; it only grows, and all threads read
 * it. The bytes on their way to a gateway are bounded: all others get a push, or none does.
 */
#include "cluster/comet/parts.h"
#include "core/engine/desk.h"

#define BYTES_MAX 4194304u /* on their way to one gateway; one parcel may be larger */
#define CLOSED UINT32_MAX  /* a count: its gateway has joined another circle */

struct member {
	struct spoke_comet *comet;
	_Atomic(struct spokei_desk *) desk; /* closed with the gateway; NULL: not yet */
	_Atomic(size_t) bytes;              /* on their way to it */
};

struct spokei_comet_circle {
	const struct spoke_env *env;
	_Atomic(uint32_t) shares; /* references: of gateways, and of parcels */
	_Atomic(uint32_t) count;  /* of members; those that have ended stay */
	struct member members[SPOKE_COMET_JOINED_MAX];
};

struct spokei_comet_parcel {
	struct spoke_post post;
	struct spokei_comet_parcel *next; /* of the same push */
	const struct spoke_env *env;
	struct spokei_comet_circle *circle;
	struct member *to;
	size_t size;
	struct spokei_comet_push push;
	struct spoke_span users[]; /* then the texts */
};

/* --- circles */

static struct spokei_comet_circle *share(struct spokei_comet_circle *circle)
{
	(void)atomic_fetch_add_explicit(&circle->shares, 1, memory_order_relaxed);
	return circle;
}

static void drop(struct spokei_comet_circle *circle)
{
	if (circle == NULL ||
	    atomic_fetch_sub_explicit(&circle->shares, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < SPOKE_COMET_JOINED_MAX; i++)
		spokei_desk_drop(
			atomic_load_explicit(&circle->members[i].desk, memory_order_relaxed));
	spokei_free(circle->env, circle, 1, sizeof(*circle));
}

static int add(struct spokei_comet_circle *circle, struct spoke_comet *comet)
{
	uint32_t count = atomic_load_explicit(&circle->count, memory_order_relaxed);

	do {
		if (count >= SPOKE_COMET_JOINED_MAX)
			return count == CLOSED ? SPOKE_ESTATE : SPOKE_ELIMIT;
	} while (!atomic_compare_exchange_weak_explicit(&circle->count, &count, count + 1,
							memory_order_acq_rel,
							memory_order_relaxed));
	circle->members[count].comet = comet;
	spokei_desk_share(comet->desk);
	atomic_store_explicit(&circle->members[count].desk, comet->desk, memory_order_release);
	return SPOKE_OK;
}

int spokei_comet_open_circle(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;
	_Atomic(struct spokei_desk *) place = NULL;

	comet->desk = spokei_desk_get(&place, comet->engine);
	if (comet->desk == NULL)
		return SPOKE_ENOMEM;
	spokei_desk_drop(comet->desk); /* one reference suffices */
	comet->own = spokei_alloc(env, 1, sizeof(*comet->own));
	if (comet->own == NULL)
		return SPOKE_ENOMEM;
	comet->own->env = env;
	comet->circle = share(share(comet->own));
	return add(comet->own, comet);
}

bool spokei_comet_part(struct spoke_comet *comet)
{
	if (!spokei_desk_close(comet->desk))
		return false;
	spokei_desk_drop(comet->desk);
	drop(comet->own);
	drop(comet->circle);
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
	if (comet->closed || comet->draining || spokei_desk_closed(first->desk))
		return SPOKE_ECLOSED;
	/* From now on no other one joins this one. */
	if (!atomic_compare_exchange_strong_explicit(&comet->own->count, &alone, CLOSED,
						     memory_order_acq_rel, memory_order_relaxed))
		return SPOKE_ESTATE;
	error = add(first->own, comet);
	if (error) {
		atomic_store_explicit(&comet->own->count, 1, memory_order_release);
		return error;
	}
	drop(comet->circle);
	comet->circle = share(first->own);
	return SPOKE_OK;
}

int spoke_comet_join(struct spoke_comet *comet, struct spoke_comet *first)
{
	uint64_t begun = spokei_why_begin(comet->engine);

	return spokei_why_end(comet->engine, begun, join(comet, first), "join of gateways");
}

/* --- parcels */

static void end(struct spokei_comet_parcel *parcel)
{
	(void)atomic_fetch_sub_explicit(&parcel->to->bytes, parcel->size, memory_order_relaxed);
	drop(parcel->circle);
	spokei_free(parcel->env, parcel, 1, parcel->size);
}

/* On the thread of the gateway, if it is not closed. */
static void arrive(struct spoke_post *post)
{
	struct spokei_comet_parcel *parcel = spoke_container_of(post, struct spokei_comet_parcel,
								post);
	struct member *to = parcel->to;

	if (!spokei_desk_closed(atomic_load_explicit(&to->desk, memory_order_relaxed)))
		to->comet->arrived(to->comet, &parcel->push);
	end(parcel);
}

/* Takes room of a gateway. */
static bool reserve(struct member *to, size_t size)
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

static int make(struct spoke_comet *comet, const struct spokei_comet_push *push, struct member *to,
		struct spokei_comet_parcel **ret)
{
	const struct spoke_env *env = comet->engine->env;
	size_t size = sizeof(struct spokei_comet_parcel) + push->count * sizeof(struct spoke_span) +
		      push->message.event.len + push->message.data.len;
	struct spokei_comet_parcel *parcel;
	char *at;

	for (size_t i = 0; i < push->count; i++)
		size += push->users[i].len;
	if (!reserve(to, size))
		return SPOKE_ELIMIT;
	parcel = spokei_alloc(env, 1, size);
	if (parcel == NULL) {
		(void)atomic_fetch_sub_explicit(&to->bytes, size, memory_order_relaxed);
		return SPOKE_ENOMEM;
	}
	parcel->post.run = arrive;
	parcel->next = *ret;
	parcel->env = env;
	parcel->circle = share(comet->circle);
	parcel->to = to;
	parcel->size = size;
	parcel->push = *push;
	parcel->push.users = parcel->users;
	at = (char *)(parcel->users + push->count);
	parcel->push.message.event = copy(&at, push->message.event);
	parcel->push.message.data = copy(&at, push->message.data);
	for (size_t i = 0; i < push->count; i++)
		parcel->users[i] = copy(&at, push->users[i]);
	*ret = parcel;
	return SPOKE_OK;
}

int spokei_comet_pack(struct spoke_comet *comet, const struct spokei_comet_push *push,
		      struct spokei_comet_parcel **ret_parcels)
{
	struct spokei_comet_circle *circle = comet->circle;
	int error = SPOKE_OK;

	*ret_parcels = NULL;
	for (size_t i = 0; circle && i < SPOKE_COMET_JOINED_MAX && error == SPOKE_OK; i++) {
		struct member *to = &circle->members[i];
		const struct spokei_desk *desk = atomic_load_explicit(&to->desk,
								      memory_order_acquire);

		if (desk && !spokei_desk_closed(desk) && to->comet != comet)
			error = make(comet, push, to, ret_parcels);
	}
	while (error && *ret_parcels) {
		struct spokei_comet_parcel *parcel = *ret_parcels;

		*ret_parcels = parcel->next;
		end(parcel);
	}
	return error;
}

void spokei_comet_send(struct spokei_comet_parcel *parcels)
{
	while (parcels) {
		struct spokei_comet_parcel *parcel = parcels;
		struct spokei_desk *desk = atomic_load_explicit(&parcel->to->desk,
								memory_order_relaxed);

		parcels = parcel->next;
		if (spokei_desk_enter(desk)) {
			spoke_engine_post(desk->engine, &parcel->post);
			spokei_desk_leave(desk);
		} else {
			end(parcel);
		}
	}
}
