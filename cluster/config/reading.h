/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a reload reads, before any of it is used: the file, the files of tokens and keys that it
 * names, and those of TLS. So a thread of the pool can read them.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_READING_H
#define SPOKEI_CLUSTER_CONFIG_READING_H

#include "cluster/config/sheet.h"
#include "core/memory/buffer.h"
#include "timer/base.h"

#include <sys/types.h>

#define SPOKEI_SECRET_FILE_MAX 4096u /* bytes of a file of tokens or keys */

struct spokei_reading {
	const struct spoke_env *env;
	const char *name;          /* of the file; borrowed */
	struct spokei_sheet sheet; /* if there is no error */
	int error;                 /* as spoke_config_load() returns */
	struct spokei_buffer told; /* sentences about the file, each with its NUL */
	struct spoke_list secrets;
	unsigned secret_count;
	struct spoke_list tls; /* see spokei_tls_hold() */
};

/* Reads and parses a file. Returns as spoke_config_load(). Any thread. */
SPOKE_MUST_USE int spokei_reading_file(const struct spoke_env *env, const char *path,
				       spoke_config_message_fn told, void *arg,
				       struct spokei_sheet *ret);

/* Reports a message about a whole file, with its name. `told` may be NULL. */
void spokei_reading_complain(const char *name, spoke_config_message_fn told, void *arg,
			     const char *what);

/* Begins a reading, to which further files may be added: those of TLS, to the list, and one of a
 * token or key, which without memory, or beyond the 256th, is read later. NULL is none. */
void spokei_reading_begin(struct spokei_reading *reading, const struct spoke_env *env,
			  const char *name);
void spokei_reading_add(struct spokei_reading *reading, const char *path);

/* Reads. On any thread, which it blocks. */
void spokei_reading_run(struct spokei_reading *reading);

/* Passes all sentences on. */
void spokei_reading_tell(const struct spokei_reading *reading, spoke_config_message_fn told,
			 void *arg);

/* Copies the content of a file that was read. Returns as spoke_files.read_secret(), and -ENODATA if
 * it is not one of these. */
ssize_t spokei_reading_secret(const struct spokei_reading *reading, const char *path, void *bytes,
			      size_t size);

/* Frees all but the sheet. The files of TLS are used, or not. */
void spokei_reading_end(struct spokei_reading *reading, bool takes);

#endif
