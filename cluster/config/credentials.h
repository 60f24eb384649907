/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of a provider, a consumer or an admin page: the tokens of which requests must bear
 * one, or the one that is sent; and the key that signs requests. Options, sections of the settings
 * file and files of their own give them. All credentials of an owner are one set: they are read
 * together, and a change of any file replaces all of them or none. A thread of the pool looks at
 * the files each minute; a reload of the settings file reads them, too. Tokens are kept as digests,
 * and the bytes of files are wiped, except texts that are sent or published. On the engine's
 * thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_CREDENTIALS_H
#define SPOKEI_CLUSTER_CONFIG_CREDENTIALS_H

#include "cluster/config/keys.h"
#include "core/text/secret.h"
#include "timer/base.h"

#define SPOKEI_ACCESS_MAX 255u /* bytes of an id or a secret */

struct spoke_engine;
struct spokei_config_user;
struct spokei_credential_watch;

struct spokei_credentials {
	struct spokei_tokens tokens;      /* none: no token is asked for */
	char token[SPOKEI_TOKEN_MAX + 1]; /* the first, if its text is kept; else "" */
	bool random;                      /* it is one that was made here */
	bool has_token;                   /* the source says which tokens, or that there is none */
	bool has_access;                  /* ... the same for the signature */
	bool signs;                       /* requests are signed */
	size_t id_len;
	size_t secret_len;
	uint64_t window_ns;
	uint64_t access_print; /* tells the secret from others; 0: there is none */
	char id[SPOKEI_ACCESS_MAX + 1];
	char secret[SPOKEI_ACCESS_MAX + 1];
};

/* Returns whether a value of the key "token" asks for a random token, or for none. */
bool spokei_token_is_random(const char *tokens);
bool spokei_token_is_none(const char *tokens);

/* --- files of tokens and keys, read ahead of their use */

struct spokei_secret_files {
	const struct spoke_env *env;
	struct spoke_list all;
	unsigned count;
};

/* Returns whether the value of a key is the path of such a file. */
bool spokei_credentials_is_path(enum spokei_key key);

void spokei_secret_files_init(struct spokei_secret_files *files, const struct spoke_env *env);

/* Adds a path, which is copied; NULL is none. A file without memory, or beyond the 256th, is read
 * when it is needed. */
void spokei_secret_files_add(struct spokei_secret_files *files, const char *path);

/* Reads all files. On any thread, which it blocks. */
void spokei_secret_files_read(struct spokei_secret_files *files);

/* Wipes and frees them. */
void spokei_secret_files_fini(struct spokei_secret_files *files);

/* --- the set of an owner */

/* The owner sets the first members before init; the struct must not be moved. */
struct spokei_credential_set {
	bool keeps_text;  /* keeps the text of each first token */
	bool sends;       /* one token, never a random one, e.g. of a consumer */
	const char *stay; /* the event after changed files that are refused */
	/* Changed files, or those of a reload, are in use. NULL: not wanted. May be set later. */
	void (*changed)(void *arg);
	void *changed_arg;

	struct spoke_engine *engine;
	const struct spokei_config_user *user;
	const struct spokei_kept_values *code; /* the paths and the id that code sets; or NULL */
	const char *token;                     /* a list of code that was not read yet, or NULL */
	bool same_token;                       /* an option gave the tokens; its text is not kept */
	bool new_text; /* the last replace() has changed a text that is kept */
	struct spoke_list sections;
	struct spokei_credential_watch *watch; /* NULL: no file can be in use */
};

/*
 * Begins a set, of a user of the settings file. `code`: the texts of keys that options set, which
 * override the file; `token`: a list; "true" or "default": a random one; "false" or "N/A": none;
 * NULL: the file's. All but the token, which is not kept, are borrowed for the set's life. Returns
 * 0 or ENOMEM. Undo with fini, also after an error.
 */
SPOKE_MUST_USE int spokei_credentials_init(struct spokei_credential_set *set,
					   struct spoke_engine *engine,
					   const struct spokei_config_user *user,
					   const struct spokei_kept_values *code,
					   const char *token);

/* Adds the files that code names. */
void spokei_credentials_name_files(const struct spokei_credential_set *set,
				   struct spokei_secret_files *files);

/* Wipes them. A set that is all zero is fine. */
void spokei_credentials_fini(struct spokei_credential_set *set);

/* A section of the settings file with credentials. */
struct spokei_credential_section {
	enum spokei_section section;
	struct spoke_span name;
	bool has_options; /* the options of the owner lie over it */
	/* Credentials of the set that the section lies over; NULL: none. */
	const struct spokei_credentials *over;
};

/* Adds a section, and reads it. *ret lives as long as the set. Returns 0, EINVAL (a value, or a
 * file that others may read), ESYSTEM (a file cannot be read), EUNSUPPORTED (the environment has no
 * secret files), each with an event, or ENOMEM. */
SPOKE_MUST_USE int spokei_credentials_add(struct spokei_credential_set *set,
					  const struct spokei_credential_section *section,
					  const struct spokei_credentials **ret);

/* Reads all sections again, from these files, for replace(). Returns as add. */
SPOKE_MUST_USE int spokei_credentials_prepare(struct spokei_credential_set *set,
					      const struct spokei_secret_files *files);

/* Uses or drops the credentials that prepare() has read. */
void spokei_credentials_replace(struct spokei_credential_set *set, bool takes);

/* Calls `each` with the credentials of each section until it returns true. Returns whether it did.
 */
bool spokei_credentials_any(const struct spokei_credential_set *set,
			    bool (*each)(const struct spokei_credentials *credentials,
					 const void *arg),
			    const void *arg);

#endif
