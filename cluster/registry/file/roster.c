/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and edits the text of a registry file. */
#include "cluster/registry/file/roster.h"

#include "cluster/registry/urls.h"

#include <string.h>

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

bool spokei_roster_next(const char *text, size_t len, struct spokei_roster_line *line)
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

const char *spokei_roster_service(const struct spoke_url *url)
{
	const char *service = spoke_url_get(url, "interface");

	return service && *service ? service : url->path;
}

bool spokei_roster_provides(const struct spoke_url *url, const char *service)
{
	return strcmp(spokei_roster_service(url), service) == 0 || strcmp(url->path, service) == 0;
}

bool spokei_roster_same(const struct spoke_url *one, const struct spoke_url *other)
{
	return spokei_urls_same(one, other) &&
	       strcmp(spokei_roster_service(one), spokei_roster_service(other)) == 0;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (!(*text >= 'a' && *text <= 'z') && !(*text >= 'A' && *text <= 'Z') &&
		    !(*text >= '0' && *text <= '9') && *text != '.' && *text != '_')
			return false;
	return true;
}

/* A plain name stands in a line unencoded: searching for it is faster than parsing the line
 * when many services are published at the same time. */
static bool may_name(const struct spokei_roster_line *line, const char *service)
{
	const char *at = line->text;
	size_t left = line->len;
	size_t len = strlen(service);

	if (len == 0 || !is_plain(service))
		return true;
	while (left >= len) {
		const char *found = memchr(at, service[0], left - len + 1);

		if (found == NULL)
			return false;
		if (memcmp(found, service, len) == 0)
			return true;
		left -= (size_t)(found + 1 - at);
		at = found + 1;
	}
	return false;
}

/* Returns whether the line is about the same provider, 0 or 1, or SPOKE_ENOMEM. An invalid
 * line is not. */
static int is_about(const struct spoke_env *env, const struct spokei_roster_line *line,
		    const struct spoke_url *url)
{
	struct spoke_url listed;
	int error;
	int same;

	if (line->len == 0 || !may_name(line, spokei_roster_service(url)))
		return 0;
	error = spoke_url_parse(env, line->text, line->len, &listed, NULL);
	if (error)
		return error == SPOKE_ENOMEM ? error : 0;
	same = spokei_roster_same(&listed, url) ? 1 : 0;
	spoke_url_fini(&listed);
	return same;
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

bool spokei_roster_mark(const char *text, size_t len, char ret_mark[SPOKEI_ROSTER_MARK])
{
	const char *at = find_mark(text, len);

	if (at == NULL)
		return false;
	memcpy(ret_mark, at + KEY_LEN, SPOKE_MARK_DIGITS);
	ret_mark[SPOKE_MARK_DIGITS] = '\0';
	return true;
}

int spokei_roster_unmark(const char *text, size_t len, struct spokei_buffer *out)
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

/* --- changes */

static int append_line(struct spokei_buffer *out, const char *text, size_t len)
{
	int error = spokei_buffer_append(out, text, len);

	return error ? error : spokei_buffer_append(out, "\n", 1);
}

/* Appends a line of the text as it is, but ended. */
static int keep_line(struct spokei_buffer *out, const char *text,
		     const struct spokei_roster_line *line)
{
	bool ended = text[line->next - 1] == '\n';

	return append_line(out, text + line->start, line->next - line->start - (ended ? 1 : 0));
}

/* A URL of the greatest length has no room for a mark. */
static int append_entry(struct spokei_buffer *out, const struct spokei_roster_entry *entry)
{
	size_t len = strlen(entry->text);
	int error;

	if (entry->mark == NULL || len + 1 + KEY_LEN + SPOKE_MARK_DIGITS > SPOKE_URL_MAX)
		return append_line(out, entry->text, len);
	error = spokei_buffer_append(out, entry->text, len);
	if (!error)
		error = spokei_buffer_append(out, strchr(entry->text, '?') ? "&" KEY : "?" KEY,
					     1 + KEY_LEN);
	return error ? error : append_line(out, entry->mark, SPOKE_MARK_DIGITS);
}

int spokei_roster_edit(const char *text, size_t len, const struct spokei_roster_entry *entry,
		       struct spokei_buffer *out)
{
	struct spokei_roster_line line = { 0 };
	bool due = entry->text != NULL;
	int error = SPOKE_OK;

	while (!error && spokei_roster_next(text, len, &line)) {
		int about = is_about(out->env, &line, entry->url);

		if (about < 0) {
			error = about;
		} else if (about == 0) {
			error = keep_line(out, text, &line);
		} else if (due) {
			error = append_entry(out, entry);
			due = false;
		}
	}
	if (!error && due)
		error = append_entry(out, entry);
	return error;
}

int spokei_roster_sift(const char *text, size_t len,
		       bool (*is_dead)(void *arg, const struct spokei_roster_line *line), void *arg,
		       struct spokei_buffer *out, unsigned *ret_dead)
{
	struct spokei_roster_line line = { 0 };
	int error = SPOKE_OK;

	*ret_dead = 0;
	while (!error && spokei_roster_next(text, len, &line)) {
		if (is_dead(arg, &line))
			++*ret_dead;
		else
			error = keep_line(out, text, &line);
	}
	return error;
}
