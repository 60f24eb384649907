/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokens, and keys that sign, and looks at their files. */
#include "cluster/config/credentials.h"

#include "cluster/config/config.h"
#include "cluster/config/keys.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/engine.h"
#include "core/engine/reread.h"
#include "core/text/secret.h"
#include "transport/http/response.h"
#include "transport/wire/message.h"

#include <spoke/engine.h>

#include <errno.h>
#include <stdio.h>

#define FILE_MAX 4096u   /* bytes of a file of tokens or keys */
#define FILES_MAX 256u   /* further ones are read when they are needed */
#define PATH_SHOWN 96u   /* bytes of a path in a sentence */
#define AUTH_ACCESSKEY 1 /* number of the name */

/* --- files, on any thread */

struct file {
	struct spoke_list node;
	ssize_t len; /* or a negative errno */
	size_t path_size;
	char bytes[FILE_MAX];
	char path[];
};

static struct file *file_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct file, node);
}

static const struct file *find_file(const struct spokei_secret_files *files, const char *path)
{
	const struct spoke_list *all = &files->all;

	for (struct spoke_list *node = all->next; node != all; node = node->next)
		if (strcmp(file_at(node)->path, path) == 0)
			return file_at(node);
	return NULL;
}

void spokei_secret_files_init(struct spokei_secret_files *files, const struct spoke_env *env)
{
	*files = (struct spokei_secret_files){ .env = env };
	spokei_list_init(&files->all);
}

void spokei_secret_files_add(struct spokei_secret_files *files, const char *path)
{
	size_t size = path ? strlen(path) + 1 : 0;
	struct file *file;

	if (path == NULL || files->count == FILES_MAX || find_file(files, path))
		return;
	file = spokei_alloc_unset(files->env, sizeof(*file) + size);
	if (file == NULL)
		return;
	file->len = -ENODATA;
	file->path_size = size;
	memcpy(file->path, path, size);
	spokei_list_append(&files->all, &file->node);
	files->count++;
}

void spokei_secret_files_read(struct spokei_secret_files *files)
{
	const struct spoke_env *env = files->env;
	struct spoke_list *all = &files->all;

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		struct file *file = file_at(node);

		if (env->files && env->files->read_secret)
			file->len = env->files->read_secret(env->ctx, file->path, file->bytes,
							    sizeof(file->bytes));
	}
}

/* Returns a number, not 0, that tells these contents, or the reasons why they cannot be read, from
 * others. */
static uint64_t print_files(const struct spokei_secret_files *files)
{
	const struct spoke_list *all = &files->all;
	unsigned char both[2 * SPOKEI_SHA256] = { 0 };

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct file *file = file_at(node);

		if (file->len < 0)
			spokei_sha256(&file->len, sizeof(file->len), both + SPOKEI_SHA256);
		else
			spokei_sha256(file->bytes, (size_t)file->len, both + SPOKEI_SHA256);
		spokei_sha256(both, sizeof(both), both);
	}
	return spokei_digest_print(both);
}

void spokei_secret_files_fini(struct spokei_secret_files *files)
{
	while (!spokei_list_empty(&files->all)) {
		struct file *file = file_at(spokei_list_first(&files->all));

		spokei_list_remove(&file->node);
		spokei_secret_wipe(file->bytes, sizeof(file->bytes));
		spokei_free(files->env, file, 1, sizeof(*file) + file->path_size);
	}
	files->count = 0;
}

/* Keys whose value is the path of such a file. */
static const enum spokei_key paths[] = { SPOKEI_KEY_TOKEN_FILE, SPOKEI_KEY_ADMIN_TOKEN_FILE,
					 SPOKEI_KEY_ACCESS_SECRET_FILE };

#define PATHS (sizeof(paths) / sizeof(paths[0]))

bool spokei_credentials_is_path(enum spokei_key key)
{
	for (unsigned i = 0; i < PATHS; i++)
		if (paths[i] == key)
			return true;
	return false;
}

/* --- events */

static const char both[] = "set either token or token.file";

static int refuse(struct spoke_engine *engine, int error, const char *key, const char *why)
{
	spokei_event(engine, error, "%s: %s", key, why);
	return error;
}

/* Says which file is wrong. */
static int refuse_file(struct spoke_engine *engine, int error, const char *key, const char *path,
		       const char *why)
{
	char shown[PATH_SHOWN];

	(void)spokei_log_escape_end(shown, sizeof(shown), path, strlen(path));
	spokei_event(engine, error, "%s = %s: %s", key, shown, why);
	return error;
}

/* --- one section */

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

bool spokei_token_is_random(const char *tokens)
{
	static const char *const words[] = { "true", "default", NULL };

	return is_one_of(tokens, words);
}

bool spokei_token_is_none(const char *tokens)
{
	static const char *const words[] = { "false", "0", "null", "N/A", NULL };

	return is_one_of(tokens, words);
}

struct section {
	struct spoke_list node;
	struct spokei_credentials of;
	struct spokei_credentials *next; /* while they are read; else NULL */
	enum spokei_section kind;
	bool has_options;
	const struct section *over; /* NULL: none */
	size_t name_len;
	char name[];
};

/* The sources of a section. */
struct source {
	const struct spokei_credential_set *set;
	const struct section *section;
	const struct spokei_secret_files *files; /* NULL: none was read ahead */
};

static const char *text_of_code(const struct spokei_credential_set *set, enum spokei_key key)
{
	const struct spokei_kept_value *value = spokei_keys_kept(set->code, key);

	return value ? value->to : NULL;
}

/* Returns the text of code, if the options lie over the section. */
static const char *own_text(const struct source *source, enum spokei_key key)
{
	return source->section->has_options ? text_of_code(source->set, key) : NULL;
}

static const char *text_of(const struct source *source, enum spokei_key key)
{
	const struct section *section = source->section;

	return spokei_config_text(source->set->user->config, section->kind,
				  spokei_span(section->name, section->name_len), key);
}

/* Returns the key of the file of tokens in a section. */
static enum spokei_key token_file_of(const struct section *section)
{
	return section->kind == SPOKEI_IN_ENGINE ? SPOKEI_KEY_ADMIN_TOKEN_FILE
						 : SPOKEI_KEY_TOKEN_FILE;
}

/* Returns why a file cannot be read; `text` is room for it. */
static const char *why_unread(int status, char text[SPOKEI_STATUS_TEXT])
{
	switch (status) {
	case -EPERM:
		return "its group or others may read it; chmod 600, or 640 and owner root";
	case -EFBIG:
		return "the file is longer than 4 KiB";
	default:
		return spokei_status_text(status, text);
	}
}

/* Reads a file into `bytes`, of FILE_MAX bytes, which the caller wipes; one that was read ahead is
 * not touched. */
static int read_file(const struct source *source, const char *key, const char *path, char *bytes,
		     struct spoke_span *ret)
{
	struct spoke_engine *engine = source->set->engine;
	const struct spoke_env *env = engine->env;
	const struct file *file = source->files ? find_file(source->files, path) : NULL;
	char text[SPOKEI_STATUS_TEXT];
	ssize_t got;

	if (env->files == NULL || env->files->read_secret == NULL)
		return refuse(engine, SPOKE_EUNSUPPORTED, key,
			      "the environment cannot read secret files");
	got = file ? file->len : env->files->read_secret(env->ctx, path, bytes, FILE_MAX);
	if (file && got > 0)
		memcpy(bytes, file->bytes, (size_t)got);
	if (got >= 0) {
		*ret = spokei_span(bytes, (size_t)got);
		return SPOKE_OK;
	}
	if (got == -ENOMEM)
		return SPOKE_ENOMEM;
	return refuse_file(engine, got == -EPERM ? SPOKE_EINVAL : SPOKE_ESYSTEM, key, path,
			   why_unread((int)got, text));
}

/* --- tokens */

static void keep_text(struct spoke_span first, struct spokei_credentials *ret)
{
	memcpy(ret->token, first.data, first.len);
	ret->token[first.len] = '\0';
}

static int make_random(const struct source *source, struct spokei_credentials *ret)
{
	const struct spokei_credentials *before = &source->section->of;
	struct spoke_engine *engine = source->set->engine;
	char made[SPOKEI_HTTP_NONCE];

	if (source->set->sends)
		return refuse(engine, SPOKE_EINVAL, "token",
			      "it cannot be random here: write it, or name its file");
	ret->random = true;
	if (before->random) {
		ret->tokens = before->tokens;
		memcpy(ret->token, before->token, sizeof(ret->token));
		return SPOKE_OK;
	}
	spokei_http_make_nonce(engine->env, made);
	(void)spokei_tokens_add(&ret->tokens, spokei_span(made, strlen(made)));
	/* Without the text no caller could know it. */
	keep_text(spokei_span(made, strlen(made)), ret);
	spokei_secret_wipe(made, sizeof(made));
	return SPOKE_OK;
}

/* Ends the reading of a list, or of the lines of a file. `why`: an error, or NULL. */
static const char *take_tokens(const struct source *source, const char *why,
			       struct spoke_span first, struct spokei_credentials *ret)
{
	if (why == NULL && source->set->sends && ret->tokens.count > 1)
		return "only one token is possible here";
	if (why == NULL && source->set->keeps_text)
		keep_text(first, ret);
	return why;
}

static int read_token_list(const struct source *source, const char *list,
			   struct spokei_credentials *ret)
{
	struct spoke_span first;
	const char *why = spokei_tokens_read_list(&ret->tokens, list, &first);

	why = take_tokens(source, why, first, ret);
	return why ? refuse(source->set->engine, SPOKE_EINVAL, "token", why) : SPOKE_OK;
}

static int read_token_file(const struct source *source, const char *path,
			   struct spokei_credentials *ret)
{
	const char *key = spokei_keys_name(token_file_of(source->section));
	char bytes[FILE_MAX];
	struct spoke_span lines;
	struct spoke_span first;
	const char *why;
	int error = read_file(source, key, path, bytes, &lines);

	if (error == SPOKE_OK) {
		why = spokei_tokens_read_lines(&ret->tokens, lines, &first);
		why = take_tokens(source, why, first, ret);
		if (why)
			error = refuse_file(source->set->engine, SPOKE_EINVAL, key, path, why);
	}
	spokei_secret_wipe(bytes, sizeof(bytes));
	return error;
}

/* Takes the tokens of other credentials. */
static void copy_tokens(const struct spokei_credentials *from, struct spokei_credentials *ret)
{
	ret->tokens = from->tokens;
	memcpy(ret->token, from->token, sizeof(ret->token));
	ret->random = from->random;
	ret->has_token = from->has_token;
}

static int read_token(const struct source *source, struct spokei_credentials *ret)
{
	const char *list = source->section->has_options ? source->set->token : NULL;
	const enum spokei_key file = token_file_of(source->section);
	const char *path = own_text(source, file);

	if (source->section->has_options && source->set->same_token) {
		copy_tokens(&source->section->of, ret);
		return SPOKE_OK;
	}
	if (list == NULL && path == NULL) {
		list = text_of(source, SPOKEI_KEY_TOKEN);
		path = text_of(source, file);
	}
	if (list && path)
		return refuse(source->set->engine, SPOKE_EINVAL, "token", both);
	ret->has_token = list || path;
	if (path)
		return read_token_file(source, path, ret);
	if (list == NULL || spokei_token_is_none(list))
		return SPOKE_OK;
	if (spokei_token_is_random(list))
		return make_random(source, ret);
	return read_token_list(source, list, ret);
}

/* --- keys that sign */

/* Takes the first line. */
static int take_secret(struct spoke_engine *engine, const char *path, struct spoke_span bytes,
		       struct spokei_credentials *ret)
{
	const char *text = bytes.data;
	const char *end = bytes.len ? memchr(text, '\n', bytes.len) : NULL;
	size_t len = end ? (size_t)(end - text) : bytes.len;

	while (len > 0 && (text[len - 1] == '\r' || text[len - 1] == ' '))
		len--;
	if (len == 0 || len > SPOKEI_ACCESS_MAX)
		return refuse_file(engine, SPOKE_EINVAL, "access.secret.file", path,
				   "its first line has to have 1 to 255 bytes");
	memcpy(ret->secret, text, len);
	ret->secret_len = len;
	ret->access_print = spokei_token_print(ret->secret, len);
	return SPOKE_OK;
}

static int read_secret(const struct source *source, const char *path,
		       struct spokei_credentials *ret)
{
	char bytes[FILE_MAX];
	struct spoke_span content;
	int error = read_file(source, "access.secret.file", path, bytes, &content);

	if (error == SPOKE_OK)
		error = take_secret(source->set->engine, path, content, ret);
	spokei_secret_wipe(bytes, sizeof(bytes));
	return error;
}

static int read_access(const struct source *source, struct spokei_credentials *ret)
{
	struct spoke_engine *engine = source->set->engine;
	const struct section *section = source->section;
	const char *id = own_text(source, SPOKEI_KEY_ACCESS_ID);
	const char *path = own_text(source, SPOKEI_KEY_ACCESS_SECRET_FILE);
	struct spokei_key_values values;

	spokei_keys_preset(&values);
	spokei_config_read(source->set->user->config, section->kind,
			   spokei_span(section->name, section->name_len),
			   1u << (source->set->sends ? SPOKEI_IN_CONSUMER : SPOKEI_IN_PROVIDER),
			   &values);
	ret->window_ns = values.of[SPOKEI_KEY_ACCESS_WINDOW];
	ret->signs = id || path || values.of[SPOKEI_KEY_AUTH] == AUTH_ACCESSKEY;
	ret->has_access = ret->signs || values.from[SPOKEI_KEY_AUTH] != SPOKEI_FROM_DEFAULT;
	if (!ret->signs)
		return SPOKE_OK;
	if (id == NULL)
		id = text_of(source, SPOKEI_KEY_ACCESS_ID);
	if (path == NULL)
		path = text_of(source, SPOKEI_KEY_ACCESS_SECRET_FILE);
	if (id == NULL || path == NULL)
		return refuse(engine, SPOKE_EINVAL, "auth = accesskey",
			      "set access.id and access.secret.file, too");
	ret->id_len = strlen(id);
	if (ret->id_len == 0 || ret->id_len > SPOKEI_ACCESS_MAX)
		return refuse(engine, SPOKE_EINVAL, "access.id", "use 1 to 255 bytes");
	memcpy(ret->id, id, ret->id_len);
	return read_secret(source, path, ret);
}

static void wipe(struct spokei_credentials *credentials)
{
	spokei_secret_wipe(credentials, sizeof(*credentials));
}

/* Completes a section from the credentials that it lies over. */
static void complete(const struct spokei_credentials *wide, struct spokei_credentials *ret)
{
	struct spokei_credentials narrow = *ret;

	if (!narrow.has_access)
		*ret = *wide;
	copy_tokens(narrow.has_token ? &narrow : wide, ret);
	wipe(&narrow);
}

static void drop_next(const struct spoke_env *env, struct section *section)
{
	if (section->next == NULL)
		return;
	wipe(section->next);
	spokei_free(env, section->next, 1, sizeof(*section->next));
	section->next = NULL;
}

/* Reads a section into its next credentials, over those that are next, too. After an error there
 * are none. */
static int read_section(const struct spokei_credential_set *set, struct section *section,
			const struct spokei_credentials *over,
			const struct spokei_secret_files *files)
{
	const struct source source = { .set = set, .section = section, .files = files };
	const struct spoke_env *env = set->engine->env;
	int error;

	drop_next(env, section);
	section->next = spokei_alloc(env, 1, sizeof(*section->next));
	if (section->next == NULL)
		return SPOKE_ENOMEM;
	error = read_token(&source, section->next);
	if (error == SPOKE_OK)
		error = read_access(&source, section->next);
	if (error)
		drop_next(env, section);
	else if (over)
		complete(over, section->next);
	return error;
}

/* --- all sections */

static struct section *section_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct section, node);
}

/* Returns the section of some credentials. */
static const struct section *section_of(const struct spokei_credentials *credentials)
{
	const void *section = (const char *)credentials - offsetof(struct section, of);

	return section;
}

bool spokei_credentials_any(const struct spokei_credential_set *set,
			    bool (*each)(const struct spokei_credentials *credentials,
					 const void *arg),
			    const void *arg)
{
	const struct spoke_list *all = &set->sections;

	for (struct spoke_list *node = all->next; node != all; node = node->next)
		if (each(&section_at(node)->of, arg))
			return true;
	return false;
}

static void watch_again(struct spokei_credential_set *set);

static bool replace(const struct spoke_env *env, struct section *section, bool takes)
{
	bool changed;

	if (section->next == NULL)
		return false;
	changed = takes && strcmp(section->of.token, section->next->token) != 0;
	if (takes)
		section->of = *section->next;
	drop_next(env, section);
	return changed;
}

int spokei_credentials_add(struct spokei_credential_set *set,
			   const struct spokei_credential_section *of,
			   const struct spokei_credentials **ret)
{
	const struct spoke_env *env = set->engine->env;
	struct section *added = spokei_alloc(env, 1, sizeof(*added) + of->name.len);
	int error;

	if (added == NULL)
		return SPOKE_ENOMEM;
	added->kind = of->section;
	added->has_options = of->has_options;
	if (of->over)
		added->over = section_of(of->over);
	added->name_len = of->name.len;
	if (of->name.len)
		memcpy(added->name, of->name.data, of->name.len);
	error = read_section(set, added, of->over, NULL);
	if (error) {
		spokei_free(env, added, 1, sizeof(*added) + added->name_len);
		return error;
	}
	(void)replace(env, added, true);
	if (of->has_options) {
		set->same_token = set->token != NULL;
		set->token = NULL;
	}
	spokei_list_append(&set->sections, &added->node);
	watch_again(set);
	*ret = &added->of;
	return SPOKE_OK;
}

int spokei_credentials_prepare(struct spokei_credential_set *set,
			       const struct spokei_secret_files *files)
{
	struct spoke_list *all = &set->sections;
	int error = SPOKE_OK;

	for (struct spoke_list *node = all->next; node != all && error == SPOKE_OK;
	     node = node->next) {
		struct section *section = section_at(node);

		error = read_section(set, section, section->over ? section->over->next : NULL,
				     files);
	}
	return error;
}

void spokei_credentials_replace(struct spokei_credential_set *set, bool takes)
{
	struct spoke_list *all = &set->sections;

	set->new_text = false;
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		set->new_text |= replace(set->engine->env, section_at(node), takes);
	watch_again(set);
}

/* --- looks at the files */

struct spokei_credential_watch {
	const struct spoke_env *env;
	struct spokei_credential_set *set; /* not used after its end */
	struct spokei_reread reread;
	struct spokei_secret_files files; /* of the look that is under way */
	uint64_t seen;                    /* ... their print */
	uint64_t print;                   /* of the content in use; 0: not known */
};

void spokei_credentials_name_files(const struct spokei_credential_set *set,
				   struct spokei_secret_files *files)
{
	for (unsigned i = 0; i < PATHS; i++)
		spokei_secret_files_add(files, text_of_code(set, paths[i]));
}

/* Adds the files that are in use to `files`, unless it is NULL. Returns how often one is named. */
static unsigned list_files(const struct spokei_credential_set *set,
			   struct spokei_secret_files *files)
{
	const struct spoke_list *all = &set->sections;
	unsigned count = 0;

	if (files)
		spokei_credentials_name_files(set, files);
	for (unsigned i = 0; i < PATHS; i++) {
		count += text_of_code(set, paths[i]) != NULL;
		for (struct spoke_list *node = all->next; node != all; node = node->next) {
			const struct source source = { .set = set, .section = section_at(node) };
			const char *path = text_of(&source, paths[i]);

			count += path != NULL;
			if (files)
				spokei_secret_files_add(files, path);
		}
	}
	return count;
}

static struct spokei_credential_watch *watch_of(struct spokei_reread *reread)
{
	return spoke_container_of(reread, struct spokei_credential_watch, reread);
}

static bool begin_look(struct spokei_reread *reread)
{
	struct spokei_credential_watch *watch = watch_of(reread);

	return list_files(watch->set, &watch->files) > 0;
}

static void read_look(struct spokei_reread *reread)
{
	struct spokei_credential_watch *watch = watch_of(reread);

	spokei_secret_files_read(&watch->files);
	watch->seen = print_files(&watch->files);
}

/* Uses the files that were read, if all are good. */
static void use_look(struct spokei_credential_watch *watch)
{
	struct spokei_credential_set *set = watch->set;
	int error = spokei_credentials_prepare(set, &watch->files);

	spokei_credentials_replace(set, error == SPOKE_OK);
	watch->print = watch->seen;
	if (error)
		spokei_event(set->engine, error, "%s", set->stay);
	else if (set->changed)
		set->changed(set->changed_arg);
}

static uint64_t end_look(struct spokei_reread *reread, bool is_good)
{
	struct spokei_credential_watch *watch = watch_of(reread);

	/* A reload that has read older files would undo the change; the next look finds it. */
	if (is_good && watch->seen != watch->print &&
	    !spokei_config_reloads(watch->set->user->config))
		use_look(watch);
	spokei_secret_files_fini(&watch->files);
	return SPOKEI_REREAD_NS;
}

static void free_watch(struct spokei_reread *reread)
{
	struct spokei_credential_watch *watch = watch_of(reread);

	spokei_secret_files_fini(&watch->files);
	spokei_free(watch->env, watch, 1, sizeof(*watch));
}

static const struct spokei_reread_up reread_up = {
	.key = "token.file",
	.begin = begin_look,
	.read = read_look,
	.end = end_look,
	.free = free_watch,
};

/* Looks at the files that are in use now. Their content is not known. */
static void watch_again(struct spokei_credential_set *set)
{
	struct spokei_credential_watch *watch = set->watch;

	if (watch == NULL)
		return;
	watch->print = 0;
	spokei_reread_overtake(&watch->reread);
	if (list_files(set, NULL) > 0)
		spokei_reread_later(&watch->reread, SPOKEI_REREAD_NS);
	else
		(void)spoke_alarm_cancel(&watch->reread.alarm);
}

static int make_watch(struct spokei_credential_set *set)
{
	const struct spoke_env *env = set->engine->env;
	struct spokei_credential_watch *watch;

	if (set->user->config == NULL && list_files(set, NULL) == 0)
		return SPOKE_OK;
	watch = spokei_alloc(env, 1, sizeof(*watch));
	if (watch == NULL)
		return SPOKE_ENOMEM;
	watch->env = env;
	watch->set = set;
	watch->reread = (struct spokei_reread){ .up = &reread_up, .engine = set->engine };
	spokei_secret_files_init(&watch->files, env);
	set->watch = watch;
	return SPOKE_OK;
}

static void end_watch(struct spokei_credential_watch *watch)
{
	if (watch && spokei_reread_end(&watch->reread))
		free_watch(&watch->reread);
}

/* --- life */

int spokei_credentials_init(struct spokei_credential_set *set, struct spoke_engine *engine,
			    const struct spokei_config_user *user,
			    const struct spokei_kept_values *code, const char *token)
{
	set->engine = engine;
	set->user = user;
	set->code = code;
	set->token = token;
	spokei_list_init(&set->sections);
	return make_watch(set);
}

void spokei_credentials_fini(struct spokei_credential_set *set)
{
	const struct spoke_env *env;

	if (set->engine == NULL)
		return;
	env = set->engine->env;
	end_watch(set->watch);
	set->watch = NULL;
	while (!spokei_list_empty(&set->sections)) {
		struct section *section = section_at(spokei_list_first(&set->sections));

		spokei_list_remove(&section->node);
		wipe(&section->of);
		drop_next(env, section);
		spokei_free(env, section, 1, sizeof(*section) + section->name_len);
	}
}
