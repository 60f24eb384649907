/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in a file, which processes of one machine share and people may edit:
 * "file:///run/spoke/providers". It has one URL per line, as for a consumer, and one line per
 * address and service. "#" begins a comment; blanks around a line and empty lines are ignored. A
 * watch of its directory reports changes; the file is also read every 10 s, or every second while
 * there is no watch or no file. A missing file lists no provider; an unreadable one changes
 * nothing.
 *
 * To publish or withdraw, a process locks the file and replaces it as a whole. A lock that
 * another process holds is requested again every 20 ms, for 2 s. A published line is lost when no
 * line of the same provider is left.
 *
 * Each registry that publishes holds a lock of its own beside the file. The lock's name (the
 * "mark") is in its lines, as the parameter "lock". The kernel releases the lock when the process
 * ends, also when it is killed. Readers leave out lines whose lock is free; a process that may
 * write the file removes them, under the file's lock. A mark is locked before its first line is
 * written, so a line whose lock is free is never that of a new process. Lines without a mark come
 * from people or from an older spoke: they stay until the same provider is published again or a
 * person removes them. A child that was forked without an exec keeps its parent's lock, and so its
 * lines.
 *
 * On the engine's thread, which reads the file and takes locks there. A thread of the pool writes
 * the file, because a write waits until the disk has it. The lock of the file is held until then,
 * so no other write of it begins. A closed registry is freed after its write.
 */
#include "cluster/registry/registries.h"

#include "cluster/registry/urls.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS UINT64_C(10000000000)      /* between readings, with a watch and a file */
#define LOOK_OFTEN_NS UINT64_C(1000000000) /* without */
#define SETTLE_NS UINT64_C(20000000)       /* for the next piece of a file that is being written */
#define LOCK_NS UINT64_C(20000000)
#define LOCK_TRIES 100u
#define IDLE_NS UINT64_C(3600000000000)
#define TEXT_MAX 1048576u             /* bytes of the file */
#define MARK (SPOKE_MARK_DIGITS + 1u) /* bytes of a mark with the NUL */
#define SHOWN 128u                    /* bytes of a path in a message */
#define ANSWERS 64u                   /* marks whose state is remembered within one reading */
#define BAD_LINES_TOLD 8u

/* --- the text */

struct line {
	size_t start;     /* where the line begins */
	size_t next;      /* where the next line begins */
	const char *text; /* contents, without a NUL */
	size_t len;       /* 0: empty */
	unsigned number;  /* from 1 on */
};

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Goes to the next line; to the first from an all-zero one. Returns false at the end. */
static bool next_line(const char *text, size_t len, struct line *line)
{
	const char *end;
	size_t from = line->next;
	size_t to;

	if (from >= len)
		return false;
	end = memchr(text + from, '\n', len - from);
	to = end ? (size_t)(end - text) : len;
	line->start = from;
	line->next = end ? to + 1 : to;
	line->number++;
	while (from < to && is_blank(text[from]))
		from++;
	while (from < to && is_blank(text[to - 1]))
		to--;
	line->text = text + from;
	line->len = from < to && text[from] == '#' ? 0 : to - from;
	return true;
}

/* Returns the service of a provider's URL; "": none. */
static const char *service_of(const struct spoke_url *url)
{
	const char *service = spokei_urls_value(url, "interface");

	return *service ? service : url->path;
}

/* Returns whether the URL is a provider of the service. */
static bool provides(const struct spoke_url *url, const char *service)
{
	return strcmp(service_of(url), service) == 0 || strcmp(url->path, service) == 0;
}

/* Returns whether two URLs have the same address, service, group and version. */
static bool is_same_provider(const struct spoke_url *one, const struct spoke_url *other)
{
	return spokei_urls_same(one, other) && strcmp(service_of(one), service_of(other)) == 0;
}

/* --- marks */

#define KEY "lock="
#define KEY_LEN (sizeof(KEY) - 1)

static bool is_mark(const char *text, size_t len)
{
	size_t digits = 0;

	while (digits < len && ((text[digits] >= '0' && text[digits] <= '9') ||
				(text[digits] >= 'a' && text[digits] <= 'f')))
		digits++;
	return digits == len && len == SPOKE_MARK_DIGITS;
}

/* Returns where the parameter with the mark begins, or NULL. */
static const char *find_mark(const char *text, size_t len)
{
	const char *end = text + len;
	const char *at = len > 0 ? memchr(text, '?', len) : NULL;

	while (at && ++at < end) {
		const char *next = memchr(at, '&', (size_t)(end - at));
		size_t size = (size_t)((next ? next : end) - at);

		if (size > KEY_LEN && memcmp(at, KEY, KEY_LEN) == 0 &&
		    is_mark(at + KEY_LEN, size - KEY_LEN))
			return at;
		at = next;
	}
	return NULL;
}

/* Copies the mark of a line's text, of `len` bytes. Returns false if it has none. */
static bool read_mark(const char *text, size_t len, char ret_mark[MARK])
{
	const char *at = find_mark(text, len);

	if (at == NULL)
		return false;
	memcpy(ret_mark, at + KEY_LEN, SPOKE_MARK_DIGITS);
	ret_mark[SPOKE_MARK_DIGITS] = '\0';
	return true;
}

/* Appends the line's text without its mark. */
static int put_unmarked(const char *text, size_t len, struct spokei_buffer *out)
{
	const char *at = find_mark(text, len);
	size_t before = at ? (size_t)(at - text) : len;
	size_t after = at ? before + KEY_LEN + SPOKE_MARK_DIGITS : len;
	int error;

	/* One separator goes with it: the one after it, or else the one before it. */
	if (after < len)
		after++;
	else if (at)
		before--;
	error = spokei_buffer_append(out, text, before);
	return error || after == len ? error : spokei_buffer_append(out, text + after, len - after);
}

/* Appends a line of the text as it is, but ended. */
static int keep_line(struct spokei_buffer *out, const char *text, const struct line *line)
{
	bool ended = text[line->next - 1] == '\n';
	int error = spokei_buffer_append(out, text + line->start, line->next - line->start);

	return error || ended ? error : spokei_buffer_append(out, "\n", 1);
}

/* --- the registry's memory */

/* Whether the process of a mark is dead. */
struct answer {
	char mark[MARK]; /* "": none */
	bool dead;
};

struct file {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *up_arg;
	struct spoke_list entries; /* in the order of the requests */
	struct spokei_task work;   /* on the soon queue: work to do */
	/* Always armed, so that arming cannot fail: for the next of these times. */
	struct spoke_alarm clock;
	uint64_t look_ns;   /* next read in any case, while `looking` */
	uint64_t settle_ns; /* next read after a change; UINT64_MAX: none */
	uint64_t lock_ns;   /* next attempt to lock; UINT64_MAX: none */
	unsigned tries;     /* consecutive attempts to lock, or to reach the pool */
	struct {
		struct spoke_work work;
		struct spokei_buffer text;
		int lock_fd;    /* of the file */
		unsigned forks; /* generation of the process that began it */
		int status;     /* 0 or a negative errno */
		unsigned dead;  /* lines of dead processes that are left out */
		bool sweeps;    /* files of dead processes are to be removed afterwards */
		bool busy;      /* at the pool, or on its way back */
	} write;
	bool closed; /* ... and to be freed after the write */
	struct spoke_watch watch;
	bool watching;
	bool looking;              /* an entry depends on the file's contents */
	bool found;                /* the file existed when it was last read */
	bool asked;                /* a new entry needs the text */
	bool known;                /* all contents have been reported */
	bool left_out;             /* lines of dead processes were left out of the lists */
	bool clear;                /* ... and shall be removed from the file */
	int complained;            /* this error was logged */
	int unwatched;             /* negative errno of its watch; 0: it is watched */
	struct spokei_buffer text; /* text of the file when it was last read */
	char mark[MARK];           /* of this registry; "": none */
	int mark_fd;               /* its lock; -1: not held */
	unsigned forks;            /* generation of the process that took it */
	struct answer answers[ANSWERS];
	char shown[SHOWN];
	size_t size;  /* of this struct with its texts */
	char *marked; /* path of a mark's lock, after the path: it, a dot, room for a mark */
	char path[];
};

/* An entry. Its struct is zero before it is wanted. */
struct file_entry {
	struct spoke_registry_entry of;
	struct spoke_list node; /* next == NULL: not in the list */
	enum {
		IDLE,  /* it has failed or was lost */
		ASKED, /* the file shall be changed, or read, for it */
		SENT,  /* the change is being written */
		HELD,  /* its line is in the file; or its list was reported */
	} state;
	bool wanted;
	bool written;               /* its line was written, and is not known to be gone */
	bool sent;                  /* the write under way has its change */
	bool adds;                  /* ... its line; else it removes the line */
	bool seen;                  /* its line is in the text that is being read, or written */
	struct spokei_buffer found; /* URLs of the next list */
	struct spokei_buffer last;  /* ... of the last one */
	size_t found_count;
	size_t last_count;
};

static struct file_entry *entry_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct file_entry, node);
}

/* Returns whether the entry depends on the contents of the file. */
static bool is_watched(const struct file_entry *entry)
{
	return entry->of.url ? entry->state == HELD : entry->state != IDLE;
}

/* Returns whether the file is to be changed for the entry. */
static bool changes(const struct file_entry *entry)
{
	return entry->of.url && entry->state == ASKED;
}

/* Returns whether a line of the entry is in the file, or shall be. */
static bool has_line(const struct file_entry *entry)
{
	return entry->of.url && entry->wanted && entry->state != IDLE;
}

/* Returns whether an entry has this quality. */
static bool has_any(struct file *file, bool (*quality)(const struct file_entry *entry))
{
	struct spoke_list *at = file->entries.next;

	while (at != &file->entries && !quality(entry_at(at)))
		at = at->next;
	return at != &file->entries;
}

/* Frees the resources of the entry. */
static void release(struct file_entry *entry)
{
	spokei_list_remove(&entry->node);
	spokei_buffer_fini(&entry->found);
	spokei_buffer_fini(&entry->last);
}

/* Reports the outcome of a request, or a loss. */
static void settle(struct file *file, struct file_entry *entry, int error)
{
	entry->state = error ? IDLE : HELD;
	entry->written = error ? entry->written : entry->wanted;
	entry->seen = false;
	if (!error && !entry->wanted)
		release(entry);
	file->up->state(file->up_arg, &entry->of, error);
}

/* --- the file */

static const char *advice(int status)
{
	switch (status) {
	case -EFBIG:
		return "; at most 1048576 bytes";
	case -ENOENT:
	case -ENOTDIR:
		return "; create its directory";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "; allow this process to read and write it, and to write to its directory";
	default:
		return "";
	}
}

/* Logs an error of the file, negative errno `status`, if it is a new one. Returns the error. */
static int complain(struct file *file, const char *what, int status)
{
	int error = status == -ENOMEM  ? SPOKE_ENOMEM
		    : status == -EFBIG ? SPOKE_ETOOLARGE
				       : SPOKE_ESYSTEM;
	char text[SPOKEI_STATUS_TEXT];

	if (file->complained == status)
		return error;
	file->complained = status;
	spokei_event(file->engine, error, "registry file %s cannot be %s: %s%s", file->shown, what,
		     spokei_status_text(status, text), advice(status));
	return error;
}

static int read_file(struct file *file, struct spokei_buffer *out)
{
	const struct spoke_env *env = file->engine->env;
	/* One block of the maximum size; only the pages in use are touched. */
	char *bytes = spokei_alloc_unset(env, TEXT_MAX);
	ssize_t got;
	int error;

	if (bytes == NULL)
		return complain(file, "read", -ENOMEM);
	got = env->files->read(env->ctx, file->path, bytes, TEXT_MAX);
	file->found = got != -ENOENT;
	if (got == -ENOENT)
		got = 0;
	if (got >= 0)
		error = spokei_buffer_append(out, bytes, (size_t)got);
	else
		error = complain(file, "read", (int)got);
	spokei_free(env, bytes, TEXT_MAX, 1);
	/* A file that is missing may come, but not without its folder. */
	if (!file->found && (file->unwatched == -ENOENT || file->unwatched == -ENOTDIR))
		(void)complain(file, "read", file->unwatched);
	else if (!error)
		file->complained = 0;
	return error;
}

static void watch_ready(struct spoke_watch *watch, unsigned io)
{
	struct file *file = spoke_container_of(watch, struct file, watch);
	const struct spoke_env *env = file->engine->env;

	(void)io;
	if (!env->files->changed(env->ctx, watch->fd))
		return;
	/* A process that writes it piece by piece gets time to continue. */
	if (file->settle_ns == UINT64_MAX)
		file->settle_ns = env->now(env->ctx) + SETTLE_NS;
	spokei_run_soon(file->engine, &file->work);
}

static void unwatch(struct file *file)
{
	const struct spoke_env *env = file->engine->env;

	if (!file->watching)
		return;
	env->loop->watch(file->engine->loop, &file->watch, 0);
	env->files->unwatch(env->ctx, file->watch.fd);
	file->watching = false;
}

static void watch_file(struct file *file)
{
	const struct spoke_env *env = file->engine->env;
	int fd;

	unwatch(file);
	file->unwatched = env->files->watch(env->ctx, file->path, &fd);
	if (file->unwatched != 0)
		return;
	file->watch = (struct spoke_watch){ .ready = watch_ready, .fd = fd };
	file->watching = true;
	env->loop->watch(file->engine->loop, &file->watch, SPOKE_IO_READ);
}

/* --- marks: locks that tell which of the processes that wrote the file live */

/* Returns the path of the mark's lock, valid until the next call. */
static const char *path_of(struct file *file, const char *mark)
{
	memcpy(file->marked + strlen(file->path) + 1, mark, MARK);
	return file->marked;
}

static unsigned forks_of(const struct spoke_env *env)
{
	return env->forks ? *env->forks : 0;
}

/* --- this registry's mark */

static void choose_mark(struct file *file)
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

static int take_mark(struct file *file)
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

static void give_mark(struct file *file)
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

static void forget_answers(struct file *file)
{
	memset(file->answers, 0, sizeof(file->answers));
}

static struct answer *answer_of(struct file *file, const char *mark)
{
	unsigned place = 0;

	for (; *mark; mark++)
		place = place * 31u + (unsigned char)*mark;
	return &file->answers[place % ANSWERS];
}

static bool is_dead(struct file *file, const struct line *line)
{
	const struct spoke_env *env = file->engine->env;
	struct answer *answer;
	char mark[MARK];

	if (env->files->is_locked == NULL || !read_mark(line->text, line->len, mark))
		return false;
	answer = answer_of(file, mark);
	if (strcmp(answer->mark, mark) != 0) {
		memcpy(answer->mark, mark, sizeof(mark));
		/* When it is not known, the process may live. */
		answer->dead = env->files->is_locked(env->ctx, path_of(file, mark)) == 0;
	}
	return answer->dead;
}

/* --- contents */

static void complain_of_line(struct file *file, const struct line *line, int error,
			     const struct spoke_url_error *why, unsigned bad)
{
	if (bad > BAD_LINES_TOLD + 1)
		return;
	spokei_event(file->engine, error, "registry file %s, line %u, byte %zu: %s; %s",
		     file->shown, line->number, why->at, why->text,
		     bad <= BAD_LINES_TOLD ? "ignored"
					   : "ignored, like all invalid lines after it");
}

/* Adds a provider to the next list of a subscription. */
static int list_provider(struct file_entry *entry, const struct spoke_url *url,
			 const struct line *line)
{
	const char *service = service_of(url);
	int error;

	if (spokei_urls_are_services(entry->of.service)) {
		if (*service == '\0')
			return SPOKE_OK;
		error = spokei_urls_put_service(&entry->found, service);
	} else {
		if (!provides(url, entry->of.service))
			return SPOKE_OK;
		error = put_unmarked(line->text, line->len, &entry->found);
		if (!error)
			error = spokei_buffer_append(&entry->found, "", 1);
	}
	entry->found_count++;
	return error;
}

static int note_provider(struct file_entry *entry, const struct spoke_url *url,
			 const struct line *line)
{
	if (!is_watched(entry))
		return SPOKE_OK;
	if (entry->of.url == NULL)
		return list_provider(entry, url, line);
	entry->seen = entry->seen || is_same_provider(url, entry->of.url);
	return SPOKE_OK;
}

/* Reads all lines once, for all entries. */
static int read_lines(struct file *file, bool logs)
{
	const char *text = (const char *)spokei_buffer_data(&file->text);
	struct line line = { 0 };
	struct spoke_list *all = &file->entries;
	unsigned bad = 0;
	int error = SPOKE_OK;

	while (!error && next_line(text, spokei_buffer_len(&file->text), &line)) {
		struct spoke_url_error why;
		struct spoke_url url;

		if (line.len == 0)
			continue;
		if (is_dead(file, &line)) {
			file->left_out = true;
			continue;
		}
		error = spoke_url_parse(file->engine->env, line.text, line.len, &url, &why);
		if (error == SPOKE_ENOMEM)
			break;
		if (error) {
			if (logs)
				complain_of_line(file, &line, error, &why, ++bad);
			error = SPOKE_OK;
			continue;
		}
		for (struct spoke_list *at = all->next; !error && at != all; at = at->next)
			error = note_provider(entry_at(at), &url, &line);
		spoke_url_fini(&url);
	}
	return error;
}

static bool is_same(const struct spokei_buffer *one, const struct spokei_buffer *other)
{
	size_t len = spokei_buffer_len(one);

	return len == spokei_buffer_len(other) &&
	       (len == 0 || memcmp(spokei_buffer_data(one), spokei_buffer_data(other), len) == 0);
}

/* Reports the list of a subscription if it differs from the last one. */
static void report_list(struct file *file, struct file_entry *entry)
{
	const struct spokei_buffer before = entry->last;

	if (entry->state == HELD && entry->found_count == entry->last_count &&
	    is_same(&entry->found, &entry->last))
		return;
	entry->last = entry->found;
	entry->last_count = entry->found_count;
	entry->found = before;
	if (entry->state == ASKED)
		settle(file, entry, SPOKE_OK);
	file->up->list(file->up_arg, &entry->of, (const char *)spokei_buffer_data(&entry->last),
		       entry->last_count);
}

/* Reports the findings for an entry. */
static void conclude(struct file *file, struct file_entry *entry, int error)
{
	if (is_watched(entry) && entry->of.url == NULL) {
		if (error == SPOKE_OK)
			report_list(file, entry);
		else if (entry->state == ASKED)
			settle(file, entry, error);
	} else if (is_watched(entry) && error == SPOKE_OK && !entry->seen) {
		entry->written = false;
		settle(file, entry, SPOKE_ENOENT);
	}
	spokei_buffer_fini(&entry->found);
	entry->found_count = 0;
	entry->seen = false;
}

static void conclude_all(struct file *file, int error)
{
	file->asked = false;
	file->known = error == SPOKE_OK;
	for (struct spoke_list *at = file->entries.next, *next; at != &file->entries; at = next) {
		next = at->next;
		conclude(file, entry_at(at), error);
	}
}

static bool has_dead(struct file *file)
{
	const char *text = (const char *)spokei_buffer_data(&file->text);
	struct line line = { 0 };
	bool dead = false;

	while (!dead && next_line(text, spokei_buffer_len(&file->text), &line))
		dead = is_dead(file, &line);
	return dead;
}

/* Reports the contents of a text, and takes over its memory. */
static void take_text(struct file *file, struct spokei_buffer *text)
{
	bool same = file->known && is_same(text, &file->text);

	forget_answers(file);
	if (same && !file->asked && !file->left_out && !has_dead(file)) {
		spokei_buffer_fini(text);
		return;
	}
	spokei_buffer_fini(&file->text);
	file->text = *text;
	spokei_buffer_init(text, file->engine->env, TEXT_MAX);
	file->left_out = false;
	conclude_all(file, read_lines(file, !same));
}

/* Reads the file and reports its contents. */
static void look(struct file *file)
{
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, file->engine->env, TEXT_MAX);
	error = read_file(file, &text);
	if (!error) {
		take_text(file, &text);
		file->clear = file->left_out;
		return;
	}
	spokei_buffer_fini(&text);
	conclude_all(file, error);
}

/* --- changes of the locked file */

/* Ends all changes that entries wait for. */
static void settle_all(struct file *file, int error)
{
	for (struct spoke_list *at = file->entries.next, *next; at != &file->entries; at = next) {
		next = at->next;
		if (changes(entry_at(at)))
			settle(file, entry_at(at), error);
	}
}

static void complain_full(struct file *file)
{
	spokei_event(file->engine, SPOKE_ETOOLARGE, "registry file %s is full; at most %u bytes",
		     file->shown, TEXT_MAX);
}

/* Returns the entry that decides about the lines of a provider: the newest one that publishes it,
 * else one that removes it. NULL: the lines stay as they are. */
static struct file_entry *decider_of(struct file *file, const struct spoke_url *url)
{
	struct file_entry *decider = NULL;

	for (struct spoke_list *at = file->entries.next; at != &file->entries; at = at->next) {
		struct file_entry *entry = entry_at(at);

		if (entry->of.url && is_same_provider(entry->of.url, url) &&
		    (has_line(entry) || (decider == NULL && changes(entry))))
			decider = entry;
	}
	return decider && changes(decider) ? decider : NULL;
}

/* Appends the line of an entry. A URL of the greatest length has no room for a mark. */
static int put_line(const struct file *file, struct file_entry *entry, struct spokei_buffer *out)
{
	const size_t before = spokei_buffer_len(out);
	const char *text = entry->of.text;
	size_t len = strlen(text);
	int error = spokei_buffer_append(out, text, len);

	if (!error && file->mark_fd >= 0 && len + 1 + KEY_LEN + SPOKE_MARK_DIGITS <= SPOKE_URL_MAX)
		error = spokei_buffer_append(out, strchr(text, '?') ? "&" KEY : "?" KEY,
					     1 + KEY_LEN);
	if (!error && spokei_buffer_len(out) > before + len)
		error = spokei_buffer_append(out, file->mark, SPOKE_MARK_DIGITS);
	if (!error)
		error = spokei_buffer_append(out, "\n", 1);
	if (error)
		spokei_buffer_truncate(out, before);
	entry->seen = !error;
	return error;
}

/* Appends a line as it is, or as its decider wants it. */
static int edit_line(struct file *file, const char *text, const struct line *line,
		     struct spokei_buffer *out)
{
	struct file_entry *decider = NULL;
	struct spoke_url url;
	int error = SPOKE_ESYNTAX;

	if (line->len > 0)
		error = spoke_url_parse(file->engine->env, line->text, line->len, &url, NULL);
	if (error == SPOKE_ENOMEM)
		return error;
	if (error == SPOKE_OK) {
		decider = decider_of(file, &url);
		spoke_url_fini(&url);
	}
	if (decider == NULL)
		return keep_line(out, text, line);
	if (!decider->wanted || decider->seen)
		return SPOKE_OK;
	error = put_line(file, decider, out);
	/* It fits at the end even less, where it fails. */
	return error == SPOKE_ETOOLARGE ? keep_line(out, text, line) : error;
}

/* Appends the lines of providers that have none yet. One for which there is no room fails. */
static int add_lines(struct file *file, struct spokei_buffer *out)
{
	int error = SPOKE_OK;

	for (struct spoke_list *at = file->entries.next, *next; at != &file->entries; at = next) {
		struct file_entry *entry = entry_at(at);

		next = at->next;
		if (!error && changes(entry) && entry->wanted && !entry->seen &&
		    decider_of(file, entry->of.url) == entry)
			error = put_line(file, entry, out);
		if (error == SPOKE_ETOOLARGE) {
			complain_full(file);
			settle(file, entry, error);
			error = SPOKE_OK;
		}
	}
	return error;
}

/* Makes the new text for all entries that wait for it, without the lines of dead processes, which
 * it counts. */
static int edit_text(struct file *file, const struct spokei_buffer *before,
		     struct spokei_buffer *out, unsigned *ret_dead)
{
	const char *text = (const char *)spokei_buffer_data(before);
	struct line line = { 0 };
	int error = SPOKE_OK;

	while (!error && next_line(text, spokei_buffer_len(before), &line)) {
		if (is_dead(file, &line))
			++*ret_dead;
		else
			error = edit_line(file, text, &line, out);
	}
	if (error == SPOKE_ETOOLARGE)
		complain_full(file);
	return error ? error : add_lines(file, out);
}

/* Makes the new text of the locked file. Returns whether it differs in *ret_changed. */
static int prepare_text(struct file *file, bool *ret_changed)
{
	struct spokei_buffer before;
	int error;

	spokei_buffer_init(&before, file->engine->env, TEXT_MAX);
	/* Those of a text that was not written. */
	for (struct spoke_list *at = file->entries.next; at != &file->entries; at = at->next)
		entry_at(at)->seen = false;
	file->write.dead = 0;
	forget_answers(file);
	error = read_file(file, &before);
	if (!error)
		error = edit_text(file, &before, &file->write.text, &file->write.dead);
	*ret_changed = !error && !is_same(&before, &file->write.text);
	spokei_buffer_fini(&before);
	return error;
}

/* Another process holds the lock, or the pool has no room. */
static void wait_for_lock(struct file *file, bool has_lock)
{
	const struct spoke_env *env = file->engine->env;

	file->clear = file->clear && has_any(file, changes);
	if (++file->tries < LOCK_TRIES) {
		file->lock_ns = env->now(env->ctx) + LOCK_NS;
		return;
	}
	file->tries = 0;
	if (has_lock) {
		spokei_event(file->engine, SPOKE_EUNAVAILABLE,
			     "registry file %s: not written, because the pool has been full for "
			     "2 s; see pool.queue",
			     file->shown);
	} else {
		spokei_event(
			file->engine, SPOKE_EUNAVAILABLE,
			"registry file %s: locked by another process for 2 s; find the process "
			"that has %s.lock open",
			file->shown, file->shown);
	}
	settle_all(file, SPOKE_EUNAVAILABLE);
}

/* The lock of a forked child is its parent's. */
static void unlock(struct file *file)
{
	const struct spoke_env *env = file->engine->env;

	if (file->write.forks == forks_of(env))
		env->files->unlock(env->ctx, file->write.lock_fd);
	else
		env->net->close(env->ctx, file->write.lock_fd);
}

/* --- the write */

static void write_text(struct spoke_work *work)
{
	struct file *file = spoke_container_of(work, struct file, write.work);
	const struct spoke_env *env = file->engine->env;

	file->write.status = env->files->replace(env->ctx, file->path,
						 spokei_buffer_data(&file->write.text),
						 spokei_buffer_len(&file->write.text), false);
}

/* Reports a change, or its failure, unless there is another one of the same entry by now. */
static void end_change(struct file *file, struct file_entry *entry, int error)
{
	bool is_last = entry->state == SENT;

	entry->sent = false;
	if (!error)
		entry->written = entry->adds;
	/* A line that was not written needs no removal. */
	if (is_last || (error && !entry->wanted && !entry->written))
		settle(file, entry, is_last ? error : SPOKE_OK);
}

/* Ends the changes of the file, whose lock is given back, and reports its text. */
static void end_write(struct file *file, int error)
{
	const struct spoke_env *env = file->engine->env;
	bool sweeps = file->write.sweeps || file->write.dead > 0;

	if (!error && file->write.dead > 0)
		spokei_event(file->engine, SPOKE_OK,
			     "registry file %s: removed the lines of processes that have ended: %u",
			     file->shown, file->write.dead);
	/* A file that cannot be removed is left to the next process. */
	if (!error && sweeps && env->files->sweep)
		(void)!env->files->sweep(env->ctx, file->path);
	unlock(file);
	file->clear = false;
	for (struct spoke_list *at = file->entries.next, *next; at != &file->entries; at = next) {
		struct file_entry *entry = entry_at(at);

		next = at->next;
		if (entry->sent)
			end_change(file, entry, error);
	}
	if (error)
		spokei_buffer_fini(&file->write.text);
	else
		take_text(file, &file->write.text);
}

static bool is_sent(const struct file_entry *entry)
{
	return entry->sent;
}

static void free_file(struct file *file);

static void written(struct spoke_work *work)
{
	struct file *file = spoke_container_of(work, struct file, write.work);
	int status = work->status ? work->status : file->write.status;
	int error = status ? SPOKE_ESYSTEM : SPOKE_OK;

	file->write.busy = false;
	if (file->closed) {
		unlock(file);
		free_file(file);
		return;
	}
	/* A failure is only told if a request waits for it. */
	if (status && has_any(file, is_sent))
		error = complain(file, "replaced", status);
	end_write(file, error);
	spokei_run_soon(file->engine, &file->work);
}

/* Marks the changes that are in the text. */
static void mark_sent(struct file *file)
{
	for (struct spoke_list *at = file->entries.next; at != &file->entries; at = at->next) {
		struct file_entry *entry = entry_at(at);

		entry->sent = changes(entry);
		entry->adds = entry->wanted;
		if (entry->sent)
			entry->state = SENT;
	}
}

/* Changes the locked file, or ends with the lock given back. */
static void change_locked(struct file *file)
{
	const struct spoke_env *env = file->engine->env;
	bool fresh = file->mark_fd < 0;
	bool changed = false;
	int status = has_any(file, has_line) ? take_mark(file) : 0;
	int error = status ? complain(file, "marked", status) : prepare_text(file, &changed);

	file->write.sweeps = fresh || file->clear;
	if (!error && changed) {
		/* Others wait for it, e.g. the drain of a provider. */
		file->write.work =
			(struct spoke_work){ .run = write_text, .done = written, .urgent = true };
		file->write.busy = env->loop->offload(file->engine->loop, &file->write.work) == 0;
		if (file->write.busy) {
			mark_sent(file);
			file->tries = 0;
			return;
		}
		unlock(file);
		spokei_buffer_fini(&file->write.text);
		wait_for_lock(file, true);
		return;
	}
	file->tries = 0;
	mark_sent(file);
	end_write(file, error);
}

static void change(struct file *file)
{
	const struct spoke_env *env = file->engine->env;
	int error = env->files->lock(env->ctx, file->path, &file->write.lock_fd);

	file->lock_ns = UINT64_MAX;
	if (error == -EAGAIN && has_any(file, changes)) {
		wait_for_lock(file, false);
		return;
	}
	if (error) {
		file->tries = 0;
		file->clear = false;
		if (has_any(file, changes))
			settle_all(file, complain(file, "locked", error));
		return;
	}
	file->write.forks = forks_of(env);
	change_locked(file);
}

/* --- times */

static void clock_due(struct spoke_alarm *clock)
{
	struct file *file = spoke_container_of(clock, struct file, clock);

	/* Armed here, because it cannot fail: the wheel's place is free. */
	(void)!spoke_alarm_after(file->engine, clock, IDLE_NS, clock_due);
	spokei_run_soon(file->engine, &file->work);
}

/* Arms the clock for the next due time. */
static void set_clock(struct file *file)
{
	const struct spoke_env *env = file->engine->env;
	uint64_t now_ns = env->now(env->ctx);
	uint64_t due_ns = now_ns + IDLE_NS;

	if (file->looking && file->look_ns < due_ns)
		due_ns = file->look_ns;
	if (file->settle_ns < due_ns)
		due_ns = file->settle_ns;
	if (file->lock_ns < due_ns)
		due_ns = file->lock_ns;
	(void)!spoke_alarm_after(file->engine, &file->clock, due_ns > now_ns ? due_ns - now_ns : 0,
				 clock_due);
}

static void look_if_due(struct file *file, uint64_t now_ns)
{
	bool anyway = !file->looking || file->look_ns <= now_ns;

	if (!anyway && !file->asked && file->settle_ns > now_ns)
		return;
	/* Watches before reading, so that no later change is missed. */
	if (anyway)
		watch_file(file);
	file->looking = true;
	file->settle_ns = UINT64_MAX;
	look(file);
	file->look_ns = now_ns +
			(file->watching && file->found && file->known ? LOOK_NS : LOOK_OFTEN_NS);
}

static void work(struct spokei_task *task)
{
	struct file *file = spoke_container_of(task, struct file, work);
	const struct spoke_env *env = file->engine->env;
	uint64_t now_ns = env->now(env->ctx);

	if (!has_any(file, changes) && !file->clear)
		file->lock_ns = UINT64_MAX;
	else if (!file->write.busy && (file->lock_ns == UINT64_MAX || file->lock_ns <= now_ns))
		change(file);
	if (has_any(file, is_watched)) {
		look_if_due(file, now_ns);
	} else {
		unwatch(file);
		file->looking = false;
		file->settle_ns = UINT64_MAX;
	}
	if (!file->write.busy && !has_any(file, has_line))
		give_mark(file);
	if (file->clear && !file->write.busy && file->lock_ns == UINT64_MAX)
		spokei_run_soon(file->engine, &file->work);
	set_clock(file);
}

/* --- the registry */

static void put(struct file *file, struct file_entry *entry, bool wanted)
{
	if (entry->node.next)
		spokei_list_remove(&entry->node);
	spokei_list_append(&file->entries, &entry->node);
	entry->wanted = wanted;
	entry->state = ASKED;
	spokei_run_soon(file->engine, &file->work);
}

static void want(void *registry, struct spoke_registry_entry *of)
{
	struct file *file = registry;
	struct file_entry *entry = spoke_container_of(of, struct file_entry, of);

	if (entry->found.env == NULL) {
		spokei_buffer_init(&entry->found, file->engine->env, SIZE_MAX);
		spokei_buffer_init(&entry->last, file->engine->env, SIZE_MAX);
	}
	put(file, entry, true);
	file->asked = file->asked || of->url == NULL;
	if (of->url == NULL || provides(of->url, of->service))
		return;
	spokei_event(file->engine, SPOKE_EINVAL,
		     "registry file %s: the URL of a provider must name its service, as path "
		     "or as interface",
		     file->shown);
	settle(file, entry, SPOKE_EINVAL);
}

static void unwant(void *registry, struct spoke_registry_entry *of)
{
	struct file *file = registry;
	struct file_entry *entry = spoke_container_of(of, struct file_entry, of);

	put(file, entry, false);
	if (of->url == NULL || (!entry->written && !entry->sent))
		settle(file, entry, SPOKE_OK);
}

static void free_file(struct file *file)
{
	give_mark(file);
	spokei_buffer_fini(&file->text);
	spokei_buffer_fini(&file->write.text);
	spokei_free(file->engine->env, file, 1, file->size);
}

static void close_file(void *registry)
{
	struct file *file = registry;

	while (!spokei_list_empty(&file->entries))
		release(entry_at(spokei_list_first(&file->entries)));
	spokei_task_drop(&file->work);
	(void)spoke_alarm_cancel(&file->clock);
	unwatch(file);
	file->closed = true;
	if (!file->write.busy)
		free_file(file);
}

static int check_url(struct spoke_engine *engine, const struct spoke_url *url)
{
	if (engine->env->files == NULL) {
		spokei_event(engine, SPOKE_EUNSUPPORTED,
			     "registry file: this environment has no files");
		return SPOKE_EUNSUPPORTED;
	}
	if (url->host == NULL || url->host[0] != '\0' || url->path[0] == '\0') {
		spokei_event(engine, SPOKE_EINVAL,
			     "registry file: must be on this machine, with an absolute path, e.g. "
			     "file:///run/spoke/providers");
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

static int open_file(struct spoke_engine *engine, const struct spoke_url *url,
		     const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	struct file *file = NULL;
	int error = check_url(engine, url);
	size_t len;
	size_t size;

	if (error)
		return error;
	len = strlen(url->path) + 1; /* with the slash before it */
	size = sizeof(*file) + 2 * (len + 1) + MARK;
	file = spokei_alloc(engine->env, 1, size);
	error = file ? spoke_alarm_after(engine, &file->clock, IDLE_NS, clock_due) : SPOKE_ENOMEM;
	if (error) {
		spokei_free(engine->env, file, 1, size);
		spokei_event(engine, error, "registry file: cannot be opened");
		return error;
	}
	file->engine = engine;
	file->up = up;
	file->up_arg = arg;
	file->size = size;
	file->work.run = work;
	file->settle_ns = file->lock_ns = UINT64_MAX;
	file->mark_fd = -1;
	file->marked = file->path + len + 1;
	(void)snprintf(file->path, len + 1, "/%s", url->path);
	(void)snprintf(file->marked, len + 2, "/%s.", url->path);
	(void)spokei_log_escape_end(file->shown, sizeof(file->shown), file->path, len);
	spokei_list_init(&file->entries);
	spokei_buffer_init(&file->text, engine->env, TEXT_MAX);
	spokei_buffer_init(&file->write.text, engine->env, TEXT_MAX);
	*ret_registry = file;
	return SPOKE_OK;
}

const struct spoke_registry spokei_registry_file = {
	.scheme = "file",
	.entry_size = sizeof(struct file_entry),
	.open = open_file,
	.want = want,
	.unwant = unwant,
	.close = close_file,
};
