/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a parsed and checked configuration file (a "sheet"): sections with keys and
 * values. Constant; a reload makes another sheet. Owned by a config.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_SHEET_H
#define SPOKEI_CLUSTER_CONFIG_SHEET_H

#include "cluster/config/keys.h"
#include "core/base/env.h"

#include <spoke/config.h>

#define SPOKEI_SHEET_KEYS_MAX 4096u    /* lines with a value */
#define SPOKEI_SHEET_PARTS_MAX 1024u   /* sections */
#define SPOKEI_SHEET_LINE_MAX 4096u    /* bytes of a line */
#define SPOKEI_SHEET_ERRORS_MAX 1000u  /* reported for one file */
#define SPOKEI_SHEET_SENTENCE_MAX 768u /* bytes of a message, with the NUL */
#define SPOKEI_SHEET_HIDDEN "***"      /* shown in place of a secret */

/* A key with its value. */
struct spokei_entry {
	enum spokei_key key;
	unsigned line;
	uint64_t number;           /* in the unit of the key; for texts the length */
	const char *text;          /* as written */
	struct spokei_entry *next; /* next entry of the section */
};

/* A section; `name` is "" for a kind with one section only. */
struct spokei_part {
	enum spokei_section kind;
	const char *name;
	struct spokei_entry *first;
	struct spokei_entry *last;
};

struct spokei_sheet {
	const struct spoke_env *env;
	char *text; /* the file's text, cut into names and values */
	size_t text_size;
	struct spokei_part *parts;
	size_t part_count;
	size_t part_room;
	struct spokei_entry *entries;
	size_t entry_count;
	size_t entry_room;
};

/*
 * Parses a text, which messages call `name`. Returns 0; ESYNTAX if there are errors; ETOOLARGE;
 * ENOMEM. All errors are reported to `told`, which may be NULL. Undo with fini.
 */
SPOKE_MUST_USE int spokei_sheet_read(const struct spoke_env *env, const char *name,
				     struct spoke_span text, spoke_config_message_fn told,
				     void *arg, struct spokei_sheet *ret);
void spokei_sheet_fini(struct spokei_sheet *sheet);

/* Returns the section of a name, or NULL. `name` is { } for a kind with one section only. */
const struct spokei_part *spokei_sheet_part(const struct spokei_sheet *sheet,
					    enum spokei_section kind, struct spoke_span name);

/* Returns the section [method.SERVICE.METHOD], or NULL. */
const struct spokei_part *spokei_sheet_method(const struct spokei_sheet *sheet,
					      struct spoke_span service, const char *method);

/* Returns the entry of a key, or NULL. `part` may be NULL. */
const struct spokei_entry *spokei_sheet_entry(const struct spokei_part *part, enum spokei_key key);

/* Writes a value for messages: escaped and cut; "..." for a URL that may contain a password. */
void spokei_sheet_show(const char *value, char *out, size_t size);

/* Returns whether messages must not show the value of a key. A misspelt key counts as the one that
 * it probably means. */
bool spokei_sheet_is_secret(const char *name);

/* Writes a message: "spoke.conf:3: heartbeat = 5s: " and `what`. */
void spokei_sheet_sentence(const char *name, const struct spokei_entry *entry, const char *what,
			   char *out, size_t size);

/* Finds the section that a heading names, e.g. "method.demo.EchoService.echo"; *ret_name is
 * the end of the heading, or "". Returns whether there is such a kind. */
bool spokei_sheet_heading(const char *heading, enum spokei_section *ret_kind,
			  const char **ret_name);

/* Guesses the section that a misspelt heading means. Returns whether there is a guess. */
bool spokei_sheet_guess(const char *heading, enum spokei_section *ret_kind);

#endif
