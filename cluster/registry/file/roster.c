/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and edits the text of a registry file. */
#include "cluster/registry/file/roster.h"

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

static bool is_same_text(const char *one, const char *other)
{
	return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool is_same_parameter(const struct spoke_url *one, const struct spoke_url *other,
			      const char *key)
{
	return is_same_text(spoke_url_get(one, key), spoke_url_get(other, key));
}

bool spokei_roster_same(const struct spoke_url *one, const struct spoke_url *other)
{
	return one->port == other->port && is_same_text(one->scheme, other->scheme) &&
	       is_same_text(one->host, other->host) && is_same_text(one->socket, other->socket) &&
	       is_same_text(spokei_roster_service(one), spokei_roster_service(other)) &&
	       is_same_parameter(one, other, "group") && is_same_parameter(one, other, "version");
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

static int append_line(struct spokei_buffer *out, const char *text, size_t len)
{
	int error = spokei_buffer_append(out, text, len);

	return error ? error : spokei_buffer_append(out, "\n", 1);
}

int spokei_roster_edit(const char *text, size_t len, const struct spoke_url *url, const char *entry,
		       struct spokei_buffer *out)
{
	struct spokei_roster_line line = { 0 };
	int error = SPOKE_OK;

	while (!error && spokei_roster_next(text, len, &line)) {
		int about = is_about(out->env, &line, url);

		if (about < 0) {
			error = about;
		} else if (about == 0) {
			bool ended = text[line.next - 1] == '\n';

			error = append_line(out, text + line.start,
					    line.next - line.start - (ended ? 1 : 0));
		} else if (entry) {
			error = append_line(out, entry, strlen(entry));
			entry = NULL;
		}
	}
	if (!error && entry)
		error = append_line(out, entry, strlen(entry));
	return error;
}
