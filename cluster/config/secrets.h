/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at files of tokens and keys each minute, on a thread of the pool, and reports a change of
 * their content. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_SECRETS_H
#define SPOKEI_CLUSTER_CONFIG_SECRETS_H

#include <spoke/base.h>

struct spoke_engine;
struct spokei_config_user;
struct spokei_secrets;

struct spokei_secrets_up {
	/* Calls spokei_secrets_add() for each file that is in use. */
	void (*list)(void *arg, struct spokei_secrets *secrets);
	/* A file has changed, or it is not known whether one has. */
	void (*changed)(void *arg);
};

/* Begins to look at the files. `file` is the owner's use of a settings file; a reload of it leaves
 * out changes that a look finds meanwhile. `file`, `up` and `arg` are borrowed. Returns 0 or
 * SPOKE_ENOMEM. Without a timer an event says so. */
SPOKE_MUST_USE int spokei_secrets_new(struct spoke_engine *engine,
				      const struct spokei_config_user *file,
				      const struct spokei_secrets_up *up, void *arg,
				      struct spokei_secrets **ret_secrets);

/* Adds the path of a file, which is copied; NULL is none. Only from inside list(). */
void spokei_secrets_add(struct spokei_secrets *secrets, const char *path);

/* Lists the files again, because others may be in use. NULL is fine. */
void spokei_secrets_again(struct spokei_secrets *secrets);

/* NULL is fine. */
void spokei_secrets_free(struct spokei_secrets *secrets);

#endif
