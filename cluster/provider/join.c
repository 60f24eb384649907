/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers of several engines that listen as one. Ports are shared out by the system, each engine
 * has a socket of its own. Paths cannot be, and ports need not: there the first accepts, and hands
 * every connection to whose turn it is, itself among them.
 */
#include "cluster/provider/provider.h"

/* --- the first */

int spokei_handoffs_prepare(struct spoke_provider *provider)
{
	struct spokei_shared_places *places = NULL;

	if (atomic_load_explicit(&provider->handoffs.places, memory_order_relaxed))
		return SPOKE_OK;
	places = spokei_alloc(provider->engine->env, 1, sizeof(*places));
	if (places == NULL)
		return SPOKE_ENOMEM;
	atomic_store_explicit(&provider->handoffs.places, places, memory_order_release);
	return SPOKE_OK;
}

/* The n-th who takes connections from here. */
static struct spokei_handoff *handoff_at(const struct spokei_handoffs *handoffs, unsigned index)
{
	struct spoke_list *node = handoffs->all.next;

	while (index-- > 0)
		node = node->next;
	return spoke_container_of(node, struct spokei_handoff, node);
}

/* Chair 0 is the provider's own. Who is full or drains is passed over; if all are, the provider's
 * listener has to see what it does. */
static bool offer_in_turn(void *arg, int fd, const struct spoke_address *peer)
{
	struct spoke_provider *provider = arg;
	const struct spokei_quota *quota = &provider->quota;
	struct spokei_handoffs *handoffs = &provider->handoffs;
	unsigned chairs = handoffs->handoff_count + 1;

	for (unsigned i = 0; i < chairs; i++) {
		unsigned chair = handoffs->turn % chairs;

		handoffs->turn = chair + 1;
		if (chair == 0 && quota->count < quota->max && !provider->draining)
			return false;
		if (chair > 0 && spokei_handoff_offer(handoff_at(handoffs, chair - 1), fd, peer))
			return true;
	}
	return false;
}

void spokei_handoffs_share(struct spoke_provider *provider, const struct spokei_listen_place *place)
{
	struct spokei_shared_places *places = atomic_load_explicit(&provider->handoffs.places,
								   memory_order_relaxed);
	size_t count = atomic_load_explicit(&places->count, memory_order_relaxed);
	struct spokei_listener *listener = provider->listeners[provider->listener_count - 1];

	places->at[count] = *place;
	places->at[count].address = *spokei_listener_address(listener);
	if (place->handed)
		spokei_listener_divert(listener, offer_in_turn);
	atomic_store_explicit(&places->count, count + 1, memory_order_release);
}

static void dismiss(struct spokei_handoffs *handoffs, struct spokei_handoff *handoff)
{
	spokei_list_remove(&handoff->node);
	handoffs->handoff_count--;
	spokei_handoff_drop(handoff);
}

/* There may have been many before this one. */
static void handoff_joined(void *arg, struct spokei_handoff *handoff)
{
	struct spokei_handoffs *handoffs = &((struct spoke_provider *)arg)->handoffs;

	for (struct spoke_list *node = handoffs->all.next; node != &handoffs->all;) {
		struct spokei_handoff *other = spoke_container_of(node, struct spokei_handoff,
								  node);

		node = node->next;
		if (spokei_handoff_parted(other))
			dismiss(handoffs, other);
	}
	spokei_list_append(&handoffs->all, &handoff->node);
	handoffs->handoff_count++;
}

/* --- those who join */

static void turn_away(struct spoke_provider *provider, int fd, int error, bool of_peer)
{
	struct spoke_engine *engine = provider->engine;
	enum spoke_stat stat = SPOKE_STAT_ACCEPTS_FAILED;

	if (error == SPOKE_ELIMIT)
		stat = of_peer ? SPOKE_STAT_ACCEPTS_REFUSED_PEER : SPOKE_STAT_ACCEPTS_REFUSED_TOTAL;
	engine->env->net->close(engine->env->ctx, fd);
	spokei_count(engine, stat);
	if (spokei_bucket_take(&provider->news, 1, engine->begin_ns))
		spokei_event(engine, error, "a connection that was handed over is closed");
}

static void serve_handed(struct spoke_provider *provider, const struct spokei_handed *handed)
{
	bool of_peer = false;
	int error = SPOKE_ECLOSED;

	if (!provider->ended)
		error = spokei_quota_enter(&provider->quota, &handed->peer, &of_peer);
	if (error) {
		turn_away(provider, handed->fd, error, of_peer);
		return;
	}
	spokei_count(provider->engine, SPOKE_STAT_ACCEPTED);
	spokei_provider_accept(provider, handed->fd, &handed->peer);
}

static void take_handed(void *arg)
{
	struct spoke_provider *provider = arg;
	struct spokei_handed handed;

	while (spokei_handoff_take(provider->handoffs.handoff, &handed))
		serve_handed(provider, &handed);
	spokei_handoffs_look(provider);
}

void spokei_handoffs_look(struct spoke_provider *provider)
{
	const struct spokei_quota *quota = &provider->quota;

	if (provider->handoffs.handoff)
		spokei_handoff_want(provider->handoffs.handoff,
				    quota->count < quota->max ? quota->max - quota->count : 0);
}

void spokei_handoffs_part(struct spoke_provider *provider)
{
	if (provider->handoffs.handoff == NULL)
		return;
	spokei_handoff_part(provider->handoffs.handoff);
	take_handed(provider);
}

bool spokei_handoffs_fini(struct spoke_provider *provider)
{
	struct spokei_handoffs *handoffs = &provider->handoffs;
	struct spokei_desk *desk = atomic_load_explicit(&handoffs->desk, memory_order_acquire);

	if (!spokei_desk_close(desk))
		return false;
	spokei_desk_drop(desk);
	while (handoffs->handoff_count > 0)
		dismiss(handoffs, handoff_at(handoffs, 0));
	spokei_handoff_drop(handoffs->handoff);
	spokei_free(provider->engine->env,
		    atomic_load_explicit(&handoffs->places, memory_order_relaxed), 1,
		    sizeof(struct spokei_shared_places));
	return true;
}

static int refuse(struct spoke_provider *provider, const char *why)
{
	spokei_event(provider->engine, SPOKE_EINVAL, "join: %s", why);
	return SPOKE_EINVAL;
}

/* 0: it may. */
static int check(struct spoke_provider *provider, const struct spoke_provider *first)
{
	if (spokei_engine_forked(provider->engine))
		return SPOKE_EFORKED;
	if (provider->ended || provider->draining ||
	    atomic_load_explicit(&first->handoffs.over, memory_order_relaxed))
		return SPOKE_ECLOSED;
	if (provider->handoffs.joined)
		return SPOKE_ESTATE;
	if (provider->engine == first->engine)
		return refuse(provider, "the other one is on the same engine; add services there");
	if (provider->engine->env->net != first->engine->env->net)
		return refuse(provider, "the engines have different networks");
	return SPOKE_OK;
}

/* Lets the first know whom to hand connections to. */
static int ask_for_connections(struct spoke_provider *provider, struct spoke_provider *first)
{
	struct spokei_handoff_ends ends = {
		.first = spokei_desk_get(&first->handoffs.desk, first->engine),
		.second = spokei_desk_get(&provider->handoffs.desk, provider->engine),
		.joined = handoff_joined,
		.arrive = take_handed,
		.first_arg = first,
		.second_arg = provider,
	};
	struct spokei_handoff *handoff = NULL;

	if (ends.first && ends.second)
		handoff = spokei_handoff_new(provider->engine->env, &ends);
	if (handoff == NULL) {
		spokei_desk_drop(ends.first);
		spokei_desk_drop(ends.second);
		return SPOKE_ENOMEM;
	}
	provider->handoffs.handoff = handoff;
	spokei_handoffs_look(provider);
	if (spokei_handoff_join(handoff))
		return SPOKE_OK;
	provider->handoffs.handoff = NULL;
	spokei_handoff_drop(handoff);
	return SPOKE_ECLOSED;
}

static int open_all(struct spoke_provider *provider, struct spoke_provider *first,
		    const struct spokei_shared_places *places, size_t count)
{
	bool handed = false;
	int error = SPOKE_OK;

	if (count > SPOKEI_LISTENERS_MAX - provider->listener_count)
		return SPOKE_ELIMIT;
	for (size_t i = 0; i < count && error == 0; i++) {
		if (places->at[i].handed) {
			handed = true;
			continue;
		}
		error = spokei_provider_open(provider, &places->at[i]);
		provider->joined_count += error == 0;
	}
	/* Last, for it cannot be undone. */
	if (error == 0 && handed)
		error = ask_for_connections(provider, first);
	return error;
}

int spoke_provider_join(struct spoke_provider *provider, struct spoke_provider *first)
{
	const struct spokei_shared_places *places = atomic_load_explicit(&first->handoffs.places,
									 memory_order_acquire);
	size_t count = places ? atomic_load_explicit(&places->count, memory_order_acquire) : 0;
	int error = check(provider, first);

	if (error)
		return error;
	if (count == 0)
		return refuse(provider, "the other one listens nowhere with shared=true or turns; "
					"add that to its URLs");
	error = open_all(provider, first, places, count);
	provider->handoffs.joined = error == 0;
	while (error && provider->joined_count > 0) {
		provider->joined_count--;
		spokei_listener_free(provider->listeners[spokei_provider_places(provider)]);
	}
	return error;
}
