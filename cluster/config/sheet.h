/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of settings says, once it has been read and found right: sections with keys and
 * values. It never changes; a file that is read again is another sheet. Owned by a config.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_SHEET_H
#define SPOKEI_CLUSTER_CONFIG_SHEET_H

#include "cluster/config/table.h"
#include "core/base/env.h"

#include <spoke/config.h>

#define SPOKEI_SHEET_KEYS_MAX 4096u    /* lines with a value */
#define SPOKEI_SHEET_PARTS_MAX 1024u   /* sections */
#define SPOKEI_SHEET_LINE_MAX 4096u    /* bytes of a line */
#define SPOKEI_SHEET_ERRORS_MAX 1000u  /* told of one file */
#define SPOKEI_SHEET_SENTENCE_MAX 768u /* bytes of what is told, with the NUL */

/* A value. */
struct spokei_entry {
	enum spokei_key key;
	unsigned line;
	uint64_t number;           /* in the unit of the key; of texts their length */
	const char *text;          /* as it is written */
	struct spokei_entry *next; /* of the same section */
};

/* A section; `name` is "" where there is one of the kind. */
struct spokei_part {
	enum spokei_section kind;
	const char *name;
	struct spokei_entry *first;
	struct spokei_entry *last;
};

struct spokei_sheet {
	const struct spoke_env *env;
	char *text; /* of the file, cut into names and values */
	size_t text_size;
	struct spokei_part *parts;
	size_t part_count;
	size_t part_room;
	struct spokei_entry *entries;
	size_t entry_count;
	size_t entry_room;
};

/*
 * Reads a text, which `name` stands for in sentences. Returns 0; ESYNTAX: something is wrong, and
 * all of it has been told (`told` may be NULL); ETOOLARGE or ENOMEM, told too. Undo with fini.
 */
SPOKE_MUST_USE int spokei_sheet_read(const struct spoke_env *env, const char *name,
				     struct spoke_span text, spoke_config_changed_fn told,
				     void *arg, struct spokei_sheet *ret);
void spokei_sheet_fini(struct spokei_sheet *sheet);

/* The section of a name; NULL: there is none. `name` { }: of a kind of which there is one. */
const struct spokei_part *spokei_sheet_part(const struct spokei_sheet *sheet,
					    enum spokei_section kind, struct spoke_span name);

/* [method.SERVICE.METHOD]; NULL: there is none. */
const struct spokei_part *spokei_sheet_method(const struct spokei_sheet *sheet,
					      struct spoke_span service, const char *method);

/* What a section, which may be NULL, says of a key; NULL: nothing. */
const struct spokei_entry *spokei_sheet_entry(const struct spokei_part *part, enum spokei_key key);

/* Writes a value as it may be shown: escaped and cut; "..." for a URL that may have a password. */
void spokei_sheet_show(const char *value, char *out, size_t size);

/* Writes "spoke.conf:3: heartbeat = 5s: " and `what`. */
void spokei_sheet_sentence(const char *name, const struct spokei_entry *entry, const char *what,
			   char *out, size_t size);

/* Which section a heading names, as "method.demo.EchoService.echo"; *ret_name is the end of it, or
 * "". Returns whether there is such a kind. */
bool spokei_sheet_heading(const char *heading, enum spokei_section *ret_kind,
			  const char **ret_name);

/* The section that a heading is likely to mean which names none. Returns whether there is one. */
bool spokei_sheet_guess(const char *heading, enum spokei_section *ret_kind);

#endif
