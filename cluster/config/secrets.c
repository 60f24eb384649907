/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at files of tokens and keys. */
#include "cluster/config/secrets.h"

#include "cluster/config/config.h"
#include "cluster/config/reading.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/memory/buffer.h"
#include "core/text/secret.h"
#include "core/text/tokens.h"

#include <spoke/engine.h>

#define LOOK_NS UINT64_C(60000000000)
#define PATHS_MAX                                                                                  \
	65536u /* bytes of all paths; the files of the others are read by a reload only            \
		*/

struct spokei_secrets {
	struct spoke_engine *engine;
	const struct spokei_config_user *file; /* its config may be gone */
	const struct spokei_secrets_up *up;
	void *arg;
	struct spoke_work work;
	struct spoke_alarm alarm;
	struct spokei_buffer paths; /* each with its NUL; of the thread while it is busy */
	uint64_t print;             /* of the content that was looked at last; 0: not known */
	uint64_t seen;              /* ... by the look that is under way */
	bool busy;                  /* the work is at the pool */
	bool stale;                 /* the paths are to be listed again */
	bool dead;                  /* freed while it was busy */
};

/* --- a look, on a thread of the pool */

/* Mixes the content of a file, or the reason why it cannot be read, into the digest. */
static void mix_file(const struct spoke_env *env, const char *path,
		     unsigned char digest[SPOKEI_SHA256])
{
	unsigned char both[2 * SPOKEI_SHA256];
	char bytes[SPOKEI_SECRET_FILE_MAX];
	ssize_t got = env->files->read_secret(env->ctx, path, bytes, sizeof(bytes));

	memcpy(both, digest, SPOKEI_SHA256);
	if (got < 0)
		spokei_sha256(&got, sizeof(got), both + SPOKEI_SHA256);
	else
		spokei_sha256(bytes, (size_t)got, both + SPOKEI_SHA256);
	spokei_sha256(both, sizeof(both), digest);
	spokei_secret_wipe(bytes, sizeof(bytes));
}

static void look_run(struct spoke_work *work)
{
	struct spokei_secrets *secrets = spoke_container_of(work, struct spokei_secrets, work);
	const struct spoke_env *env = secrets->engine->env;
	const char *path = (const char *)spokei_buffer_data(&secrets->paths);
	const char *end = path + spokei_buffer_len(&secrets->paths);
	unsigned char digest[SPOKEI_SHA256] = { 0 };

	for (; path < end; path += strlen(path) + 1)
		mix_file(env, path, digest);
	secrets->seen = spokei_digest_print(digest);
}

/* --- afterwards */

static void destroy(struct spokei_secrets *secrets)
{
	const struct spoke_env *env = secrets->engine->env;

	spokei_buffer_fini(&secrets->paths);
	spokei_free(env, secrets, 1, sizeof(*secrets));
}

static void look_due(struct spoke_alarm *alarm);

static void look_later(struct spokei_secrets *secrets)
{
	if (spokei_buffer_len(&secrets->paths) == 0) {
		(void)spoke_alarm_cancel(&secrets->alarm);
		return;
	}
	if (spoke_alarm_after(secrets->engine, &secrets->alarm, LOOK_NS, look_due))
		spokei_event(secrets->engine, SPOKE_ELIMIT,
			     "token.file: no timer is left; changes of the files are not noticed");
}

static void list(struct spokei_secrets *secrets)
{
	secrets->print = 0;
	secrets->stale = false;
	spokei_buffer_truncate(&secrets->paths, 0);
	secrets->up->list(secrets->arg, secrets);
}

static void look_done(struct spoke_work *work)
{
	struct spokei_secrets *secrets = spoke_container_of(work, struct spokei_secrets, work);
	bool changed = secrets->seen != secrets->print;
	bool stale;

	secrets->busy = false;
	if (secrets->dead) {
		destroy(secrets);
		return;
	}
	if (work->status != 0)
		return;
	stale = secrets->stale;
	if (stale)
		list(secrets);
	/* A reload that has read older files would undo the change; the next look finds it. */
	if (changed && !spokei_config_reloads(secrets->file->config))
		secrets->up->changed(secrets->arg); /* lists the files again, too */
	if (!stale)
		secrets->print = secrets->seen;
	look_later(secrets);
}

static void look_due(struct spoke_alarm *alarm)
{
	struct spokei_secrets *secrets = spoke_container_of(alarm, struct spokei_secrets, alarm);
	const struct spoke_env *env = secrets->engine->env;

	if (secrets->busy || env->files == NULL || env->files->read_secret == NULL)
		return;
	secrets->work = (struct spoke_work){ .run = look_run, .done = look_done };
	secrets->busy = env->loop->offload(secrets->engine->loop, &secrets->work) == 0;
	if (!secrets->busy)
		look_later(secrets); /* the queue of the pool is full */
}

/* --- life */

void spokei_secrets_add(struct spokei_secrets *secrets, const char *path)
{
	if (path)
		(void)!spokei_buffer_append(&secrets->paths, path, strlen(path) + 1);
}

void spokei_secrets_again(struct spokei_secrets *secrets)
{
	if (secrets == NULL)
		return;
	if (secrets->busy) {
		secrets->stale = true;
		return;
	}
	list(secrets);
	look_later(secrets);
}

int spokei_secrets_new(struct spoke_engine *engine, const struct spokei_config_user *file,
		       const struct spokei_secrets_up *up, void *arg,
		       struct spokei_secrets **ret_secrets)
{
	struct spokei_secrets *secrets = spokei_alloc(engine->env, 1, sizeof(*secrets));

	if (secrets == NULL)
		return SPOKE_ENOMEM;
	secrets->engine = engine;
	secrets->file = file;
	secrets->up = up;
	secrets->arg = arg;
	spokei_buffer_init(&secrets->paths, engine->env, PATHS_MAX);
	spokei_secrets_again(secrets);
	*ret_secrets = secrets;
	return SPOKE_OK;
}

void spokei_secrets_free(struct spokei_secrets *secrets)
{
	if (secrets == NULL)
		return;
	(void)spoke_alarm_cancel(&secrets->alarm);
	secrets->dead = true;
	if (!secrets->busy)
		destroy(secrets);
}
