/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file in use: its users, and access to its values. Users copy the values they
 * need, so the file may be reloaded and the config freed at any time. A config with users belongs
 * to their engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_CONFIG_H
#define SPOKEI_CLUSTER_CONFIG_CONFIG_H

#include "cluster/config/keys.h"
#include "timer/base.h"

#include <spoke/env.h>

struct spoke_config;
struct spokei_config_user;
struct spokei_credential_set;
struct spokei_settings;
struct spokei_tls;

/* A user of a config. Embedded in its owner, zero-initialised. A reload has two steps: all users
 * prepare, then all take the new values and files, or all drop them. */
struct spokei_config_user {
	struct spoke_list node;
	struct spoke_engine *engine; /* the owner's; set by join */
	struct spoke_config *config; /* NULL: none, or the user has left */
	/* Parts of a reload; NULL: none. */
	struct spokei_settings *settings;
	struct spokei_credential_set *credentials;
	struct spokei_tls *tls;
};

/* Registers the user for changes; user->config may be NULL. Returns 0, or EINVAL if the config
 * belongs to another engine, which the engine's newest event explains. */
SPOKE_MUST_USE int spokei_config_join(struct spokei_config_user *user, struct spoke_engine *engine);

/* Ends the use of the config. */
void spokei_config_leave(struct spokei_config_user *user);

/* Sets the keys that a section contains. `config` may be NULL, here and below. `name` is { } for a
 * section without a name. `uses`: bits 1 << section of the sections that apply to the reader; keys
 * of a service or a method that are for others only do not count as used. */
void spokei_config_read(const struct spoke_config *config, enum spokei_section kind,
			struct spoke_span name, unsigned uses, struct spokei_key_values *values);

/* Sets the keys of [method.METHOD], then those of [method.SERVICE.METHOD]. */
void spokei_config_read_method(const struct spoke_config *config, struct spoke_span service,
			       const char *method, unsigned uses, struct spokei_key_values *values);

/* Returns a text, or NULL if the key is not set. Valid until the next reload. */
const char *spokei_config_text(const struct spoke_config *config, enum spokei_section kind,
			       struct spoke_span name, enum spokei_key key);

/* Records an event that explains why a value is refused, with its line if the file has set it. */
void spokei_config_refuse(struct spoke_engine *engine, const struct spoke_config *config,
			  const struct spokei_key_values *values, enum spokei_key key, int error,
			  const char *why);

/* Reports each key that nothing has read so far, and each section that has only such keys, with a
 * sentence; at level INFO for sections like [lease], because programs may share a file, else WARN.
 */
void spokei_config_report_unused(const struct spoke_config *config,
				 void (*told)(void *arg, enum spoke_log_level level,
					      const char *sentence),
				 void *arg);

/* Returns whether a reload has begun, and has not ended. */
bool spokei_config_reloads(const struct spoke_config *config);

/* The last reload of a configuration file. */
struct spokei_config_news {
	const char *name;     /* of the file */
	uint64_t reloads;     /* attempts */
	uint64_t at_ns;       /* the last one; 0: none */
	int error;            /* of the last one */
	const char *sentence; /* its first message; "": none */
	size_t sentences;     /* its messages: errors, or changes that need a restart */
};

/* Valid until the next reload. */
struct spokei_config_news spokei_config_look(const struct spoke_config *config);

/* Sets the keys that a section without a name contains, with the values in force: of a key that a
 * reload does not change, that of the first load. */
void spokei_config_read_in_force(const struct spoke_config *config, enum spokei_section kind,
				 struct spokei_key_values *values);

#endif
