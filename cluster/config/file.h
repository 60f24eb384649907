/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed and checked configuration file: sections with keys and values. Constant but for
 * marks of use; a reload makes another one. Owned by a config, the inside of which is here, for
 * this wing and tests.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_FILE_H
#define SPOKEI_CLUSTER_CONFIG_FILE_H

#include "cluster/config/config.h"
#include "cluster/config/credentials.h"
#include "core/memory/buffer.h"

#include <spoke/config.h>
#include <spoke/signals.h>

#define SPOKEI_CONFIG_KEYS_MAX 4096u     /* lines with a value */
#define SPOKEI_CONFIG_SECTIONS_MAX 1024u /* sections */
#define SPOKEI_CONFIG_LINE_MAX 4096u     /* bytes of a line */
#define SPOKEI_CONFIG_ERRORS_MAX 1000u   /* reported for one file */
#define SPOKEI_CONFIG_SENTENCE_MAX 768u  /* bytes of a message, with the NUL */
#define SPOKEI_CONFIG_HIDDEN "***"       /* shown in place of a secret */

/* A key with its value. */
struct spokei_config_entry {
	enum spokei_key key;
	unsigned line;
	uint64_t number;                  /* in the unit of the key; for texts the length */
	const char *text;                 /* as written */
	bool used;                        /* it has been read by a user of the file */
	struct spokei_config_entry *next; /* next entry of the section */
};

/* A section; `name` is "" for a kind with one section only. */
struct spokei_config_section {
	enum spokei_section kind;
	const char *name;
	struct spokei_config_entry *first;
	struct spokei_config_entry *last;
};

struct spokei_config_file {
	const struct spoke_env *env;
	char *text; /* the file's text, cut into names and values */
	size_t text_size;
	struct spokei_config_section *sections;
	size_t section_count;
	size_t section_room;
	struct spokei_config_entry *entries;
	size_t entry_count;
	size_t entry_room;
};

/*
 * Parses a text, which messages call `name`. Returns 0; ESYNTAX if there are errors; ETOOLARGE;
 * ENOMEM. All errors are reported to `told`, which may be NULL. Undo with fini.
 */
SPOKE_MUST_USE int spokei_config_file_read(const struct spoke_env *env, const char *name,
					   struct spoke_span text, spoke_config_message_fn told,
					   void *arg, struct spokei_config_file *ret);
void spokei_config_file_fini(struct spokei_config_file *file);

/* All that a reload reads, before any of it is used, so that a thread of the pool can read it: the
 * file, the files of tokens and keys that it names, and those of TLS. */
struct spokei_config_reading {
	const struct spoke_env *env;
	const char *name;               /* of the file; borrowed */
	struct spokei_config_file file; /* if there is no error */
	int error;                      /* as spoke_config_load() returns */
	struct spokei_buffer told;      /* sentences about the file, each with its NUL */
	struct spokei_secret_files secrets;
	struct spoke_list tls; /* see spokei_tls_hold() */
};

/* A file in use. */
struct spoke_config {
	const struct spoke_env *env;
	bool is_file;                    /* false: parsed from a text */
	struct spokei_config_file file;  /* current values */
	struct spokei_config_file first; /* values of the first load; shares memory with `file`
					  * until a reload */
	struct spoke_list users;
	struct spoke_signal signal;
	struct spokei_config_news news;            /* of the last reload */
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX]; /* news.sentence */
	struct spoke_engine *signalled;            /* the engine of a reload by a signal */
	bool busy;                                 /* a reload is in progress */
	bool again;                                /* ... and another signal has come */
	bool freed;                                /* ... and frees the config when it ends */
	struct spokei_config_reading reading;      /* of that reload */
	struct spoke_work work;                    /* ... that a signal has begun */
	size_t size;                               /* of this struct, with the name */
	char name[];                               /* of the file */
};

/* Returns the engine of the users or of the watched signal; NULL if there is neither. */
struct spoke_engine *spokei_config_engine(const struct spoke_config *config);

/* Returns the entry of a key in the section of this kind and name, or NULL. `name` is { } for a
 * kind with one section only. */
const struct spokei_config_entry *spokei_config_file_find(const struct spokei_config_file *file,
							  enum spokei_section kind,
							  struct spoke_span name,
							  enum spokei_key key);

/* Writes a message: "spoke.conf:3: heartbeat = 5s: " and `what`. */
void spokei_config_file_sentence(const char *name, const struct spokei_config_entry *entry,
				 const char *what, char *out, size_t size);

#endif
