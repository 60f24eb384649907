/* SPDX-License-Identifier: Apache-2.0 */
/* Loads configuration files, reads values, and reloads a file while it is in use: with all files
 * that its users name, of which all are used, or none. */
#include "cluster/config/config.h"

#include "cluster/config/credentials.h"
#include "cluster/config/file.h"
#include "cluster/config/settings.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/notify.h"
#include "core/memory/buffer.h"
#include "core/text/secret.h"
#include "transport/stream/tls/tls.h"

#include <spoke/host.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define READ_FIRST 65536u /* bytes */
#define TOLD_MAX 1048576u /* bytes of all sentences */
#define RESTART "takes effect after a restart"
#define SHOWN 96u /* bytes of a value in a message, with the NUL */

/* --- loading */

/* Reports a message about a whole file, with its name. `told` may be NULL. */
static void complain(const char *name, spoke_config_message_fn told, void *arg, const char *what)
{
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX];
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

/* Reads and parses a file. Returns as spoke_config_load(). Any thread. */
static int read_file(const struct spoke_env *env, const char *path, spoke_config_message_fn told,
		     void *arg, struct spokei_config_file *ret)
{
	unsigned char *bytes = NULL;
	size_t size = READ_FIRST;
	ssize_t got = -EFBIG;
	int error;

	for (; got == -EFBIG && size <= SPOKE_CONFIG_MAX; size *= 16) {
		bytes = spokei_alloc_unset(env, size);
		if (bytes == NULL) {
			complain(path, told, arg, "out of memory while reading the file");
			return SPOKE_ENOMEM;
		}
		got = env->files->read(env->ctx, path, bytes, size);
		if (got >= 0)
			break;
		spokei_secret_wipe(bytes, size);
		spokei_free(env, bytes, 1, size);
	}
	if (got < 0) {
		complain(path, told, arg, sentence_of(got));
		return code_of(got);
	}
	error = spokei_config_file_read(env, path, (struct spoke_span){ bytes, (size_t)got }, told,
					arg, ret);
	spokei_secret_wipe(bytes, (size_t)got);
	spokei_free(env, bytes, 1, size);
	return error;
}

/* Makes a config from a file; frees the file on error. */
static int make_config(const struct spoke_env *env, const char *name,
		       struct spokei_config_file *file, struct spoke_config **ret_config)
{
	const size_t len = strlen(name);
	struct spoke_config *config = spokei_alloc(env, 1, sizeof(*config) + len + 1);

	if (config == NULL) {
		spokei_config_file_fini(file);
		return SPOKE_ENOMEM;
	}
	config->size = sizeof(*config) + len + 1;
	memcpy(config->name, name, len);
	config->env = env;
	config->file = *file;
	config->first = *file;
	spokei_list_init(&config->users);
	*ret_config = config;
	return SPOKE_OK;
}

int spoke_config_load(const struct spoke_env *env, const char *path, spoke_config_message_fn told,
		      void *arg, struct spoke_config **ret_config)
{
	struct spokei_config_file file;
	int error;

	if (path == NULL || ret_config == NULL)
		return SPOKE_EINVAL;
	if (env == NULL)
		env = spoke_host_env();
	error = read_file(env, path, told, arg, &file);
	if (error)
		return error;
	error = make_config(env, path, &file, ret_config);
	if (error)
		complain(path, told, arg, "out of memory");
	else
		(*ret_config)->is_file = true;
	return error;
}

int spoke_config_parse(const struct spoke_env *env, const char *name, struct spoke_span text,
		       spoke_config_message_fn told, void *arg, struct spoke_config **ret_config)
{
	struct spokei_config_file file;
	int error;

	if (name == NULL || ret_config == NULL || (text.data == NULL && text.len > 0))
		return SPOKE_EINVAL;
	if (env == NULL)
		env = spoke_host_env();
	error = spokei_config_file_read(env, name, text, told, arg, &file);
	if (error)
		return error;
	error = make_config(env, name, &file, ret_config);
	if (error)
		complain(name, told, arg, "out of memory");
	return error;
}

static void drop_file(struct spoke_config *config)
{
	if (config->file.text != config->first.text)
		spokei_config_file_fini(&config->file);
}

void spoke_config_free(struct spoke_config *config)
{
	const struct spoke_env *env;

	if (config == NULL)
		return;
	config->freed = true;
	while (!spokei_list_empty(&config->users))
		spokei_config_leave(spoke_container_of(spokei_list_first(&config->users),
						       struct spokei_config_user, node));
	(void)spoke_signal_cancel(&config->signal);
	if (config->busy)
		return;
	env = config->env;
	drop_file(config);
	spokei_config_file_fini(&config->first);
	spokei_free(env, config, 1, config->size);
}

/* --- users */

struct spoke_engine *spokei_config_engine(const struct spoke_config *config)
{
	if (spokei_list_empty(&config->users))
		return config->signal.engine;
	return spoke_container_of(config->users.next, struct spokei_config_user, node)->engine;
}

static int allow(const struct spoke_config *config, struct spoke_engine *engine)
{
	const struct spoke_engine *other = spokei_config_engine(config);

	if (other == NULL || other == engine)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "option config: belongs to another engine; load one config per engine");
	return SPOKE_EINVAL;
}

int spokei_config_join(struct spokei_config_user *user, struct spoke_engine *engine)
{
	int error;

	if (user->config == NULL)
		return SPOKE_OK;
	error = allow(user->config, engine);
	if (error)
		return error;
	user->engine = engine;
	spokei_list_append(&user->config->users, &user->node);
	return SPOKE_OK;
}

void spokei_config_leave(struct spokei_config_user *user)
{
	if (user->config && user->node.next)
		spokei_list_remove(&user->node);
	user->node = (struct spoke_list){ NULL, NULL };
	user->config = NULL;
}

bool spokei_config_reloads(const struct spoke_config *config)
{
	return config && config->busy;
}

struct spokei_config_news spokei_config_look(const struct spoke_config *config)
{
	struct spokei_config_news news = config->news;

	news.name = config->name;
	news.sentence = config->sentence;
	return news;
}

/* --- values that are refused */

/* Returns the entry that has set a value, or NULL. */
static const struct spokei_config_entry *entry_of(const struct spoke_config *config,
						  const struct spokei_key_values *values,
						  enum spokei_key key)
{
	const size_t count = config && values->from[key] == SPOKEI_FROM_FILE
				     ? config->file.entry_count
				     : 0;

	for (size_t i = 0; i < count; i++) {
		const struct spokei_config_entry *entry = &config->file.entries[i];

		if (entry->key == key && entry->line == values->line[key])
			return entry;
	}
	return NULL;
}

void spokei_config_refuse(struct spoke_engine *engine, const struct spoke_config *config,
			  const struct spokei_key_values *values, enum spokei_key key, int error,
			  const char *why)
{
	const struct spokei_config_entry *entry = entry_of(config, values, key);
	const char *text = spokei_keys_text(values, key);
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX];
	char value[SHOWN];

	if (entry) {
		spokei_config_file_sentence(config->name, entry, why, sentence, sizeof(sentence));
		spokei_event(engine, error, "%s", sentence);
		return;
	}
	if (spokei_key_is_text(key))
		(void)spokei_log_escape(value, sizeof(value), text, strlen(text));
	else
		spokei_key_print(key, values->of[key], false, value, sizeof(value));
	spokei_event(engine, error, "option %s=%s: %s", spokei_keys_name(key), value, why);
}

/* --- all files of a reload */

static void keep_sentence(void *arg, const char *sentence)
{
	struct spokei_config_reading *reading = arg;

	(void)!spokei_buffer_append(&reading->told, sentence, strlen(sentence) + 1);
}

/* Passes all sentences on. */
static void tell_kept(const struct spokei_config_reading *reading, spoke_config_message_fn told,
		      void *arg)
{
	const char *sentence = (const char *)spokei_buffer_data(&reading->told);
	const char *end = sentence + spokei_buffer_len(&reading->told);

	for (; sentence < end; sentence += strlen(sentence) + 1)
		told(arg, sentence);
}

static void begin_reading(struct spokei_config_reading *reading, const struct spoke_env *env,
			  const char *name)
{
	*reading = (struct spokei_config_reading){ .env = env, .name = name };
	spokei_buffer_init(&reading->told, env, TOLD_MAX);
	spokei_secret_files_init(&reading->secrets, env);
	spokei_list_init(&reading->tls);
}

/* Reads. On any thread, which it blocks. */
static void run_reading(struct spokei_config_reading *reading)
{
	reading->error = read_file(reading->env, reading->name, keep_sentence, reading,
				   &reading->file);
	if (reading->error)
		return;
	for (size_t i = 0; i < reading->file.entry_count; i++) {
		const struct spokei_config_entry *entry = &reading->file.entries[i];

		if (spokei_credentials_is_path(entry->key))
			spokei_secret_files_add(&reading->secrets, entry->text);
	}
	spokei_secret_files_read(&reading->secrets);
	spokei_tls_read_held(&reading->tls);
}

/* Frees all but the file. The files of TLS are used, or not. */
static void end_reading(struct spokei_config_reading *reading, bool takes)
{
	spokei_tls_let_go(&reading->tls, takes);
	spokei_secret_files_fini(&reading->secrets);
	spokei_buffer_fini(&reading->told);
}

/* --- differences */

/* Returns whether two entries have the same value. Either may be NULL, but not both. */
static bool is_same(const struct spokei_config_entry *a, const struct spokei_config_entry *b)
{
	if (a == NULL || b == NULL)
		return false;
	return spokei_key_is_text(a->key) ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

struct listener {
	struct spoke_config *config;
	spoke_config_message_fn told; /* may be NULL */
	void *arg;
};

/* Keeps the first message, and passes all on. */
static void hear(void *arg, const char *sentence)
{
	const struct listener *listener = arg;
	struct spoke_config *config = listener->config;

	if (config->news.sentences++ == 0)
		(void)snprintf(config->sentence, sizeof(config->sentence), "%s", sentence);
	if (listener->told && !config->freed)
		listener->told(listener->arg, sentence);
}

/* Reports the values of a file that need a restart and that differ from those of another file; or
 * that only it has (`removed`), with their line there. */
static void tell_changes(struct listener *listener, const struct spokei_config_file *file,
			 const struct spokei_config_file *other, bool removed)
{
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX];

	for (size_t i = 0; i < file->section_count; i++) {
		const struct spokei_config_section *section = &file->sections[i];
		const struct spoke_span name = { (const unsigned char *)section->name,
						 strlen(section->name) };

		for (const struct spokei_config_entry *entry = section->first; entry;
		     entry = entry->next) {
			const struct spokei_config_entry *its =
				spokei_config_file_find(other, section->kind, name, entry->key);

			if (spokei_key_row(entry->key)->live ||
			    (removed ? its != NULL : is_same(entry, its)))
				continue;
			spokei_config_file_sentence(listener->config->name, entry,
						    removed ? "is removed, which " RESTART
							    : RESTART,
						    sentence, sizeof(sentence));
			hear(listener, sentence);
		}
	}
}

/* --- users of a reload */

static struct spokei_config_user *user_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_config_user, node);
}

/* Keeps the sentence of an error that the engine's newest event explains. */
static void keep_event(struct spoke_config *config, struct spoke_engine *engine, int error)
{
	const struct spoke_event *event = engine ? spokei_events_find(engine, engine->events.last)
						 : NULL;
	const char *sentence = event && event->error == error ? event->text : spoke_strerror(error);

	config->news.sentences++;
	(void)snprintf(config->sentence, sizeof(config->sentence), "%s", sentence);
}

static int prepare(const struct spokei_config_user *user, const struct spokei_secret_files *files)
{
	int error = SPOKE_OK;

	if (user->credentials)
		error = spokei_credentials_prepare(user->credentials, files);
	return error ? error : spokei_settings_prepare(user->settings);
}

static int prepare_users(struct spoke_config *config)
{
	struct spoke_list *users = &config->users;
	int error = SPOKE_OK;

	for (struct spoke_list *node = users->next; node != users && error == SPOKE_OK;
	     node = node->next)
		error = prepare(user_at(node), &config->reading.secrets);
	return error;
}

static void take(const struct spokei_config_user *user)
{
	struct spokei_credential_set *credentials = user->credentials;

	if (credentials)
		spokei_credentials_replace(credentials, true);
	spokei_settings_take(user->settings);
	if (credentials && credentials->changed)
		credentials->changed(credentials->changed_arg);
}

static void drop(const struct spokei_config_user *user)
{
	if (user->credentials)
		spokei_credentials_replace(user->credentials, false);
	spokei_settings_drop(user->settings);
}

static void end_users(struct spoke_config *config, void (*end)(const struct spokei_config_user *))
{
	struct spoke_list *users = &config->users;

	for (struct spoke_list *node = users->next; node != users; node = node->next)
		end(user_at(node));
}

/* Live keys of the first load are not compared again, so their secrets need not stay. */
static void wipe_former(struct spoke_config *config)
{
	const struct spokei_config_file *first = &config->first;

	for (size_t i = 0; i < first->entry_count; i++) {
		const struct spokei_config_entry *entry = &first->entries[i];
		size_t at = (size_t)(entry->text - first->text);

		if (spokei_key_row(entry->key)->live && spokei_key_row(entry->key)->secret)
			spokei_secret_wipe(first->text + at, strlen(entry->text));
	}
}

/* Uses all that was read, or nothing. */
static int use(struct spoke_config *config)
{
	struct spoke_engine *engine = spokei_config_engine(config);
	struct spokei_config_file before = config->file;
	int error = spokei_tls_verdict(&config->reading.tls);

	config->file = config->reading.file;
	if (error == SPOKE_OK)
		error = prepare_users(config);
	if (error) {
		keep_event(config, engine, error);
		spokei_config_file_fini(&config->file);
		config->file = before;
		end_users(config, drop);
		return error;
	}
	end_users(config, take);
	if (before.text != config->first.text)
		spokei_config_file_fini(&before);
	else
		wipe_former(config);
	return SPOKE_OK;
}

/* --- reload */

/* Returns the level of the log that the file sets; NULL: it sets none. */
static const char *log_of(const struct spoke_config *config)
{
	struct spoke_engine_options options = { .log = NULL };

	spoke_config_engine(config, &options);
	return options.log;
}

static void set_log(struct spoke_engine *engine, const char *level, bool removed)
{
	if (level)
		(void)!spoke_engine_log(engine, level);
	else if (removed)
		spokei_log_reset(engine->log);
}

static void begin(struct spoke_config *config)
{
	struct spokei_config_reading *reading = &config->reading;
	struct spoke_list *users = &config->users;

	config->busy = true;
	begin_reading(reading, config->env, config->name);
	for (struct spoke_list *node = users->next; node != users; node = node->next) {
		const struct spokei_config_user *user = user_at(node);

		spokei_tls_hold(user->tls, &reading->tls);
		if (user->credentials)
			spokei_credentials_name_files(user->credentials, &reading->secrets);
	}
}

static void end(struct spoke_config *config, bool takes)
{
	end_reading(&config->reading, takes && !config->freed);
	config->busy = false;
	if (config->freed)
		spoke_config_free(config);
}

/* Goes on when all files have been read; end() follows. Returns as spoke_config_reload(). */
static int finish(struct spoke_config *config, spoke_config_message_fn told, void *arg)
{
	struct listener listener = { config, told, arg };
	struct spokei_config_reading *reading = &config->reading;
	const char *former = log_of(config);
	int error = reading->error;

	config->news.sentences = 0;
	*config->sentence = '\0';
	tell_kept(reading, hear, &listener);
	config->news.reloads++;
	config->news.at_ns = config->env->now(config->env->ctx);
	/* Such keys keep the values of the process's start, however often the file is
	 * reloaded. */
	if (error == SPOKE_OK) {
		tell_changes(&listener, &reading->file, &config->first, false);
		tell_changes(&listener, &config->first, &reading->file, true);
		error = use(config);
	}
	if (error == SPOKE_OK && spokei_config_engine(config))
		set_log(spokei_config_engine(config), log_of(config), former != NULL);
	config->news.error = error;
	return error;
}

int spoke_config_reload(struct spoke_config *config, spoke_config_message_fn told, void *arg)
{
	struct spoke_engine *engine = spokei_config_engine(config);
	int error = engine ? spokei_engine_check(engine) : SPOKE_OK;

	if (error)
		return error;
	if (config->busy || !config->is_file)
		return SPOKE_ESTATE;
	begin(config);
	run_reading(&config->reading);
	error = finish(config, told, arg);
	end(config, error == SPOKE_OK);
	return error;
}

/* --- signal */

/* Faults of a file are warnings, like the line that it is not used. */
static void report_line(void *arg, const char *sentence)
{
	struct spoke_config *config = arg;

	spokei_event(config->signalled, config->reading.error, "%s", sentence);
}

static void read_run(struct spoke_work *work)
{
	run_reading(&spoke_container_of(work, struct spoke_config, work)->reading);
}

/* Ends a reading that a signal has begun. Returns whether another signal has come. */
static bool conclude(struct spoke_config *config, int status)
{
	struct spoke_engine *engine = config->signalled;
	bool again;
	int error;

	/* In a child the reading belongs to a thread that does not exist here. */
	if (spokei_engine_forked(engine)) {
		config->busy = false;
		return false;
	}
	if (status != 0 || config->freed) {
		if (status == 0 && config->reading.error == SPOKE_OK)
			spokei_config_file_fini(&config->reading.file);
		if (status == 0)
			spokei_notify_reloaded(engine, true);
		end(config, false);
		return false;
	}
	error = finish(config, report_line, config);
	spokei_notify_reloaded(engine, error != SPOKE_OK);
	if (error) {
		spokei_event(engine, error,
			     "config: nothing changed; fix the file and send the signal again");
	} else {
		spokei_event(engine, SPOKE_OK, "config: reloaded");
	}
	again = config->again && !config->freed;
	end(config, error == SPOKE_OK);
	return again;
}

/* Has a thread of the pool read, or reads itself if the pool takes no work. */
static void begin_signalled(struct spoke_config *config, void (*done)(struct spoke_work *work))
{
	struct spoke_engine *engine = config->signalled;

	do {
		config->again = false;
		spokei_notify_reloading(engine);
		begin(config);
		config->work = (struct spoke_work){ .run = read_run, .done = done };
		if (engine->env->loop->offload(engine->loop, &config->work) == 0)
			return;
		run_reading(&config->reading);
	} while (conclude(config, 0));
}

static void read_done(struct spoke_work *work)
{
	struct spoke_config *config = spoke_container_of(work, struct spoke_config, work);

	if (conclude(config, work->status))
		begin_signalled(config, read_done);
}

static void signal_came(struct spoke_signal *signal)
{
	struct spoke_config *config = spoke_container_of(signal, struct spoke_config, signal);

	config->signalled = signal->engine;
	config->again = config->busy;
	if (!config->busy)
		begin_signalled(config, read_done);
}

int spoke_config_reload_on_signal(struct spoke_config *config, struct spoke_engine *engine)
{
	int error = config->is_file ? allow(config, engine) : SPOKE_ESTATE;

	if (error)
		return error;
	return spoke_signal_watch(engine, &config->signal, SIGHUP, signal_came);
}
