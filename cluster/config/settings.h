/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a consumer, a provider or a gateway: its sources are laid over one another, rows
 * name the fields of its structs that get the values, and a reload of the file renews both. A
 * reload has two steps: all settings prepare their next values, then all take or drop them. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_SETTINGS_H
#define SPOKEI_CLUSTER_CONFIG_SETTINGS_H

#include "cluster/config/config.h"

struct spoke_tls_options;

/* A struct with values in force; rows name its fields by `of`. */
struct spokei_settings_part {
	enum spokei_fields_of of;
	size_t at; /* where it lies in `structs` */
	/* Uses the struct after a reload. NULL: its readers look each time. */
	void (*apply)(void *owner);
};

/* Common to all owners of a kind. */
struct spokei_settings_kind {
	unsigned sections; /* bits 1 << section: those of the file that apply */
	const struct spokei_settings_part *parts;
	unsigned part_count;
	/* A reload: as those of struct spokei_config_user. Each may be NULL. */
	int (*prepare)(void *owner);
	void (*drop)(void *owner);
	/* After all parts. */
	void (*take)(void *owner);
};

/* A later source overrides an earlier one; the order is that of the members. Zero-initialised but
 * for the sources. */
struct spokei_settings {
	const struct spokei_settings_kind *kind;
	void *owner;                        /* for the functions of the kind */
	void *structs;                      /* the struct with all parts */
	const struct spoke_url *provided;   /* a provider's URL, as that of a rule; NULL: none */
	struct spokei_config_user file;     /* the owner sets `config` and the files */
	const char *service;                /* its section of the file applies; NULL: none */
	const struct spoke_url *url;        /* the owner's own; NULL: none */
	struct spokei_kept_values *options; /* read from structs of options; NULL: before begin */
	const struct spoke_url *ruled;      /* an operator's rule; NULL: none */

	struct spokei_kept_values *in_force;
	struct spokei_key_values *next;     /* while a reload prepares, else NULL ... */
	struct spokei_kept_values *renewed; /* ... and those that will be in force */
	/* Copies of the texts of `in_force`: those that stay, those that a reload replaces, and
	 * those of `next`. Lists have no blanks around commas. */
	struct spokei_settings_texts {
		char *bytes;
		size_t size;
	} fixed, live, coming;
};

/* Reads all sources, with `options` as those of code, fills the parts and registers for reloads.
 * Returns 0, EINVAL, ERANGE or ENOMEM, which the engine's newest event explains. Undo with end,
 * also after an error. */
SPOKE_MUST_USE int spokei_settings_begin(struct spokei_settings *settings,
					 struct spoke_engine *engine,
					 const struct spokei_key_values *options);

/* Reads the values in force: all, a number, or a text, NULL if there is none. */
void spokei_settings_look(const struct spokei_settings *settings, struct spokei_key_values *ret);
uint64_t spokei_settings_number(const struct spokei_settings *settings, enum spokei_key key);
const char *spokei_settings_text(const struct spokei_settings *settings, enum spokei_key key);

/* Takes no part in reloads any more. The values stay in force until end, which frees the texts. */
void spokei_settings_leave(struct spokei_settings *settings);
void spokei_settings_end(struct spokei_settings *settings, const struct spoke_env *env);

/* Reads the sources again after a URL has changed, and fills the parts. Texts stay, and without
 * memory all values. */
void spokei_settings_renew(struct spokei_settings *settings);

/* A method, of the owner's service or of another. */
struct spokei_method_name {
	struct spoke_span service;
	const char *method;
};

/* Options of a method, of the kind `of`. */
struct spokei_method_code {
	enum spokei_fields_of of;
	const void *options;
};

/* Reads the values of a method. `code` may be NULL. Returns 0, EINVAL or ERANGE, with an event. */
SPOKE_MUST_USE int spokei_settings_read_method(const struct spokei_settings *settings,
					       const struct spokei_method_name *name,
					       const struct spokei_method_code *code,
					       struct spokei_key_values *ret);

/* --- TLS of an owner */

struct spokei_tls_sources {
	const struct spoke_tls_options *options; /* NULL: none, and the rest decides */
	const char *of_url;                      /* "tls" of this side's own URL; NULL: not set */
	const struct spokei_settings *settings;  /* in force, with these options */
	enum spokei_section section;             /* of a provider or a consumer */
};

/*
 * Returns 0, with *ret_tls NULL if it is off and no place can ask for it; or an error, which the
 * engine's newest event explains. Reads files.
 */
SPOKE_MUST_USE int spokei_settings_tls(struct spoke_engine *engine,
				       const struct spokei_tls_sources *sources,
				       enum spokei_tls_mode *ret_mode, struct spokei_tls **ret_tls);

/* --- steps of a reload, for the config; `settings` may be NULL */

/* Returns 0 or an error, after which drop follows. */
SPOKE_MUST_USE int spokei_settings_prepare(struct spokei_settings *settings);
void spokei_settings_take(struct spokei_settings *settings);
void spokei_settings_drop(struct spokei_settings *settings);

#endif
