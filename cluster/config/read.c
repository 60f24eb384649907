/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a configuration file line by line. An invalid line is reported and skipped, so that all
 * errors are reported at once.
 */
#include "cluster/config/check.h"
#include "cluster/config/places.h"
#include "cluster/config/sheet.h"
#include "cluster/config/store.h"
#include "core/base/log.h"
#include "core/text/hide.h"
#include "core/text/similar.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 96u       /* bytes of a key or value in a message, with the NUL */
#define NAME_SHOWN 256u /* ... of a file's name */
#define WHY_MAX 384u
#define HEADING_MAX 1024u

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

#define NO_PLACE "consumer" /* scheme of a URL whose addresses are in a registry */

/* Returns NULL, or a sentence. */
static const char *check_backend(const struct spoke_url *url)
{
	if (*spokei_places_service(url) == '\0')
		return "the URL must name the service, e.g. dubbo://127.0.0.1:20880/shop.Texts";
	if (strcmp(url->scheme, NO_PLACE) != 0 && spokei_check_wire(url->scheme) == NULL)
		return "unknown scheme; use dubbo, msgpack-rpc, tcp or consumer";
	if (url->host && url->port == 0)
		return "port 0 is not valid for a consumer";
	return NULL;
}

static const struct spokei_entry *find_entry(const struct spokei_sheet *sheet,
					     enum spokei_section kind, enum spokei_key key)
{
	const struct spoke_span none = { NULL, 0 };

	return spokei_sheet_entry(spokei_sheet_part(sheet, kind, none), key);
}

/* Checks the URL against [registry], in a sheet without errors. Returns NULL, or a sentence about
 * *ret_entry. */
static const char *check_backend_with(const struct spokei_sheet *sheet,
				      const struct spokei_entry **ret_entry)
{
	const struct spokei_entry *backend = find_entry(sheet, SPOKEI_IN_COMET,
							SPOKEI_KEY_COMET_BACKEND);
	const bool has_registry = find_entry(sheet, SPOKEI_IN_REGISTRY, SPOKEI_KEY_REGISTRY_URL);
	bool listed;

	*ret_entry = backend;
	if (backend == NULL)
		return NULL;
	listed = strncmp(backend->text, NO_PLACE, strlen(NO_PLACE)) == 0;
	if (listed == has_registry)
		return NULL;
	return listed ? "consumer:// has no address; set url in [registry] too, or write "
			"dubbo://HOST:PORT/SERVICE"
		      : "an address and the url in [registry] exclude each other; write "
			"consumer://any/SERVICE";
}

/* Does the section ask for TLS? */
static bool has_tls(const struct spokei_part *provider)
{
	const struct spokei_entry *tls = spokei_sheet_entry(provider, SPOKEI_KEY_TLS);
	enum spokei_tls_mode mode = SPOKEI_TLS_OFF;

	return tls && spokei_check_tls_mode(tls->text, &mode) && mode != SPOKEI_TLS_OFF;
}

/* Checks the addresses of a sheet without errors. Returns 0; EINVAL, with a sentence about
 * *ret_entry; or ENOMEM, also with a sentence. */
static int check_listen_with(const struct spokei_sheet *sheet,
			     const struct spokei_entry **ret_entry, const char **ret_why)
{
	const struct spoke_span none = { NULL, 0 };
	const struct spokei_part *provider = spokei_sheet_part(sheet, SPOKEI_IN_PROVIDER, none);
	const struct spokei_entry *listen = spokei_sheet_entry(provider, SPOKEI_KEY_LISTEN);
	const bool concerns = listen && has_tls(provider);
	const char *at = concerns ? listen->text : NULL;
	struct spoke_span item;

	*ret_entry = listen;
	while (concerns && spokei_option_item(&at, &item)) {
		struct spoke_url url;
		bool refused;

		*ret_why = "out of memory";
		if (spoke_url_parse(sheet->env, item.data, item.len, &url, NULL))
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
	struct spokei_sheet *sheet;
	char name[NAME_SHOWN]; /* of the file */
	spoke_config_message_fn told;
	void *arg;
	unsigned line;
	unsigned wrong;
	struct spokei_part *part; /* current section; NULL: none yet, or it is invalid */
	bool begun;               /* a section has begun */
	bool poor;                /* out of memory */
};

/* --- messages */

SPOKEI_PRINTF(3, 4)
static void tell(struct reader *reader, const char *subject, const char *format, ...)
{
	char sentence[SPOKEI_SHEET_SENTENCE_MAX];
	char why[WHY_MAX];
	va_list args;

	if (++reader->wrong > SPOKEI_SHEET_ERRORS_MAX || reader->told == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (reader->wrong == SPOKEI_SHEET_ERRORS_MAX)
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

	spokei_sheet_show(key, shown_key, sizeof(shown_key));
	spokei_sheet_show(spokei_sheet_is_secret(key) ? SPOKEI_SHEET_HIDDEN : value, shown_value,
			  sizeof(shown_value));
	(void)snprintf(subject.text, sizeof(subject.text), "%s = %s", shown_key, shown_value);
	return subject;
}

/* --- sections */

/* Begins a section. */
static void open_part(struct reader *reader, enum spokei_section kind, const char *name)
{
	struct spokei_sheet *sheet = reader->sheet;

	for (size_t i = 0; i < sheet->part_count && reader->part == NULL; i++)
		if (sheet->parts[i].kind == kind && strcmp(sheet->parts[i].name, name) == 0)
			reader->part = &sheet->parts[i];
	if (reader->part)
		return;
	if (sheet->part_count == sheet->part_room) {
		tell(reader, "", "too many sections; at most %u", SPOKEI_SHEET_PARTS_MAX);
		return;
	}
	reader->part = &sheet->parts[sheet->part_count++];
	*reader->part = (struct spokei_part){ .kind = kind, .name = name };
}

static void refuse_section(struct reader *reader, const char *heading, const char *meant)
{
	char shown[SHOWN];

	spokei_sheet_show(heading, shown, sizeof(shown));
	if (meant) {
		tell(reader, "", "[%s]: no such section; did you mean [%s]?", shown, meant);
		return;
	}
	tell(reader, "",
	     "[%s]: no such section; use [consumer], [service.NAME], [method.NAME], "
	     "[provider], [registry], [lease], [comet] or [engine]",
	     shown);
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
	if (spokei_sheet_heading(heading, &kind, &name)) {
		wrong = spokei_check_name(name);
		spokei_sheet_show(heading, shown, sizeof(shown));
		if (wrong && !told)
			tell(reader, "", "[%s]: %s", shown, wrong);
		open_part(reader, kind, name);
		return;
	}
	guessed = spokei_sheet_guess(heading, &kind);
	if (!told)
		refuse_section(reader, heading, guessed ? spokei_section_name(kind) : NULL);
	if (guessed)
		open_part(reader, kind, dot && spokei_section_is_named(kind) ? dot + 1 : "");
}

/* Parses a heading "[consumer]", with an optional comment. */
static void read_section(struct reader *reader, char *at)
{
	char *end = strchr(at, ']');
	bool wrong = end == NULL || !is_comment(skip_blanks(end + 1));

	reader->begun = true;
	reader->part = NULL;
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

static bool may_stand(enum spokei_key key, enum spokei_section section)
{
	return spokei_key_row(key)->sections & 1u << section;
}

static const char *key_of_section(const void *of, size_t i)
{
	const struct spokei_part *part = of;

	return may_stand((enum spokei_key)i, part->kind) ? spokei_key_in_file((enum spokei_key)i)
							 : NULL;
}

static const char *key_of_any(const void *of, size_t i)
{
	(void)of;
	return spokei_key_in_file((enum spokei_key)i);
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
		spokei_key_sections(key, "[", "]", sections, sizeof(sections));
		tell(reader, subject, "not allowed here; write %s in %s", spokei_key_in_file(key),
		     sections);
		return;
	}
	nearest = spokei_similar_nearest(name, key_of_section, reader->part, SPOKEI_KEYS);
	if (nearest == NULL)
		nearest = spokei_similar_nearest(name, key_of_any, NULL, SPOKEI_KEYS);
	tell(reader, subject, "no such key%s%s%s", nearest ? "; did you mean " : "",
	     nearest ? nearest : "; see spoke config --explain", nearest ? "?" : "");
}

/* Checks the URL of a store, which may name several hosts. */
static void check_store(struct reader *reader, struct spoke_span text, const char *subject)
{
	struct spoke_url_error why;
	struct spokei_store store;
	int error = spokei_store_parse(reader->sheet->env, text.data, text.len, &store, &why);

	if (error == SPOKE_OK) {
		spokei_store_fini(&store);
		return;
	}
	reader->poor |= error == SPOKE_ENOMEM;
	tell(reader, subject, "%s", error == SPOKE_ENOMEM ? "out of memory" : why.text);
}

/* Checks a URL. */
static void check_url(struct reader *reader, enum spokei_key key, struct spoke_span text,
		      const char *subject)
{
	char sentence[SPOKEI_CHECK_WHY];
	struct spoke_url_error why;
	struct spoke_url url;
	const char *wrong;
	int error;

	if (key == SPOKEI_KEY_LEASE_STORE) {
		check_store(reader, text, subject);
		return;
	}
	error = spoke_url_parse(reader->sheet->env, text.data, text.len, &url, &why);

	if (error) {
		reader->poor |= error == SPOKE_ENOMEM;
		tell(reader, subject, "%s", error == SPOKE_ENOMEM ? "out of memory" : why.text);
		return;
	}
	wrong = key == SPOKEI_KEY_LISTEN ? spokei_check_listen(reader->sheet->env, &url, sentence)
		: key == SPOKEI_KEY_REGISTRY_URL  ? spokei_check_registry(&url)
		: key == SPOKEI_KEY_COMET_BACKEND ? check_backend(&url)
						  : NULL;
	if (wrong)
		tell(reader, subject, "%s", wrong);
	spoke_url_fini(&url);
}

/* Checks one URL or each of a list. */
static void check_urls(struct reader *reader, enum spokei_key key, const char *value,
		       const char *subject)
{
	const char *at = value;
	struct spoke_span item;

	if (spokei_key_row(key)->option.kind != SPOKEI_OPTION_LIST)
		check_url(reader, key, (struct spoke_span){ value, strlen(value) }, subject);
	else
		while (spokei_option_item(&at, &item))
			check_url(reader, key, item, subject);
}

/* Adds a key with the number 0, even if its value is invalid, so that a second line for it is
 * reported. Returns NULL if the key cannot be added. */
static struct spokei_entry *add_entry(struct reader *reader, enum spokei_key key, const char *value,
				      const char *subject)
{
	const struct spokei_entry *first = spokei_sheet_entry(reader->part, key);
	struct spokei_sheet *sheet = reader->sheet;
	struct spokei_entry *entry;

	if (first) {
		tell(reader, subject, "already set in line %u; keep one of them", first->line);
		return NULL;
	}
	if (sheet->entry_count == sheet->entry_room) {
		tell(reader, subject, "too many keys; at most %u", SPOKEI_SHEET_KEYS_MAX);
		return NULL;
	}
	entry = &sheet->entries[sheet->entry_count++];
	*entry = (struct spokei_entry){
		.key = key,
		.line = reader->line,
		.text = value,
	};
	if (reader->part->last)
		reader->part->last->next = entry;
	else
		reader->part->first = entry;
	reader->part->last = entry;
	return entry;
}

/* Checks a text that is a name or a token. */
static void check_text(struct reader *reader, enum spokei_key key, const char *value,
		       const char *subject)
{
	const struct spoke_env *env = reader->sheet->env;
	char sentence[SPOKEI_CHECK_WHY];
	const char *why = spokei_check_in_section(reader->part->kind, key, value);
	int error = SPOKE_OK;

	if (why)
		error = SPOKE_EINVAL;
	else if (key == SPOKEI_KEY_ADVERTISE)
		error = spokei_check_advertised(env, value, &why);
	else if (key == SPOKEI_KEY_ADMIN)
		error = spokei_check_admin(env, value, &why);
	reader->poor |= error == SPOKE_ENOMEM;
	if (error == SPOKE_OK)
		why = spokei_check_list(env, key, value, sentence);
	if (why)
		tell(reader, subject, "%s", why);
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
	else if (row->is_url)
		check_urls(reader, key, value, subject.text);
	else
		check_text(reader, key, value, subject.text);
}

/* Returns the key of this name in the current section; SPOKEI_KEYS: none. */
static enum spokei_key find_key(const struct reader *reader, const char *name)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const char *other = key_of_section(reader->part, i);

		if (other && strcmp(other, name) == 0)
			return (enum spokei_key)i;
	}
	return SPOKEI_KEYS;
}

/* Parses "key = value", with an optional comment. */
static void read_pair(struct reader *reader, char *at)
{
	char *equals = strchr(at, '=');
	struct spokei_entry *entry;
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
	if (reader->part == NULL)
		return;
	key = find_key(reader, at);
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
	if (len > SPOKEI_SHEET_LINE_MAX) {
		tell(reader, "", "the line is too long; at most %u bytes", SPOKEI_SHEET_LINE_MAX);
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
	while (at < end && reader->wrong < SPOKEI_SHEET_ERRORS_MAX) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		if (stop == NULL)
			stop = end;
		*stop = '\0';
		reader->line++;
		read_line(reader, at, (size_t)(stop - at));
		at = stop + 1;
	}
}

static void tell_of(struct reader *reader, const struct spokei_entry *entry, const char *wrong)
{
	reader->line = entry->line;
	tell(reader, pair_shown(spokei_key_in_file(entry->key), entry->text).text, "%s", wrong);
}

/* Checks URLs that depend on other keys, which may stand below them. */
static void check_across(struct reader *reader)
{
	const struct spokei_entry *entry;
	const char *wrong = reader->wrong ? NULL : check_backend_with(reader->sheet, &entry);
	int error;

	if (wrong)
		tell_of(reader, entry, wrong);
	error = reader->wrong ? SPOKE_OK : check_listen_with(reader->sheet, &entry, &wrong);
	if (error)
		tell_of(reader, entry, wrong);
	reader->poor |= error == SPOKE_ENOMEM;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Allocates memory for this many lines. Returns whether that succeeded. */
static bool make_room(struct spokei_sheet *sheet, struct spoke_span text)
{
	const char *bytes = text.data;
	size_t lines = 1;

	for (size_t i = 0; i < text.len; i++)
		lines += bytes[i] == '\n';
	sheet->text_size = text.len + 1;
	sheet->text = spokei_alloc_unset(sheet->env, sheet->text_size);
	sheet->part_room = smaller(lines, SPOKEI_SHEET_PARTS_MAX);
	sheet->parts = spokei_alloc(sheet->env, sheet->part_room, sizeof(*sheet->parts));
	sheet->entry_room = smaller(lines, SPOKEI_SHEET_KEYS_MAX);
	sheet->entries = spokei_alloc(sheet->env, sheet->entry_room, sizeof(*sheet->entries));
	return sheet->text && sheet->parts && sheet->entries;
}

int spokei_sheet_read(const struct spoke_env *env, const char *name, struct spoke_span text,
		      spoke_config_message_fn told, void *arg, struct spokei_sheet *ret)
{
	struct spokei_sheet sheet = { .env = env };
	struct reader reader = { .sheet = &sheet, .told = told, .arg = arg };
	int error = SPOKE_OK;

	(void)spokei_log_escape_end(reader.name, sizeof(reader.name), name, strlen(name));
	if (text.len > SPOKE_CONFIG_MAX) {
		error = SPOKE_ETOOLARGE;
		tell(&reader, "", "the file is too large; at most %u bytes", SPOKE_CONFIG_MAX);
	} else if (!make_room(&sheet, text)) {
		error = SPOKE_ENOMEM;
		tell(&reader, "", "out of memory while reading the file");
	} else {
		if (text.len)
			memcpy(sheet.text, text.data, text.len);
		read_lines(&reader, sheet.text, sheet.text + text.len);
		check_across(&reader);
		error = reader.wrong ? SPOKE_ESYNTAX : SPOKE_OK;
		error = reader.poor ? SPOKE_ENOMEM : error;
	}
	if (error)
		spokei_sheet_fini(&sheet);
	else
		*ret = sheet;
	return error;
}
