/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all files of a reload ahead. */
#include "cluster/config/reading.h"

#include "core/base/log.h"
#include "core/text/secret.h"
#include "transport/stream/tls/tls.h"

#include <errno.h>
#include <stdio.h>

#define READ_FIRST 65536u /* bytes */
#define SECRETS_MAX 256u  /* files; further ones are read when they are needed */
#define TOLD_MAX 1048576u /* bytes of all sentences */

/* A file of a token or key. */
struct secret {
	struct spoke_list node;
	ssize_t len; /* or a negative errno */
	size_t path_size;
	char bytes[SPOKEI_SECRET_FILE_MAX];
	char path[];
};

/* --- files of tokens and keys */

static const struct secret *find_secret(const struct spokei_reading *reading, const char *path)
{
	const struct spoke_list *all = &reading->secrets;

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct secret *secret = spoke_container_of(node, struct secret, node);

		if (strcmp(secret->path, path) == 0)
			return secret;
	}
	return NULL;
}

void spokei_reading_add(struct spokei_reading *reading, const char *path)
{
	size_t size = path ? strlen(path) + 1 : 0;
	struct secret *secret;

	if (path == NULL || reading->secret_count == SECRETS_MAX || find_secret(reading, path))
		return;
	secret = spokei_alloc_unset(reading->env, sizeof(*secret) + size);
	if (secret == NULL)
		return;
	secret->len = -ENODATA;
	secret->path_size = size;
	memcpy(secret->path, path, size);
	spokei_list_append(&reading->secrets, &secret->node);
	reading->secret_count++;
}

static void add_secrets_of(struct spokei_reading *reading, const struct spokei_part *part)
{
	for (const struct spokei_entry *entry = part->first; entry; entry = entry->next)
		if (entry->key == SPOKEI_KEY_TOKEN_FILE ||
		    entry->key == SPOKEI_KEY_ACCESS_SECRET_FILE)
			spokei_reading_add(reading, entry->text);
}

static void read_secrets(struct spokei_reading *reading)
{
	const struct spoke_env *env = reading->env;
	struct spoke_list *all = &reading->secrets;

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		struct secret *secret = spoke_container_of(node, struct secret, node);

		if (env->files && env->files->read_secret)
			secret->len = env->files->read_secret(env->ctx, secret->path, secret->bytes,
							      sizeof(secret->bytes));
	}
}

ssize_t spokei_reading_secret(const struct spokei_reading *reading, const char *path, void *bytes,
			      size_t size)
{
	const struct secret *secret = find_secret(reading, path);

	if (secret == NULL)
		return -ENODATA;
	if (secret->len > 0 && (size_t)secret->len > size)
		return -EFBIG;
	if (secret->len > 0)
		memcpy(bytes, secret->bytes, (size_t)secret->len);
	return secret->len;
}

static void drop_secrets(struct spokei_reading *reading)
{
	while (!spokei_list_empty(&reading->secrets)) {
		struct secret *secret = spoke_container_of(spokei_list_first(&reading->secrets),
							   struct secret, node);

		spokei_list_remove(&secret->node);
		spokei_secret_wipe(secret->bytes, sizeof(secret->bytes));
		spokei_free(reading->env, secret, 1, sizeof(*secret) + secret->path_size);
	}
}

/* --- the file */

void spokei_reading_complain(const char *name, spoke_config_message_fn told, void *arg,
			     const char *what)
{
	char sentence[SPOKEI_SHEET_SENTENCE_MAX];
	char shown[256];

	if (told == NULL)
		return;
	(void)spokei_log_escape_end(shown, sizeof(shown), name, strlen(name));
	(void)snprintf(sentence, sizeof(sentence), "%s: %s", shown, what);
	told(arg, sentence);
}

static const char *sentence_of(ssize_t error)
{
	if (error == -ENOENT)
		return "no such file";
	if (error == -EACCES || error == -EPERM)
		return "permission denied; check its owner and mode";
	if (error == -EFBIG)
		return "the file is too large; it has at most 1048576 bytes";
	if (error == -EINVAL)
		return "not a regular file; name a file that can be reloaded";
	return error == -EISDIR ? "is a directory; name a file" : "cannot be read";
}

static int code_of(ssize_t error)
{
	if (error == -ENOENT)
		return SPOKE_ENOENT;
	if (error == -ENOMEM)
		return SPOKE_ENOMEM;
	return error == -EFBIG ? SPOKE_ETOOLARGE : SPOKE_ESYSTEM;
}

int spokei_reading_file(const struct spoke_env *env, const char *path, spoke_config_message_fn told,
			void *arg, struct spokei_sheet *ret)
{
	unsigned char *bytes = NULL;
	size_t size = READ_FIRST;
	ssize_t got = -EFBIG;
	int error;

	for (; got == -EFBIG && size <= SPOKE_CONFIG_MAX; size *= 16) {
		bytes = spokei_alloc_unset(env, size);
		if (bytes == NULL) {
			spokei_reading_complain(path, told, arg,
						"out of memory while reading the file");
			return SPOKE_ENOMEM;
		}
		got = env->files->read(env->ctx, path, bytes, size);
		if (got >= 0)
			break;
		spokei_secret_wipe(bytes, size);
		spokei_free(env, bytes, 1, size);
	}
	if (got < 0) {
		spokei_reading_complain(path, told, arg, sentence_of(got));
		return code_of(got);
	}
	error = spokei_sheet_read(env, path, (struct spoke_span){ bytes, (size_t)got }, told, arg,
				  ret);
	spokei_secret_wipe(bytes, (size_t)got);
	spokei_free(env, bytes, 1, size);
	return error;
}

static void keep_sentence(void *arg, const char *sentence)
{
	struct spokei_reading *reading = arg;

	(void)!spokei_buffer_append(&reading->told, sentence, strlen(sentence) + 1);
}

void spokei_reading_tell(const struct spokei_reading *reading, spoke_config_message_fn told,
			 void *arg)
{
	const char *sentence = (const char *)spokei_buffer_data(&reading->told);
	const char *end = sentence + spokei_buffer_len(&reading->told);

	for (; sentence < end; sentence += strlen(sentence) + 1)
		told(arg, sentence);
}

/* --- all of it */

void spokei_reading_begin(struct spokei_reading *reading, const struct spoke_env *env,
			  const char *name)
{
	*reading = (struct spokei_reading){ .env = env, .name = name };
	spokei_buffer_init(&reading->told, env, TOLD_MAX);
	spokei_list_init(&reading->secrets);
	spokei_list_init(&reading->tls);
}

void spokei_reading_run(struct spokei_reading *reading)
{
	reading->error = spokei_reading_file(reading->env, reading->name, keep_sentence, reading,
					     &reading->sheet);
	if (reading->error)
		return;
	for (size_t i = 0; i < reading->sheet.part_count; i++)
		add_secrets_of(reading, &reading->sheet.parts[i]);
	read_secrets(reading);
	spokei_tls_read_held(&reading->tls);
}

void spokei_reading_end(struct spokei_reading *reading, bool takes)
{
	spokei_tls_let_go(&reading->tls, takes);
	drop_secrets(reading);
	spokei_buffer_fini(&reading->told);
}
