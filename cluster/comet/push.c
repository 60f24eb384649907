/* SPDX-License-Identifier: Apache-2.0 */
/* The functions by which a program pushes messages, closes users' connections, and counts. */
#include "cluster/comet/parts.h"

#include <stdio.h>

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
		spokei_engine_soon(comet->engine, &comet->pass);
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
static int push_here(struct spoke_comet *comet, const struct spokei_comet_push *push,
		     struct spokei_comet_message *made, struct spoke_comet_result *result)
{
	int first = SPOKE_OK;

	*result = (struct spoke_comet_result){ .users = 0 };
	(void)spokei_comet_print_id(comet, made->number, result->id);
	if (push->act == SPOKEI_COMET_TO_ALL)
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
static void miss(struct spoke_comet *comet, const struct spokei_comet_push *push)
{
	const uint64_t number = ++comet->number;

	if (push->act == SPOKEI_COMET_TO_ALL) {
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

void spokei_comet_arrived(struct spoke_comet *comet, const struct spokei_comet_push *push)
{
	struct spokei_comet_message *made;
	struct spoke_comet_result result;
	char reason[SPOKEI_COMET_REASON];

	if (push->act == SPOKEI_COMET_KICK) {
		(void)snprintf(reason, sizeof(reason), "%.*s", (int)push->message.data.len,
			       (const char *)push->message.data.data);
		(void)kick_here(comet, push->users[0], reason);
	} else if (spokei_comet_make(comet, &push->message, &made)) {
		miss(comet, push);
	} else {
		(void)push_here(comet, push, made, &result);
	}
}

/* --- pushing */

/* Pushes here, and in all gateways that have joined this one. */
static int push_everywhere(struct spoke_comet *comet, const struct spokei_comet_push *push,
			   struct spoke_comet_result *ret)
{
	struct spokei_comet_parcel *parcel;
	struct spokei_comet_message *made;
	struct spoke_comet_result result;
	int error = spokei_engine_check(comet->engine);

	if (error == SPOKE_OK && comet->closed)
		error = SPOKE_ECLOSED;
	if (error == SPOKE_OK)
		error = spokei_comet_make(comet, &push->message, &made);
	if (error)
		return error;
	error = spokei_comet_pack(comet, push, &parcel);
	if (error) {
		spokei_comet_drop(comet, made);
		return error;
	}
	error = push_here(comet, push, made, &result);
	spokei_comet_send(parcel);
	if (ret)
		*ret = result;
	return error;
}

int spoke_comet_push_many(struct spoke_comet *comet, const struct spoke_span *users, size_t count,
			  const struct spoke_comet_message *message, struct spoke_comet_result *ret)
{
	const struct spokei_comet_push push = {
		.act = SPOKEI_COMET_TO_USERS,
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
	const struct spokei_comet_push push = { .act = SPOKEI_COMET_TO_ALL, .message = *message };

	return push_everywhere(comet, &push, ret);
}

/* --- users */

uint32_t spoke_comet_kick(struct spoke_comet *comet, struct spoke_span id, const char *reason)
{
	const struct spokei_comet_push push = {
		.act = SPOKEI_COMET_KICK,
		.users = &id,
		.count = 1,
		.message.data = spoke_comet_text(reason),
	};
	struct spokei_comet_parcel *parcel;
	int error;

	if (spokei_engine_check(comet->engine) || comet->closed)
		return 0;
	error = spokei_comet_pack(comet, &push, &parcel);
	if (error)
		spokei_event(comet->engine, error, "comet: a kick does not reach other gateways");
	spokei_comet_send(parcel);
	return kick_here(comet, id, reason);
}

uint32_t spoke_comet_connections(const struct spoke_comet *comet, struct spoke_span id)
{
	const struct spokei_comet_user *user = spokei_comet_find(comet, id);

	return user ? user->count : 0;
}

size_t spoke_comet_users(const struct spoke_comet *comet, struct spoke_span *users, size_t max)
{
	size_t count = 0;

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
