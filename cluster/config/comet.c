/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of gateways for browsers: the numbers of the options, and the section [comet]. */
#include "cluster/config/comet.h"

#include "cluster/config/config.h"

#include <spoke/config.h>

#include <string.h>

/* A number of the options, and the key that sets it. */
struct field {
	enum spokei_key key;
	size_t at;
	size_t size;
	const char *name;
};

#define FIELD(key, field)                                                                          \
	{                                                                                          \
		SPOKEI_KEY_COMET_##key, offsetof(struct spoke_comet_options, field),               \
			sizeof(((struct spoke_comet_options *)0)->field), #field                   \
	}
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const struct field fields[] = {
	FIELD(HEAD_TIME, head_ns),
	FIELD(KEEPALIVE, keepalive_ns),
	FIELD(POLL, poll_ns),
	FIELD(LIFE, life_ns),
	FIELD(KEEP, keep_ns),
	FIELD(SLOW, slow_ns),
	FIELD(RETRY_MIN, retry_min_ns),
	FIELD(RETRY_MAX, retry_max_ns),
	FIELD(DRAIN, drain_ns),
	FIELD(ACCEPT_RATE, accept_rate),
	FIELD(CONNECTIONS_MAX, connections_max),
	FIELD(CONNECTIONS_PER_PEER_MAX, connections_per_peer_max),
	FIELD(CONNECTIONS_PER_PEER_PREFIX6, connections_per_peer_prefix6),
	FIELD(CONNECTIONS_PER_USER_MAX, connections_per_user_max),
	FIELD(USERS_MAX, users_max),
	FIELD(FRAMES_PER_SECOND, frames_per_second),
	FIELD(FRAME_MAX, frame_max),
	FIELD(MESSAGE_MAX, message_max),
	FIELD(RING_MESSAGES, ring_messages),
	FIELD(RING_BYTES, ring_bytes),
	FIELD(RING_TIME, ring_ns),
	FIELD(ALL_MESSAGES, all_messages),
	FIELD(ALL_BYTES, all_bytes),
	FIELD(BYTES_MAX, bytes_max),
	FIELD(SEND_BUFFER, send_buffer),
};

static uint64_t get(const struct spoke_comet_options *options, const struct field *field)
{
	const char *at = (const char *)options + field->at;
	uint64_t wide;
	uint32_t narrow;

	if (field->size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void set(struct spoke_comet_options *options, const struct field *field, uint64_t number)
{
	char *at = (char *)options + field->at;
	const uint32_t narrow = (uint32_t)number;

	if (field->size == sizeof(number))
		memcpy(at, &number, sizeof(number));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

const char *spokei_config_comet_fill(struct spoke_comet_options *options)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const struct spokei_option *option = &spokei_key_row(fields[i].key)->option;

		if (get(options, &fields[i]) == 0)
			set(options, &fields[i], option->preset);
		if (get(options, &fields[i]) < option->min ||
		    get(options, &fields[i]) > option->max)
			return fields[i].name;
	}
	return NULL;
}

void spokei_config_comet_keep(struct spoke_comet_options *options,
			      const struct spoke_comet_options *old)
{
	for (size_t i = 0; i < FIELDS; i++) {
		if (!spokei_key_row(fields[i].key)->live)
			set(options, &fields[i], get(old, &fields[i]));
	}
}

static void copy_text(const struct spoke_config *config, enum spokei_key key, const char **text)
{
	if (*text == NULL)
		*text = spokei_config_text(config, SPOKEI_IN_COMET, (struct spoke_span){ NULL, 0 },
					   key);
}

void spoke_config_comet(const struct spoke_config *config, struct spoke_comet_options *options)
{
	struct spokei_key_values values = { .said = { false } };

	spokei_config_read(config, SPOKEI_IN_COMET, (struct spoke_span){ NULL, 0 }, &values);
	for (size_t i = 0; i < FIELDS; i++) {
		if (values.said[fields[i].key] && get(options, &fields[i]) == 0)
			set(options, &fields[i], values.of[fields[i].key]);
	}
	copy_text(config, SPOKEI_KEY_COMET_LISTEN, &options->listen);
	copy_text(config, SPOKEI_KEY_COMET_ORIGINS, &options->origins);
	copy_text(config, SPOKEI_KEY_COMET_HOSTS, &options->hosts);
	copy_text(config, SPOKEI_KEY_COMET_PROXIES, &options->proxies);
	options->any_client |= values.of[SPOKEI_KEY_COMET_ANY_CLIENT] != 0;
	options->query_user |= values.of[SPOKEI_KEY_COMET_QUERY_USER] != 0;
}
