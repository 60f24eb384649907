/* SPDX-License-Identifier: Apache-2.0 */
/* Lays the sources of settings of leases over one another, and checks them. */
#include "cluster/lease/settings.h"
#include "cluster/lease/lease.h"

#include "cluster/config/config.h"
#include "cluster/config/keys.h"
#include "cluster/config/places.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/call.h>
#include <spoke/link.h>

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NS_PER_MS UINT64_C(1000000)
#define REASON_MAX 96u /* bytes of a part of a sentence, with the NUL */

/* --- terms */

static int check_guard(uint64_t guard_ns, uint64_t ttl_ns, char why[REASON_MAX])
{
	char ttl[32];

	if (guard_ns < ttl_ns / 2)
		return SPOKE_OK;
	spokei_option_print(SPOKEI_OPTION_DURATION, ttl_ns, ttl, sizeof(ttl));
	(void)snprintf(why, REASON_MAX, "not less than half of the time to live, which is %s", ttl);
	return SPOKE_ERANGE;
}

int spokei_lease_terms(const struct spokei_lease_settings *settings,
		       const struct spoke_lease_options *options, struct spokei_lease_terms *ret,
		       char why[SPOKEI_LEASE_WHY_MAX])
{
	const struct spokei_option *row = &spokei_key_row(SPOKEI_KEY_LEASE_TTL)->option;
	struct spokei_lease_terms terms = {
		.ttl_ns = settings->ttl_ns,
		.wait_ns = settings->wait_ns,
	};
	char reason[REASON_MAX];
	int error;

	if (options && options->wait_ns)
		terms.wait_ns = options->wait_ns;
	if (options && options->ttl_ns)
		terms.ttl_ns = options->ttl_ns;
	if (terms.ttl_ns < row->min || terms.ttl_ns > row->max) {
		spokei_key_print_refusal(SPOKEI_KEY_LEASE_TTL, terms.ttl_ns, why);
		return SPOKE_ERANGE;
	}
	/* The store counts in ms. */
	terms.ttl_ns -= terms.ttl_ns % NS_PER_MS;
	error = check_guard(settings->guard_ns, terms.ttl_ns, reason);
	if (error == SPOKE_OK)
		*ret = terms;
	else
		(void)snprintf(why, SPOKEI_LEASE_WHY_MAX, "the lease's guard: %s", reason);
	return error;
}

/* --- numbers */

static int read_numbers(struct spoke_engine *engine, const struct spoke_leases_options *options,
			struct spokei_lease_settings *settings)
{
	static const struct spoke_span no_name;
	char why[REASON_MAX];
	struct spokei_key_values *values = &settings->in_force;
	int error;

	spokei_keys_preset(values);
	spokei_config_read(options->config, SPOKEI_IN_LEASE, no_name, 1u << SPOKEI_IN_LEASE,
			   values);
	spokei_store_keys(&settings->store, values);
	error = spokei_keys_read_code(engine, values, SPOKEI_IN_LEASE, SPOKEI_AT_LEASES, options);
	if (error)
		return error;
	settings->ttl_ns = values->of[SPOKEI_KEY_LEASE_TTL];
	settings->wait_ns = values->of[SPOKEI_KEY_LEASE_WAIT];
	settings->guard_ns = values->of[SPOKEI_KEY_LEASE_GUARD];
	settings->max = (uint32_t)values->of[SPOKEI_KEY_LEASE_MAX];
	/* 0 stands for the default, so no guard at all is one of a nanosecond. */
	if (values->from[SPOKEI_KEY_LEASE_GUARD] && settings->guard_ns == 0)
		settings->guard_ns = 1;
	error = check_guard(settings->guard_ns, settings->ttl_ns, why);
	if (error)
		spokei_config_refuse(engine, options->config, values, SPOKEI_KEY_LEASE_GUARD, error,
				     why);
	return error;
}

/* --- the store */

static const char *text_of(const struct spoke_config *config, enum spokei_key key)
{
	return spokei_config_text(config, SPOKEI_IN_LEASE, (struct spoke_span){ NULL, 0 }, key);
}

static int read_store(struct spoke_engine *engine, const char *text, struct spokei_store *ret)
{
	char shown[SPOKEI_PLACES_SHOWN];
	struct spoke_url_error why;
	int error;

	if (text == NULL) {
		spokei_event_of(engine, SPOKE_EVENT_OF_LEASE, SPOKE_EINVAL,
				"store of leases: missing; write e.g. redis://127.0.0.1:6379/0");
		return SPOKE_EINVAL;
	}
	error = spokei_store_parse(engine->env, text, strlen(text), ret, &why);
	if (error) {
		spokei_places_show(text, shown);
		spokei_event_of(engine, SPOKE_EVENT_OF_LEASE, error,
				"store of leases %s, byte %zu: %s", shown, why.at, why.text);
	}
	return error;
}

/* Returns the first text that is neither NULL nor empty. */
static const char *choose(const char *first, const char *second)
{
	if (first && *first)
		return first;
	return second && *second ? second : NULL;
}

/*
 * Chooses user and passwords. Those of the file are not sent to a store that the file does not
 * name. A URL with either user or password has both.
 */
static void choose_credentials(const struct spoke_leases_options *options,
			       struct spokei_lease_settings *settings)
{
	const struct spokei_store *store = &settings->store;
	const char *named = text_of(options->config, SPOKEI_KEY_LEASE_STORE);
	bool ours = options->store == NULL || named == NULL || strcmp(options->store, named) == 0;
	const struct spoke_config *config = ours ? options->config : NULL;
	const char *user = store->user;
	const char *password = store->password;

	if (user == NULL && password == NULL) {
		user = text_of(config, SPOKEI_KEY_LEASE_USER);
		password = text_of(config, SPOKEI_KEY_LEASE_PASSWORD);
	}
	settings->redis.user = choose(options->user, user);
	settings->redis.password = choose(options->password, password);
	settings->redis.sentinel_password = choose(options->sentinel_password,
						   text_of(config,
							   SPOKEI_KEY_LEASE_SENTINEL_PASSWORD));
}

static int check_credentials(struct spoke_engine *engine, const struct spokei_redis_options *redis)
{
	const char *const texts[] = { redis->user, redis->password, redis->sentinel_password };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i] == NULL || strlen(texts[i]) <= SPOKEI_STORE_TEXT_MAX)
			continue;
		spokei_event_of(engine, SPOKE_EVENT_OF_LEASE, SPOKE_ETOOLARGE,
				"store of leases: user and passwords have at most %u bytes each",
				SPOKEI_STORE_TEXT_MAX);
		return SPOKE_ETOOLARGE;
	}
	if (redis->user == NULL || redis->password)
		return SPOKE_OK;
	spokei_event_of(engine, SPOKE_EVENT_OF_LEASE, SPOKE_EINVAL,
			"store of leases: a user without a password; write redis://USER:PASSWORD@"
			"HOST, or redis://:PASSWORD@HOST without a user");
	return SPOKE_EINVAL;
}

/* Copies the texts that are not in the URL of the store: the name of the file, user, passwords. */
static int keep_texts(struct spoke_engine *engine, const struct spoke_leases_options *options,
		      struct spokei_lease_settings *settings)
{
	const char **const kept[] = { &settings->file, &settings->redis.user,
				      &settings->redis.password,
				      &settings->redis.sentinel_password };
	char *at;

	settings->file = options->config ? spokei_config_look(options->config).name : NULL;
	if (settings->file && *settings->file == '\0')
		settings->file = NULL;
	for (size_t i = 0; i < COUNT(kept); i++)
		settings->texts_size += *kept[i] ? strlen(*kept[i]) + 1 : 0;
	if (settings->texts_size > 0) {
		settings->texts = spokei_alloc(engine->env, 1, settings->texts_size);
		if (settings->texts == NULL)
			return SPOKE_ENOMEM;
	}
	at = settings->texts;
	for (size_t i = 0; i < COUNT(kept); i++) {
		size_t size = *kept[i] ? strlen(*kept[i]) + 1 : 0;

		if (size == 0)
			continue;
		memcpy(at, *kept[i], size);
		*kept[i] = at;
		at += size;
	}
	settings->in_force.text[SPOKEI_KEY_LEASE_STORE] = NULL;
	settings->in_force.text[SPOKEI_KEY_LEASE_USER] = settings->redis.user;
	return SPOKE_OK;
}

void spokei_lease_settings_free(const struct spoke_env *env, struct spokei_lease_settings *settings)
{
	spokei_store_fini(&settings->store);
	spokei_free(env, settings->texts, 1, settings->texts_size);
	settings->texts = NULL;
}

/* --- the whole */

/* Reads everything, while the file is known to belong to this engine. */
static int read_all(struct spoke_engine *engine, const struct spoke_leases_options *options,
		    struct spokei_lease_settings *settings)
{
	const char *text = options->store;
	int error;

	if (text == NULL)
		text = text_of(options->config, SPOKEI_KEY_LEASE_STORE);
	error = read_store(engine, text, &settings->store);
	if (error)
		return error;
	error = read_numbers(engine, options, settings);
	if (error == 0) {
		choose_credentials(options, settings);
		error = check_credentials(engine, &settings->redis);
	}
	if (error == 0)
		error = keep_texts(engine, options, settings);
	if (error)
		spokei_store_fini(&settings->store);
	return error;
}

int spokei_lease_settings(struct spoke_engine *engine, const struct spoke_leases_options *options,
			  struct spokei_lease_settings *ret)
{
	struct spokei_config_user user = { .config = options->config };
	struct spokei_lease_settings settings = { .max = 0 };
	int error = spokei_config_join(&user, engine);

	if (error)
		return error;
	error = read_all(engine, options, &settings);
	spokei_config_leave(&user);
	if (error)
		return error;
	*ret = settings;
	ret->redis.store = &ret->store;
	return SPOKE_OK;
}
