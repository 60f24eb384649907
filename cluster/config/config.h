/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A config inside: a sheet, and who goes by it. What they take of it they copy, so that a sheet may
 * be replaced, and the config freed, at any time. As soon as somebody goes by it, on that engine's
 * thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_CONFIG_H
#define SPOKEI_CLUSTER_CONFIG_CONFIG_H

#include "cluster/config/sheet.h"

#include <spoke/signals.h>

struct spoke_config {
	const struct spoke_env *env;
	char *name; /* of the file */
	size_t name_size;
	bool is_file;              /* else it was a text */
	struct spokei_sheet sheet; /* what it says now */
	struct spokei_sheet first; /* what it said first; at first the same memory */
	struct spoke_list users;
	struct spoke_signal signal;
	bool busy;  /* it is being read again */
	bool freed; /* ... and is to be freed then */
};

/* Who goes by a config; embedded in its owner, zero-initialised. */
struct spokei_config_user {
	struct spoke_list node;
	struct spoke_engine *engine; /* its owner's, of one that has joined */
	struct spoke_config *config; /* NULL: none, or not any more */
	/* It says something else now. Frees nothing, and calls nobody. */
	void (*changed)(struct spokei_config_user *user);
};

/* From now on the user is told of changes; user->config may be NULL. Returns 0 or EINVAL: it
 * belongs to another engine, of which the engine's newest event has a sentence. */
SPOKE_MUST_USE int spokei_config_join(struct spokei_config_user *user, struct spoke_engine *engine);

/* It goes by nothing any more. */
void spokei_config_leave(struct spokei_config_user *user);

/* What a section says of numbers, over what was said before. `config` may be NULL, here and below;
 * `name` { }: of a kind of which there is one. */
void spokei_config_read(const struct spoke_config *config, enum spokei_section kind,
			struct spoke_span name, struct spokei_key_values *values);

/* ... of a method, whoever's it is, and over that of this service's. */
void spokei_config_read_method(const struct spoke_config *config, struct spoke_span service,
			       const char *method, struct spokei_key_values *values);

/* Reads a file. Returns as spoke_config_load(). */
SPOKE_MUST_USE int spokei_config_read_file(const struct spoke_env *env, const char *path,
					   spoke_config_changed_fn told, void *arg,
					   struct spokei_sheet *ret);

/* Frees what it says now, unless that is what it said first. */
void spokei_config_drop_sheet(struct spoke_config *config);

/* The engine of those who go by it, or that watches its signal; NULL: nobody does. */
struct spoke_engine *spokei_config_engine(const struct spoke_config *config);

/* May this engine go by it? Returns as spokei_config_join(). */
SPOKE_MUST_USE int spokei_config_allow(const struct spoke_config *config,
				       struct spoke_engine *engine);

/* A text; NULL: it is not said. Good until the config is read again. */
const char *spokei_config_text(const struct spoke_config *config, enum spokei_section kind,
			       struct spoke_span name, enum spokei_key key);

#endif
