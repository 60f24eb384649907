/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a file of settings, line by line. A line that is wrong is told and left out, and the next
 * one is read, so that all that is wrong is told at once.
 */
#include "cluster/config/check.h"
#include "cluster/config/line.h"
#include "cluster/config/sheet.h"
#include "core/base/log.h"
#include "core/text/similar.h"
#include "transport/wire/catalog.h"

#include <stdarg.h>
#include <stdio.h>

#define SHOWN 96u       /* bytes of a key or value in a sentence, with the NUL */
#define NAME_SHOWN 256u /* ... of a file's name */
#define WHY_MAX 384u
#define HEADING_MAX 1024u

struct reader {
	struct spokei_sheet *sheet;
	char name[NAME_SHOWN]; /* the file's */
	spoke_config_changed_fn told;
	void *arg;
	unsigned line;
	unsigned wrong;
	struct spokei_part *part; /* lines belong to; NULL: none yet, or one that was refused */
	bool begun;               /* there was a section */
	bool poor;                /* there was no memory */
};

/* --- telling */

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
		(void)snprintf(why, sizeof(why),
			       "more is wrong than can be told; mend what is above first");
	if (reader->line == 0)
		(void)snprintf(sentence, sizeof(sentence), "%s: %s", reader->name, why);
	else
		(void)snprintf(sentence, sizeof(sentence), "%s:%u: %s%s%s", reader->name,
			       reader->line, subject, *subject ? ": " : "", why);
	reader->told(reader->arg, sentence);
}

/* A line as it is shown. */
struct subject {
	char text[2 * SHOWN + 4];
};

static struct subject pair_shown(const char *key, const char *value)
{
	char shown_key[SHOWN];
	char shown_value[SHOWN];
	struct subject subject;

	spokei_sheet_show(key, shown_key, sizeof(shown_key));
	spokei_sheet_show(value, shown_value, sizeof(shown_value));
	(void)snprintf(subject.text, sizeof(subject.text), "%s = %s", shown_key, shown_value);
	return subject;
}

/* --- sections */

/* What follows belongs to this section. */
static void open_part(struct reader *reader, enum spokei_section kind, const char *name)
{
	struct spokei_sheet *sheet = reader->sheet;

	for (size_t i = 0; i < sheet->part_count && reader->part == NULL; i++)
		if (sheet->parts[i].kind == kind && strcmp(sheet->parts[i].name, name) == 0)
			reader->part = &sheet->parts[i];
	if (reader->part)
		return;
	if (sheet->part_count == sheet->part_room) {
		tell(reader, "", "too many sections; there may be %u", SPOKEI_SHEET_PARTS_MAX);
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
		tell(reader, "", "[%s]: there is no such section; did you mean [%s]?", shown,
		     meant);
		return;
	}
	tell(reader, "",
	     "[%s]: there is no such section; use [consumer], [service.NAME], [method.NAME], "
	     "[provider], [registry] or [engine]",
	     shown);
}

/* What stands in a section that is misspelt is judged as if it were what is likely to be meant; a
 * section of which nobody can tell is not gone into. `told`: something was wrong with the line. */
static void enter_section(struct reader *reader, char *heading, bool told)
{
	const char *dot = strchr(heading, '.');
	enum spokei_section kind;
	char shown[SHOWN];
	const char *wrong;
	const char *name;
	bool guessed;

	if (strlen(heading) > HEADING_MAX) {
		tell(reader, "", "the name of the section is too long; it has at most %u bytes",
		     HEADING_MAX);
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

/* "[consumer]", and perhaps a comment. */
static void read_section(struct reader *reader, char *at)
{
	char *end = strchr(at, ']');
	bool wrong = end == NULL || !spokei_line_is_comment(spokei_line_skip(end + 1));

	reader->begun = true;
	reader->part = NULL;
	if (wrong)
		tell(reader, "", "not a section; write one as [consumer]");
	at = spokei_line_skip(at + 1);
	if (end)
		*end = '\0';
	else
		spokei_line_cut(at);
	spokei_line_trim(at);
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

/* A key that there is, but elsewhere; or none. */
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
		tell(reader, subject, "it does not belong here; write %s in %s",
		     spokei_key_in_file(key), sections);
		return;
	}
	nearest = spokei_similar_nearest(name, key_of_section, reader->part, SPOKEI_KEYS);
	if (nearest == NULL)
		nearest = spokei_similar_nearest(name, key_of_any, NULL, SPOKEI_KEYS);
	tell(reader, subject, "there is no such key%s%s%s", nearest ? "; did you mean " : "",
	     nearest ? nearest : "; spoke config --explain has all", nearest ? "?" : "");
}

/* What is wrong with a place to listen at, as far as the text tells; NULL: nothing. */
static const char *judge_place(const struct spoke_env *env, const struct spoke_url *url)
{
	struct spoke_address unused;
	const char *why = NULL;
	enum spokei_sharing sharing;

	if (*url->scheme && spokei_catalog_wire(url->scheme) == NULL)
		return "the scheme is not known; use dubbo or msgpack-rpc";
	for (unsigned i = 0; i < url->parameter_count; i++)
		if (!spokei_check_is_place_key(url->parameters[i].key))
			return "a place has no parameters but shared; write others as keys of "
			       "[provider]";
	if (spokei_check_shared(url, &sharing, &why))
		return why;
	return spokei_check_place(env, url, &unused, &why) ? why : NULL;
}

/* A URL. */
static void check_url(struct reader *reader, enum spokei_key key, struct spoke_span text,
		      const char *subject)
{
	struct spoke_url_error why;
	struct spoke_url url;
	const char *wrong;
	int error = spoke_url_parse(reader->sheet->env, text.data, text.len, &url, &why);

	if (error) {
		reader->poor |= error == SPOKE_ENOMEM;
		tell(reader, subject, "%s",
		     error == SPOKE_ENOMEM ? "no memory to read it" : why.text);
		return;
	}
	wrong = key == SPOKEI_KEY_LISTEN ? judge_place(reader->sheet->env, &url) : NULL;
	if (wrong)
		tell(reader, subject, "%s", wrong);
	spoke_url_fini(&url);
}

/* One URL, or each of a list. */
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

/* Notes that a key is said, with the number 0; also if what is said turns out to be wrong, for the
 * next one says it again all the same. NULL: there is none to be noted. */
static struct spokei_entry *add_entry(struct reader *reader, enum spokei_key key, const char *value,
				      const char *subject)
{
	const struct spokei_entry *first = spokei_sheet_entry(reader->part, key);
	struct spokei_sheet *sheet = reader->sheet;
	struct spokei_entry *entry;

	if (first) {
		tell(reader, subject, "said before, in line %u; keep one of them", first->line);
		return NULL;
	}
	if (sheet->entry_count == sheet->entry_room) {
		tell(reader, subject, "too many keys; there may be %u", SPOKEI_SHEET_KEYS_MAX);
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

/* A text that is the name of something. */
static void check_text(struct reader *reader, enum spokei_key key, const char *value,
		       const char *subject)
{
	const struct spoke_env *env = reader->sheet->env;
	const char *why = NULL;
	int error = SPOKE_OK;

	if (key == SPOKEI_KEY_ADVERTISE)
		error = spokei_check_advertised(env, value, &why);
	else if (key == SPOKEI_KEY_ADMIN)
		error = spokei_check_admin(env, value, &why);
	reader->poor |= error == SPOKE_ENOMEM;
	if (error)
		tell(reader, subject, "%s", why);
}

static void read_value(struct reader *reader, enum spokei_key key, const char *value,
		       uint64_t *ret_number)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const struct subject subject = pair_shown(spokei_key_in_file(key), value);
	char why[SPOKEI_OPTION_WHY_MAX];

	if (*value == '\0')
		tell(reader, subject.text, "there is no value; write one, or leave the line out");
	else if (spokei_option_read(&row->option, value, false, ret_number, why, sizeof(why)))
		tell(reader, subject.text, "%s", why);
	else if (row->is_url)
		check_urls(reader, key, value, subject.text);
	else
		check_text(reader, key, value, subject.text);
}

/* The key of this name in the present section; SPOKEI_KEYS: none. */
static enum spokei_key find_key(const struct reader *reader, const char *name)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const char *other = key_of_section(reader->part, i);

		if (other && strcmp(other, name) == 0)
			return (enum spokei_key)i;
	}
	return SPOKEI_KEYS;
}

/* "key = value", and perhaps a comment. */
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
	spokei_line_trim(at);
	value = spokei_line_skip(equals + 1);
	subject = pair_shown(at, value);
	if (*value == '"')
		wrong = spokei_line_unquote(value, &value);
	else
		spokei_line_cut(value);
	if (wrong)
		tell(reader, subject.text, "%s", wrong);
	else
		subject = pair_shown(at, value);
	if (!reader->begun)
		tell(reader, subject.text,
		     "it stands before the first section; write one above it, as [consumer]");
	/* What is said in a section that there is not is not judged. */
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

/* A line, which ends with a NUL where it ended. */
static void read_line(struct reader *reader, char *line, size_t len)
{
	char *at;

	if (len > 0 && line[len - 1] == '\r')
		line[--len] = '\0';
	if (len > SPOKEI_SHEET_LINE_MAX) {
		tell(reader, "", "the line is too long; it has at most %u bytes",
		     SPOKEI_SHEET_LINE_MAX);
		return;
	}
	if (memchr(line, '\0', len)) {
		tell(reader, "", "there is a NUL byte, which no text has; is this the right file?");
		return;
	}
	at = spokei_line_skip(line);
	if (spokei_line_is_comment(at))
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

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Room for what so many lines may say. Returns whether there is memory. */
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
		      spoke_config_changed_fn told, void *arg, struct spokei_sheet *ret)
{
	struct spokei_sheet sheet = { .env = env };
	struct reader reader = { .sheet = &sheet, .told = told, .arg = arg };
	int error = SPOKE_OK;

	(void)spokei_log_escape(reader.name, sizeof(reader.name), name, strlen(name));
	if (text.len > SPOKE_CONFIG_MAX) {
		error = SPOKE_ETOOLARGE;
		tell(&reader, "", "the file is too large; it has at most %u bytes",
		     SPOKE_CONFIG_MAX);
	} else if (!make_room(&sheet, text)) {
		error = SPOKE_ENOMEM;
		tell(&reader, "", "no memory to read the file");
	} else {
		if (text.len)
			memcpy(sheet.text, text.data, text.len);
		read_lines(&reader, sheet.text, sheet.text + text.len);
		error = reader.wrong ? SPOKE_ESYNTAX : SPOKE_OK;
		error = reader.poor ? SPOKE_ENOMEM : error;
	}
	if (error)
		spokei_sheet_fini(&sheet);
	else
		*ret = sheet;
	return error;
}
