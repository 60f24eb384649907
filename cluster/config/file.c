/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a configuration file line by line. An invalid line is reported and skipped, so that all
 * errors are reported at once. Finds sections and values of a parsed file, for its users, and
 * formats messages about them.
 */
#include "cluster/config/file.h"

#include "cluster/config/places.h"
#include "core/base/log.h"
#include "core/text/option.h"
#include "core/text/secret.h"

#include <spoke/comet.h>
#include <spoke/engine.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 96u       /* bytes of a key or value in a message, with the NUL */
#define NAME_SHOWN 256u /* ... of a file's name */
#define WHY_MAX 384u
#define HEADING_MAX 1024u
#define ALL_SECTIONS ((1u << SPOKEI_SECTIONS) - 1)

/* --- sections and values */

static bool is_same(const char *text, struct spoke_span span)
{
	return strlen(text) == span.len &&
	       (span.len == 0 || memcmp(text, span.data, span.len) == 0);
}

/* Returns the section of a name, or NULL. `name` is { } for a kind with one section only. */
static const struct spokei_config_section *find_section(const struct spokei_config_file *file,
							enum spokei_section kind,
							struct spoke_span name)
{
	for (size_t i = 0; i < file->section_count; i++) {
		const struct spokei_config_section *section = &file->sections[i];

		if (section->kind == kind && is_same(section->name, name))
			return section;
	}
	return NULL;
}

/* Returns the section [method.SERVICE.METHOD], or NULL. */
static const struct spokei_config_section *section_of_method(const struct spokei_config_file *file,
							     struct spoke_span service,
							     const char *method)
{
	for (size_t i = 0; i < file->section_count && service.len > 0; i++) {
		const struct spokei_config_section *section = &file->sections[i];

		if (section->kind == SPOKEI_IN_METHOD && strlen(section->name) > service.len + 1 &&
		    memcmp(section->name, service.data, service.len) == 0 &&
		    section->name[service.len] == '.' &&
		    strcmp(section->name + service.len + 1, method) == 0)
			return section;
	}
	return NULL;
}

/* Returns the entry of a key, or NULL. `section` may be NULL. */
static struct spokei_config_entry *find_in(const struct spokei_config_section *section,
					   enum spokei_key key)
{
	struct spokei_config_entry *entry = section ? section->first : NULL;

	while (entry && entry->key != key)
		entry = entry->next;
	return entry;
}

const struct spokei_config_entry *spokei_config_file_find(const struct spokei_config_file *file,
							  enum spokei_section kind,
							  struct spoke_span name,
							  enum spokei_key key)
{
	return find_in(find_section(file, kind, name), key);
}

void spokei_config_file_fini(struct spokei_config_file *file)
{
	const struct spoke_env *env = file->env;

	spokei_free(env, file->entries, file->entry_room, sizeof(*file->entries));
	spokei_free(env, file->sections, file->section_room, sizeof(*file->sections));
	if (file->text)
		spokei_secret_wipe(file->text, file->text_size);
	spokei_free(env, file->text, 1, file->text_size);
	*file = (struct spokei_config_file){ .env = env };
}

/* --- messages about values */

/* Writes a value for messages: escaped and cut; "..." for a URL that may contain a password. */
static void show(const char *value, char *out, size_t size)
{
	const char *colon = strchr(value, ':');
	bool hides = colon && (strchr(colon, '@') || strstr(colon, "pass"));
	const char *shown = hides ? "..." : value;
	const char *at = out;

	(void)spokei_log_escape(out, size, shown, strlen(shown));
	/* The value is shown without quotation marks, so its own are not escaped. */
	while (*at) {
		at += *at == '\\' && (at[1] == '\\' || at[1] == '"');
		*out++ = *at++;
	}
	*out = '\0';
}

static const char *key_at(const void *of, size_t i)
{
	(void)of;
	return spokei_key_in_file((enum spokei_key)i);
}

/* Returns whether there is a key of this name; `*ret_secret`: one of that name is a secret. */
static bool is_key(const char *name, bool *ret_secret)
{
	bool found = false;

	*ret_secret = false;
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (strcmp(key_at(NULL, i), name) != 0)
			continue;
		found = true;
		*ret_secret |= spokei_key_row((enum spokei_key)i)->secret;
	}
	return found;
}

/* Returns whether messages must not show the value of a key. A misspelt key counts as the one that
 * it probably means. */
static bool is_hidden(const char *name)
{
	const char *nearest;
	bool secret;

	if (is_key(name, &secret))
		return secret;
	if (spokei_hide_may_be_secret(name))
		return true;
	nearest = spokei_option_nearest_name(name, key_at, NULL, SPOKEI_KEYS);
	return nearest && is_key(nearest, &secret) && secret;
}

void spokei_config_file_sentence(const char *name, const struct spokei_config_entry *entry,
				 const char *what, char *out, size_t size)
{
	char value[SHOWN];
	size_t len;

	show(spokei_key_row(entry->key)->secret ? SPOKEI_CONFIG_HIDDEN : entry->text, value,
	     sizeof(value));
	len = (size_t)snprintf(out, size, "%s", name);
	if (len >= size)
		return;
	(void)snprintf(out + len, size - len, ":%u: %s = %s: %s", entry->line,
		       spokei_key_in_file(entry->key), value, what);
	spokei_hide_secrets(out + len);
}

/* --- headings */

/* Finds the section that a heading names, e.g. "method.demo.EchoService.echo"; *ret_name is
 * the end of the heading, or "". Returns whether there is such a kind. */
static bool find_heading(const char *heading, enum spokei_section *ret_kind, const char **ret_name)
{
	for (unsigned i = 0; i < SPOKEI_SECTIONS; i++) {
		const enum spokei_section section = (enum spokei_section)i;
		const char *word = spokei_section_word(section);
		const char *rest = heading + strlen(word);
		const bool named = spokei_section_is_named(section);

		if (strncmp(heading, word, strlen(word)) != 0 || *rest != (named ? '.' : '\0') ||
		    (named && rest[1] == '\0'))
			continue;
		*ret_kind = section;
		*ret_name = rest + named;
		return true;
	}
	return false;
}

static const char *section_at(const void *of, size_t i)
{
	(void)of;
	return spokei_section_word((enum spokei_section)i);
}

/* Guesses the section that a misspelt heading means. Returns whether there is a guess. */
static bool guess_heading(const char *heading, enum spokei_section *ret_kind)
{
	char first[SHOWN];
	const char *nearest;

	(void)spokei_log_escape(first, sizeof(first), heading, strcspn(heading, "."));
	nearest = spokei_option_nearest_name(first, section_at, NULL, SPOKEI_SECTIONS);
	for (unsigned i = 0; i < SPOKEI_SECTIONS; i++)
		if (section_at(NULL, i) == nearest)
			*ret_kind = (enum spokei_section)i;
	return nearest != NULL;
}

/* --- parts of a line: NUL-terminated texts, which are changed in place */

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Skips blanks. */
static char *skip_blanks(char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

/* Removes blanks at the end. */
static void trim(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && is_blank(text[len - 1]))
		len--;
	text[len] = '\0';
}

/* Returns whether the text is empty or a comment. */
static bool is_comment(const char *at)
{
	return *at == '\0' || *at == '#' || *at == ';';
}

/* Removes a comment, which begins with # after a blank, and the blanks before it. */
static void cut_comment(char *text)
{
	for (char *at = text; *at; at++) {
		if (*at == '#' && (at == text || is_blank(at[-1]))) {
			*at = '\0';
			break;
		}
	}
	trim(text);
}

/*
 * Reads a quoted value, in which \" and \\ stand for the character after the backslash. Returns
 * an error message or NULL; *ret_value is the value.
 */
static const char *unquote(char *at, char **ret_value)
{
	char *out = ++at;

	*ret_value = out;
	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		*out++ = *at;
	}
	if (*at == '\0')
		return "missing closing quotation mark";
	at = skip_blanks(at + 1);
	if (*at && *at != '#')
		return "text after the closing quotation mark; write \\\" inside quotes";
	*out = '\0';
	return NULL;
}

/* --- values that depend on others */

static const struct spokei_config_entry *find_entry(const struct spokei_config_file *file,
						    enum spokei_section kind, enum spokei_key key)
{
	return spokei_config_file_find(file, kind, (struct spoke_span){ NULL, 0 }, key);
}

/* Checks the URL against [registry], in a file without errors. Returns NULL, or a sentence about
 * *ret_entry. */
static const char *check_backend_with(const struct spokei_config_file *file,
				      const struct spokei_config_entry **ret_entry)
{
	const struct spokei_config_entry *backend = find_entry(file, SPOKEI_IN_COMET,
							       SPOKEI_KEY_COMET_BACKEND);
	const bool has_registry = find_entry(file, SPOKEI_IN_REGISTRY, SPOKEI_KEY_REGISTRY_URL);
	bool listed;

	*ret_entry = backend;
	if (backend == NULL)
		return NULL;
	listed = strncmp(backend->text, SPOKEI_PLACES_LISTED, strlen(SPOKEI_PLACES_LISTED)) == 0;
	if (listed == has_registry)
		return NULL;
	return listed ? "consumer:// has no address; set url in [registry] too, or write "
			"dubbo://HOST:PORT/SERVICE"
		      : "an address and the url in [registry] exclude each other; write "
			"consumer://any/SERVICE";
}

/* Checks the addresses of a file without errors. Returns 0; EINVAL, with a sentence about
 * *ret_entry; or ENOMEM, also with a sentence. */
static int check_listen_with(const struct spokei_config_file *file,
			     const struct spokei_config_entry **ret_entry, const char **ret_why)
{
	const struct spokei_config_entry *listen = find_entry(file, SPOKEI_IN_PROVIDER,
							      SPOKEI_KEY_LISTEN);
	const struct spokei_config_entry *tls = find_entry(file, SPOKEI_IN_PROVIDER,
							   SPOKEI_KEY_TLS);
	const bool concerns = listen && tls && tls->number != SPOKEI_TLS_OFF;
	const char *at = concerns ? listen->text : NULL;
	struct spoke_span item;

	*ret_entry = listen;
	while (concerns && spokei_option_item(&at, &item)) {
		struct spoke_url url;
		bool refused;

		*ret_why = "out of memory";
		if (spoke_url_parse(file->env, item.data, item.len, &url, NULL))
			return SPOKE_ENOMEM;
		/* An address with a mode of its own has been checked. */
		refused = url.shm && spoke_url_get(&url, "tls") == NULL;
		spoke_url_fini(&url);
		*ret_why = "shared memory has no TLS; write shm:/PATH?tls=off, or use unix:/PATH";
		if (refused)
			return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

/* --- the reader */

struct reader {
	struct spokei_config_file *file;
	char name[NAME_SHOWN]; /* of the file */
	spoke_config_message_fn told;
	void *arg;
	unsigned line;
	unsigned wrong;
	struct spokei_config_section
		*section; /* current section; NULL: none yet, or it is invalid */
	bool begun;       /* a section has begun */
	bool poor;        /* out of memory */
};

/* --- messages */

SPOKEI_PRINTF(3, 4)
static void tell(struct reader *reader, const char *subject, const char *format, ...)
{
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX];
	char why[WHY_MAX];
	va_list args;

	if (++reader->wrong > SPOKEI_CONFIG_ERRORS_MAX || reader->told == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (reader->wrong == SPOKEI_CONFIG_ERRORS_MAX)
		(void)snprintf(why, sizeof(why), "too many errors; fix those above first");
	if (reader->line == 0)
		(void)snprintf(sentence, sizeof(sentence), "%s: %s", reader->name, why);
	else
		(void)snprintf(sentence, sizeof(sentence), "%s:%u: %s%s%s", reader->name,
			       reader->line, subject, *subject ? ": " : "", why);
	spokei_hide_secrets(sentence + strlen(reader->name));
	reader->told(reader->arg, sentence);
}

/* A line as it is shown in messages. */
struct subject {
	char text[2 * SHOWN + 4];
};

static struct subject pair_shown(const char *key, const char *value)
{
	char shown_key[SHOWN];
	char shown_value[SHOWN];
	struct subject subject;

	show(key, shown_key, sizeof(shown_key));
	show(is_hidden(key) ? SPOKEI_CONFIG_HIDDEN : value, shown_value, sizeof(shown_value));
	(void)snprintf(subject.text, sizeof(subject.text), "%s = %s", shown_key, shown_value);
	return subject;
}

/* --- sections */

/* Begins a section. */
static void open_section(struct reader *reader, enum spokei_section kind, const char *name)
{
	struct spokei_config_file *file = reader->file;

	for (size_t i = 0; i < file->section_count && reader->section == NULL; i++)
		if (file->sections[i].kind == kind && strcmp(file->sections[i].name, name) == 0)
			reader->section = &file->sections[i];
	if (reader->section)
		return;
	if (file->section_count == file->section_room) {
		tell(reader, "", "too many sections; at most %u", SPOKEI_CONFIG_SECTIONS_MAX);
		return;
	}
	reader->section = &file->sections[file->section_count++];
	*reader->section = (struct spokei_config_section){ .kind = kind, .name = name };
}

/* `meant`: bits of the sections that may be meant. */
static void refuse_section(struct reader *reader, const char *heading, unsigned meant)
{
	const bool guessed = meant != ALL_SECTIONS;
	char list[2 * SHOWN];
	char shown[SHOWN];

	show(heading, shown, sizeof(shown));
	spokei_sections_print(meant, "[", "]", list, sizeof(list));
	tell(reader, "", "[%s]: no such section; %s %s%s", shown, guessed ? "did you mean" : "use",
	     list, guessed ? "?" : "");
}

/* Checks the name of a service or method in a heading. Returns NULL if it is valid. */
static const char *check_name(const char *name)
{
	if (name[strcspn(name, " \t\"")])
		return "a name may not contain blanks or quotation marks; write e.g. "
		       "demo.EchoService.echo";
	if (*name == '.' || strstr(name, "..") || (*name && name[strlen(name) - 1] == '.'))
		return "a part of the name is empty; write e.g. demo.EchoService.echo";
	return NULL;
}

/* Lines of a misspelt section are checked as those of the section probably meant; without such
 * a guess they are skipped. `told`: the line had an error. */
static void enter_section(struct reader *reader, char *heading, bool told)
{
	const char *dot = strchr(heading, '.');
	enum spokei_section kind;
	char shown[SHOWN];
	const char *wrong;
	const char *name;
	bool guessed;

	if (strlen(heading) > HEADING_MAX) {
		tell(reader, "", "the section's name is too long; at most %u bytes", HEADING_MAX);
		return;
	}
	if (find_heading(heading, &kind, &name)) {
		wrong = check_name(name);
		show(heading, shown, sizeof(shown));
		if (wrong && !told)
			tell(reader, "", "[%s]: %s", shown, wrong);
		open_section(reader, kind, name);
		return;
	}
	guessed = guess_heading(heading, &kind);
	if (!told)
		refuse_section(reader, heading, guessed ? 1u << kind : ALL_SECTIONS);
	if (guessed)
		open_section(reader, kind, dot && spokei_section_is_named(kind) ? dot + 1 : "");
}

/* Parses a heading "[consumer]", with an optional comment. */
static void read_section(struct reader *reader, char *at)
{
	char *end = strchr(at, ']');
	bool wrong = end == NULL || !is_comment(skip_blanks(end + 1));

	reader->begun = true;
	reader->section = NULL;
	if (wrong)
		tell(reader, "", "not a section; write e.g. [consumer]");
	at = skip_blanks(at + 1);
	if (end)
		*end = '\0';
	else
		cut_comment(at);
	trim(at);
	enter_section(reader, at, wrong);
}

/* --- keys */

static const char *key_of_section(const void *of, size_t i)
{
	const struct spokei_config_section *section = of;

	return spokei_key_row((enum spokei_key)i)->sections & 1u << section->kind
		       ? spokei_key_in_file((enum spokei_key)i)
		       : NULL;
}

/* Reports a key that belongs elsewhere or does not exist. */
static void refuse_key(struct reader *reader, const char *name, const char *subject)
{
	char sections[SHOWN];
	const char *nearest;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		enum spokei_key key = (enum spokei_key)i;

		if (strcmp(spokei_key_in_file(key), name) != 0 &&
		    strcmp(spokei_key_row(key)->option.name, name) != 0)
			continue;
		spokei_sections_print(spokei_key_row(key)->sections, "[", "]", sections,
				      sizeof(sections));
		tell(reader, subject, "not allowed here; write %s in %s", spokei_key_in_file(key),
		     sections);
		return;
	}
	nearest = spokei_option_nearest_name(name, key_of_section, reader->section, SPOKEI_KEYS);
	if (nearest == NULL)
		nearest = spokei_option_nearest_name(name, key_at, NULL, SPOKEI_KEYS);
	tell(reader, subject, "no such key%s%s%s", nearest ? "; did you mean " : "",
	     nearest ? nearest : "; see spoke config --explain", nearest ? "?" : "");
}

/* Reports the sentence of a check; NULL: the value is valid. */
static void tell_check(struct reader *reader, const char *subject, const char *why)
{
	reader->poor |= why == spokei_check_no_memory;
	if (why)
		tell(reader, subject, "%s", why);
}

static void check_url(struct reader *reader, const struct spokei_check *of, struct spoke_span text,
		      const char *subject)
{
	const struct spokei_key_row *row = spokei_key_row(of->key);
	struct spoke_url_error why;
	struct spoke_url url;
	int error = spoke_url_parse(of->env, text.data, text.len, &url, &why);

	if (error) {
		tell_check(reader, subject,
			   error == SPOKE_ENOMEM ? spokei_check_no_memory : why.text);
		return;
	}
	tell_check(reader, subject, row->check_url(of, &url));
	spoke_url_fini(&url);
}

/* Checks a value by the functions of its row. */
static void check_value(struct reader *reader, enum spokei_key key, const char *value,
			const char *subject)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	char sentence[SPOKEI_CHECK_WHY];
	const struct spokei_check of = {
		.env = reader->file->env,
		.key = key,
		.section = reader->section->kind,
		.why = sentence,
	};
	struct spoke_span item = { value, strlen(value) };

	if (row->check)
		tell_check(reader, subject, row->check(&of, value));
	if (row->check_url && row->option.kind != SPOKEI_OPTION_LIST)
		check_url(reader, &of, item, subject);
	while (row->check_url && row->option.kind == SPOKEI_OPTION_LIST &&
	       spokei_option_item(&value, &item))
		check_url(reader, &of, item, subject);
}

/* Adds a key with the number 0, even if its value is invalid, so that a second line for it is
 * reported. Returns NULL if the key cannot be added. */
static struct spokei_config_entry *add_entry(struct reader *reader, enum spokei_key key,
					     const char *value, const char *subject)
{
	const struct spokei_config_entry *first = find_in(reader->section, key);
	struct spokei_config_file *file = reader->file;
	struct spokei_config_entry *entry;

	if (first) {
		tell(reader, subject, "already set in line %u; keep one of them", first->line);
		return NULL;
	}
	if (file->entry_count == file->entry_room) {
		tell(reader, subject, "too many keys; at most %u", SPOKEI_CONFIG_KEYS_MAX);
		return NULL;
	}
	entry = &file->entries[file->entry_count++];
	*entry = (struct spokei_config_entry){
		.key = key,
		.line = reader->line,
		.text = value,
	};
	if (reader->section->last)
		reader->section->last->next = entry;
	else
		reader->section->first = entry;
	reader->section->last = entry;
	return entry;
}

static void read_value(struct reader *reader, enum spokei_key key, const char *value,
		       uint64_t *ret_number)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const struct subject subject = pair_shown(spokei_key_in_file(key), value);
	char why[SPOKEI_OPTION_WHY_MAX];

	if (*value == '\0')
		tell(reader, subject.text, "missing value; write one or remove the line");
	else if (spokei_option_read(&row->option, value, false, ret_number, why, sizeof(why)))
		tell(reader, subject.text, "%s", why);
	else
		check_value(reader, key, value, subject.text);
}

/* Parses "key = value", with an optional comment. */
static void read_pair(struct reader *reader, char *at)
{
	char *equals = strchr(at, '=');
	struct spokei_config_entry *entry;
	struct subject subject;
	const char *wrong = NULL;
	uint64_t number = 0;
	enum spokei_key key;
	char *value;

	if (equals == NULL) {
		tell(reader, "", "neither a section nor a key; write key = value");
		return;
	}
	*equals = '\0';
	trim(at);
	value = skip_blanks(equals + 1);
	subject = pair_shown(at, value);
	if (*value == '"')
		wrong = unquote(value, &value);
	else
		cut_comment(value);
	if (wrong)
		tell(reader, subject.text, "%s", wrong);
	else
		subject = pair_shown(at, value);
	if (!reader->begun)
		tell(reader, subject.text,
		     "before the first section; write a section above it, e.g. [consumer]");
	/* Values in unknown sections are not checked. */
	if (reader->section == NULL)
		return;
	key = spokei_key_find_in(reader->section->kind, at);
	if (key == SPOKEI_KEYS) {
		refuse_key(reader, at, subject.text);
		return;
	}
	entry = add_entry(reader, key, value, subject.text);
	if (wrong == NULL)
		read_value(reader, key, value, &number);
	if (entry)
		entry->number = number;
}

/* --- lines */

/* Parses a line, which is NUL-terminated. */
static void read_line(struct reader *reader, char *line, size_t len)
{
	char *at;

	if (len > 0 && line[len - 1] == '\r')
		line[--len] = '\0';
	if (len > SPOKEI_CONFIG_LINE_MAX) {
		tell(reader, "", "the line is too long; at most %u bytes", SPOKEI_CONFIG_LINE_MAX);
		return;
	}
	if (memchr(line, '\0', len)) {
		tell(reader, "", "contains a NUL byte; is this the right file?");
		return;
	}
	at = skip_blanks(line);
	if (is_comment(at))
		return;
	if (*at == '[')
		read_section(reader, at);
	else
		read_pair(reader, at);
}

static void read_lines(struct reader *reader, char *at, char *end)
{
	if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end && reader->wrong < SPOKEI_CONFIG_ERRORS_MAX) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		if (stop == NULL)
			stop = end;
		*stop = '\0';
		reader->line++;
		read_line(reader, at, (size_t)(stop - at));
		at = stop + 1;
	}
}

static void tell_of(struct reader *reader, const struct spokei_config_entry *entry,
		    const char *wrong)
{
	reader->line = entry->line;
	tell(reader, pair_shown(spokei_key_in_file(entry->key), entry->text).text, "%s", wrong);
}

/* Checks URLs that depend on other keys, which may stand below them. */
static void check_across(struct reader *reader)
{
	const struct spokei_config_entry *entry;
	const char *wrong = reader->wrong ? NULL : check_backend_with(reader->file, &entry);
	int error;

	if (wrong)
		tell_of(reader, entry, wrong);
	error = reader->wrong ? SPOKE_OK : check_listen_with(reader->file, &entry, &wrong);
	if (error)
		tell_of(reader, entry, wrong);
	reader->poor |= error == SPOKE_ENOMEM;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Allocates memory for this many lines. Returns whether that succeeded. */
static bool make_room(struct spokei_config_file *file, struct spoke_span text)
{
	const char *bytes = text.data;
	size_t lines = 1;

	for (size_t i = 0; i < text.len; i++)
		lines += bytes[i] == '\n';
	file->text_size = text.len + 1;
	file->text = spokei_alloc_unset(file->env, file->text_size);
	file->section_room = smaller(lines, SPOKEI_CONFIG_SECTIONS_MAX);
	file->sections = spokei_alloc(file->env, file->section_room, sizeof(*file->sections));
	file->entry_room = smaller(lines, SPOKEI_CONFIG_KEYS_MAX);
	file->entries = spokei_alloc(file->env, file->entry_room, sizeof(*file->entries));
	return file->text && file->sections && file->entries;
}

int spokei_config_file_read(const struct spoke_env *env, const char *name, struct spoke_span text,
			    spoke_config_message_fn told, void *arg, struct spokei_config_file *ret)
{
	struct spokei_config_file file = { .env = env };
	struct reader reader = { .file = &file, .told = told, .arg = arg };
	int error = SPOKE_OK;

	(void)spokei_log_escape_end(reader.name, sizeof(reader.name), name, strlen(name));
	if (text.len > SPOKE_CONFIG_MAX) {
		error = SPOKE_ETOOLARGE;
		tell(&reader, "", "the file is too large; at most %u bytes", SPOKE_CONFIG_MAX);
	} else if (!make_room(&file, text)) {
		error = SPOKE_ENOMEM;
		tell(&reader, "", "out of memory while reading the file");
	} else {
		if (text.len)
			memcpy(file.text, text.data, text.len);
		read_lines(&reader, file.text, file.text + text.len);
		check_across(&reader);
		error = reader.wrong ? SPOKE_ESYNTAX : SPOKE_OK;
		error = reader.poor ? SPOKE_ENOMEM : error;
	}
	if (error)
		spokei_config_file_fini(&file);
	else
		*ret = file;
	return error;
}

/* --- values of a file in use */

/* `uses`: bits of the sections of the reader, which does not use a key that is for others. */
static void put_entry(struct spokei_config_entry *entry, unsigned uses,
		      struct spokei_key_values *values)
{
	const unsigned owners = spokei_key_row(entry->key)->sections &
				(1u << SPOKEI_IN_CONSUMER | 1u << SPOKEI_IN_PROVIDER);

	entry->used |= owners == 0 || (owners & uses) != 0;
	if (spokei_key_is_text(entry->key))
		spokei_keys_put_text(values, entry->key, entry->text, SPOKEI_FROM_FILE,
				     entry->line);
	else
		spokei_keys_put(values, entry->key, entry->number, SPOKEI_FROM_FILE, entry->line);
}

static void put_section(const struct spokei_config_section *section, unsigned uses,
			struct spokei_key_values *values)
{
	for (struct spokei_config_entry *entry = section ? section->first : NULL; entry;
	     entry = entry->next)
		put_entry(entry, uses, values);
}

void spokei_config_read(const struct spoke_config *config, enum spokei_section kind,
			struct spoke_span name, unsigned uses, struct spokei_key_values *values)
{
	if (config)
		put_section(find_section(&config->file, kind, name), uses, values);
}

void spokei_config_read_method(const struct spoke_config *config, struct spoke_span service,
			       const char *method, unsigned uses, struct spokei_key_values *values)
{
	const struct spoke_span name = { (const unsigned char *)method, strlen(method) };

	if (config == NULL)
		return;
	put_section(find_section(&config->file, SPOKEI_IN_METHOD, name), uses, values);
	put_section(section_of_method(&config->file, service, method), uses, values);
}

void spokei_config_read_in_force(const struct spoke_config *config, enum spokei_section kind,
				 struct spokei_key_values *values)
{
	const struct spoke_span no_name = { NULL, 0 };

	for (unsigned live = 0; config && live < 2; live++) {
		const struct spokei_config_section *section =
			find_section(live ? &config->file : &config->first, kind, no_name);

		for (struct spokei_config_entry *entry = section ? section->first : NULL; entry;
		     entry = entry->next)
			if (spokei_key_row(entry->key)->live == live)
				put_entry(entry, 1u << kind, values);
	}
}

/* Returns the entry of a key in the present file, or NULL. */
static const struct spokei_config_entry *entry_of(const struct spoke_config *config,
						  enum spokei_section kind, struct spoke_span name,
						  enum spokei_key key)
{
	struct spokei_config_entry *entry =
		config ? find_in(find_section(&config->file, kind, name), key) : NULL;

	if (entry)
		entry->used = true;
	return entry;
}

const char *spokei_config_text(const struct spoke_config *config, enum spokei_section kind,
			       struct spoke_span name, enum spokei_key key)
{
	const struct spokei_config_entry *entry = entry_of(config, kind, name, key);

	return entry ? entry->text : NULL;
}

/* Returns the level of the log that the file sets; NULL: it sets none. */
static const char *log_of(const struct spoke_config *config)
{
	const struct spokei_config_entry *entry =
		entry_of(config, SPOKEI_IN_ENGINE, (struct spoke_span){ NULL, 0 }, SPOKEI_KEY_LOG);

	return entry ? spokei_key_row(entry->key)->option.names((unsigned)entry->number) : NULL;
}

/* Sets the options that are 0 or NULL from a section without a name. */
static void complete(const struct spoke_config *config, enum spokei_section kind,
		     enum spokei_fields_of of, void *options)
{
	const struct spoke_span no_name = { NULL, 0 };
	const struct spokei_config_section *section = config ? find_section(&config->file, kind,
									    no_name)
							     : NULL;

	for (struct spokei_config_entry *entry = section ? section->first : NULL; entry;
	     entry = entry->next) {
		const struct spokei_field *field = spokei_key_field(entry->key, of);

		if (field == NULL)
			continue;
		entry->used = true;
		if (spokei_field_is_pointer(field)) {
			if (spokei_field_pointer(field, options) == NULL)
				spokei_field_set_pointer(field, options, entry->text);
		} else if (spokei_field_get(field, options) == 0) {
			spokei_field_set(field, options, entry->number);
		}
	}
}

void spoke_config_comet(const struct spoke_config *config, struct spoke_comet_options *options)
{
	complete(config, SPOKEI_IN_COMET, SPOKEI_AT_COMET, options);
}

void spoke_config_engine(const struct spoke_config *config, struct spoke_engine_options *options)
{
	const uint64_t spin_ns = options->spin_ns;

	complete(config, SPOKEI_IN_ENGINE, SPOKEI_AT_ENGINE, options);
	/* A loop of the user waits as its user programs it. */
	if (options->native)
		options->spin_ns = spin_ns;
	if (options->log == NULL)
		options->log = log_of(config);
}

const char *spoke_config_get(const struct spoke_config *config, const char *section,
			     const char *key)
{
	enum spokei_section kind;
	enum spokei_key found;
	const char *name;

	if (config == NULL || section == NULL || key == NULL ||
	    !find_heading(section, &kind, &name))
		return NULL;
	found = spokei_key_find_in(kind, key);
	return found == SPOKEI_KEYS
		       ? NULL
		       : spokei_config_text(config, kind,
					    (struct spoke_span){ (const unsigned char *)name,
								 strlen(name) },
					    found);
}

static bool is_section_used(const struct spokei_config_section *section)
{
	const struct spokei_config_entry *entry = section->first;

	while (entry && !entry->used)
		entry = entry->next;
	return entry != NULL;
}

void spokei_config_report_unused(const struct spoke_config *config,
				 void (*told)(void *arg, enum spoke_log_level level,
					      const char *sentence),
				 void *arg)
{
	char sentence[SPOKEI_CONFIG_SENTENCE_MAX];
	char what[SHOWN];

	for (size_t i = 0; i < config->file.section_count; i++) {
		const struct spokei_config_section *section = &config->file.sections[i];
		const bool used = is_section_used(section);
		const enum spoke_log_level level = used || *section->name ? SPOKE_LOG_WARN
									  : SPOKE_LOG_INFO;

		(void)snprintf(what, sizeof(what), "nothing in this program uses %s[%s%s%s]",
			       used ? "this key of " : "", spokei_section_word(section->kind),
			       *section->name ? "." : "", section->name);
		for (const struct spokei_config_entry *entry = section->first; entry;
		     entry = used ? entry->next : NULL) {
			if (entry->used)
				continue;
			spokei_config_file_sentence(config->name, entry, what, sentence,
						    sizeof(sentence));
			told(arg, level, sentence);
		}
	}
}

const char *spoke_config_name(const struct spoke_config *config, const char *kind, size_t index)
{
	for (size_t i = 0; config && i < config->file.section_count; i++) {
		const struct spokei_config_section *section = &config->file.sections[i];

		if (*section->name && strcmp(spokei_section_word(section->kind), kind) == 0 &&
		    index-- == 0)
			return section->name;
	}
	return NULL;
}
