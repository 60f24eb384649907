/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: locks that tell which of the processes that wrote the file live. */
#include "cluster/registry/file/parts.h"
#include "core/engine/engine.h"

/* Returns the path of the mark's lock, valid until the next call. */
static const char *path_of(struct spokei_file *file, const char *mark)
{
	memcpy(file->marked + strlen(file->path) + 1, mark, SPOKEI_ROSTER_MARK);
	return file->marked;
}

static unsigned forks_of(const struct spoke_env *env)
{
	return env->forks ? *env->forks : 0;
}

/* --- this registry's mark */

static void choose_mark(struct spokei_file *file)
{
	static const char digits[] = "0123456789abcdef";
	const struct spoke_env *env = file->engine->env;
	unsigned char dice[SPOKE_MARK_DIGITS];

	env->dice(env->ctx, dice, sizeof(dice));
	for (unsigned i = 0; i < SPOKE_MARK_DIGITS; i++)
		file->mark[i] = digits[dice[i] % 16u];
	file->mark[SPOKE_MARK_DIGITS] = '\0';
	spokei_event(file->engine, SPOKE_OK,
		     "registry file %s: published for the processes of this machine only, until "
		     "this one ends",
		     file->shown);
}

int spokei_file_mark(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;
	int error;

	if (env->files->is_locked == NULL)
		return 0;
	if (file->mark[0] == '\0')
		choose_mark(file);
	if (file->mark_fd >= 0 && env->files->is_locked(env->ctx, path_of(file, file->mark)) != 0)
		return 0;
	if (file->mark_fd >= 0)
		env->files->unlock(env->ctx, file->mark_fd);
	file->mark_fd = -1;
	error = env->files->lock(env->ctx, path_of(file, file->mark), &file->mark_fd);
	if (error)
		file->mark_fd = -1;
	else
		file->forks = forks_of(env);
	return error;
}

void spokei_file_unmark(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;

	if (file->mark_fd < 0)
		return;
	/* The lock of a forked child is its parent's. */
	if (file->forks == forks_of(env))
		env->files->drop(env->ctx, path_of(file, file->mark), file->mark_fd);
	else
		env->net->close(env->ctx, file->mark_fd);
	file->mark_fd = -1;
	file->mark[0] = '\0';
}

/* --- the marks of lines */

void spokei_file_forget(struct spokei_file *file)
{
	memset(file->answers, 0, sizeof(file->answers));
}

static struct spokei_file_answer *answer_of(struct spokei_file *file, const char *mark)
{
	unsigned place = 0;

	for (; *mark; mark++)
		place = place * 31u + (unsigned char)*mark;
	return &file->answers[place % SPOKEI_FILE_ANSWERS];
}

bool spokei_file_is_dead(void *arg, const struct spokei_roster_line *line)
{
	struct spokei_file *file = arg;
	const struct spoke_env *env = file->engine->env;
	struct spokei_file_answer *answer;
	char mark[SPOKEI_ROSTER_MARK];

	if (env->files->is_locked == NULL || !spokei_roster_mark(line->text, line->len, mark))
		return false;
	answer = answer_of(file, mark);
	if (strcmp(answer->mark, mark) != 0) {
		memcpy(answer->mark, mark, sizeof(mark));
		/* When it is not known, the process may live. */
		answer->dead = env->files->is_locked(env->ctx, path_of(file, mark)) == 0;
	}
	return answer->dead;
}
