/* SPDX-License-Identifier: Apache-2.0 */
/* Makes identities of peers, in one block of memory, and prints them. */
#include "transport/conn/identity.h"

#include "core/base/address.h"
#include "core/base/env.h"

#include <stdio.h>
#include <string.h>

#define ADDRESS_TEXT 160u

static bool fits(struct spoke_span name)
{
	return name.len > 0 && name.len < SPOKEI_IDENTITY_NAME;
}

struct spokei_identity *spokei_identity_new(const struct spoke_env *env,
					    const struct spokei_identity_of *of)
{
	size_t size = sizeof(struct spokei_identity) + of->name_count * sizeof(*of->names);
	struct spokei_identity *identity;
	char *at;

	for (size_t i = 0; i < of->name_count; i++)
		size += fits(of->names[i]) ? of->names[i].len : 0;
	identity = spokei_alloc(env, 1, size);
	if (identity == NULL)
		return NULL;
	identity->env = env;
	identity->size = size;
	identity->shares = 1;
	if (of->user) {
		identity->has_user = true;
		identity->user = *of->user;
	}
	at = (char *)(identity->names + of->name_count);
	for (size_t i = 0; i < of->name_count; i++) {
		struct spoke_span name = of->names[i];

		if (!fits(name))
			continue;
		memcpy(at, name.data, name.len);
		identity->names[identity->name_count++] = (struct spoke_span){ at, name.len };
		at += name.len;
	}
	return identity;
}

struct spokei_identity *spokei_identity_share(struct spokei_identity *identity)
{
	if (identity)
		identity->shares++;
	return identity;
}

void spokei_identity_drop(struct spokei_identity *identity)
{
	if (identity && --identity->shares == 0)
		spokei_free(identity->env, identity, 1, identity->size);
}

static void set_token(struct spokei_identity *identity, bool token)
{
	if (atomic_load_explicit(&identity->token, memory_order_relaxed) == token)
		return;
	atomic_store_explicit(&identity->token, token, memory_order_relaxed);
	memset(identity->judged, 0, sizeof(identity->judged));
}

void spokei_identity_prove(struct spokei_identity *identity, uint64_t proof)
{
	identity->proof = proof;
	set_token(identity, true);
}

void spokei_identity_withdraw(struct spokei_identity *identity)
{
	identity->proof = 0;
	set_token(identity, false);
}

static size_t print_address(const struct spoke_env *env, const struct spoke_address *peer,
			    char *text, size_t size)
{
	char address[ADDRESS_TEXT];
	struct spoke_span host;

	env->net->print(env->ctx, peer, address, sizeof(address));
	host = spokei_address_host(address);
	if (host.len == 0)
		return 0;
	return (size_t)snprintf(text, size, "addr:%.*s", (int)host.len, (const char *)host.data);
}

size_t spokei_identity_print(const struct spoke_env *env, const struct spokei_identity *identity,
			     const struct spoke_address *peer, size_t index, char *text,
			     size_t size)
{
	size_t count = identity ? identity->name_count : 0;
	bool has_user = identity && identity->has_user;
	bool token = identity && atomic_load_explicit(&identity->token, memory_order_relaxed);

	if (index < count)
		return (size_t)snprintf(text, size, "%.*s", (int)identity->names[index].len,
					(const char *)identity->names[index].data);
	if (has_user && index == count)
		return (size_t)snprintf(text, size, "uid:%u", (unsigned)identity->user.uid);
	count += has_user;
	if (token && index == count)
		return (size_t)snprintf(text, size, "token");
	count += token;
	return index == count ? print_address(env, peer, text, size) : 0;
}

bool spokei_identity_is_known(const struct spokei_identity *identity)
{
	return identity && (identity->name_count > 0 || identity->has_user ||
			    atomic_load_explicit(&identity->token, memory_order_relaxed));
}

const struct spokei_identity_judged *spokei_identity_judged(const struct spokei_identity *identity,
							    uint64_t list)
{
	for (unsigned i = 0; i < SPOKEI_IDENTITY_JUDGED; i++)
		if (identity->judged[i].list == list)
			return &identity->judged[i];
	return NULL;
}

void spokei_identity_judge(struct spokei_identity *identity, uint64_t list, bool allowed)
{
	identity->judged[identity->next++ % SPOKEI_IDENTITY_JUDGED] =
		(struct spokei_identity_judged){ list, allowed };
}
