/* SPDX-License-Identifier: Apache-2.0 */
/* Reads routing rules: YAML, then the language of conditions, which is cut into words in place. */
#include "cluster/route/rule.h"

#include "core/base/env.h"
#include "core/base/siphash.h"
#include "core/base/span.h"
#include "core/text/range.h"
#include "core/text/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define BLANKS " \t\n\v\f\r"
#define SIGNS "&!=,"
#define URLS_MAX 256u /* routers that are read */
#define WEIGHT 100u   /* of a destination that sets none */
#define WEIGHT_MAX 1000000u

/* --- memory */

struct reader {
	struct spokei_route_rule *rule;
	uint32_t word_count; /* with the unused first one */
	uint32_t word_room;
	uint32_t destination_count;
	char *texts; /* the bytes that are cut */
	const char *why;
	int error;
};

/* Returns false, so that callers can return the result. */
static bool refuse(struct reader *reader, int error, const char *why)
{
	reader->why = why;
	reader->error = error;
	return false;
}

/* Makes a rule with room for so many conditions, destinations and tags each, and for the words of
 * texts of `size` bytes. Returns 0 or SPOKE_ENOMEM. */
static int make(const struct spoke_env *env, size_t items, size_t size, struct reader *ret)
{
	size_t words = size / 2 + 2 < SPOKEI_ROUTE_WORDS ? size / 2 + 2 : SPOKEI_ROUTE_WORDS;
	size_t all = sizeof(struct spokei_route_rule) + size +
		     items * (sizeof(struct spokei_route_condition) +
			      sizeof(struct spokei_route_destination) +
			      sizeof(struct spokei_route_tag)) +
		     words * sizeof(struct spokei_route_word);
	struct spokei_route_rule *rule = spokei_alloc(env, 1, all);

	if (rule == NULL)
		return SPOKE_ENOMEM;
	rule->env = env;
	rule->size = all;
	/* The largest elements first, so that all are aligned. */
	rule->words = (struct spokei_route_word *)(rule + 1);
	rule->tags = (struct spokei_route_tag *)(rule->words + words);
	rule->conditions = (struct spokei_route_condition *)(rule->tags + items);
	rule->destinations = (struct spokei_route_destination *)(rule->conditions + items);
	*ret = (struct reader){
		.rule = rule,
		.word_count = 1,
		.word_room = (uint32_t)words,
		.texts = (char *)(rule->destinations + items),
	};
	return SPOKE_OK;
}

void spokei_route_free(struct spokei_route_rule *rule)
{
	if (rule)
		spokei_free(rule->env, rule, 1, rule->size);
}

/* Returns the number of a new word behind the last one of a list; 0: there are too many. */
static uint32_t add_word(struct reader *reader, uint32_t *list, const char *text)
{
	struct spokei_route_word *words = reader->rule->words;

	if (reader->word_count == reader->word_room) {
		(void)refuse(reader, SPOKE_ETOOLARGE, "more than 4,095 keys and values");
		return 0;
	}
	while (*list)
		list = &words[*list].next;
	*list = reader->word_count;
	words[*list] = (struct spokei_route_word){ .text = text };
	return reader->word_count++;
}

/* --- conditions */

/* The words of one side of a condition. */
struct cutter {
	char *at;
	char first; /* the byte at `at`, which may have been replaced by a NUL */
	size_t len; /* of the signs before the word, */
	char sign;  /* and the last of them */
	char *word; /* NULL: there is no further one */
	uint32_t key;
	uint32_t valued; /* the key that has got the last value */
	bool denied;     /* that value follows "!=" */
};

static bool is_in(char byte, const char *bytes)
{
	return byte != '\0' && strchr(bytes, byte) != NULL;
}

/* Cuts the next word off. Of several groups of signs before it only the last one counts. */
static void cut(struct cutter *cutter)
{
	char byte = cutter->first;
	bool apart = true;

	cutter->len = 0;
	for (; is_in(byte, BLANKS SIGNS); byte = *++cutter->at) {
		if (is_in(byte, SIGNS)) {
			cutter->len = apart ? 1 : cutter->len + 1;
			cutter->sign = cutter->len == 2 && byte == '=' && cutter->sign == '!'
					       ? '~'
					       : byte;
		}
		apart = is_in(byte, BLANKS);
	}
	cutter->word = NULL;
	if (byte == '\0')
		return;
	cutter->word = cutter->at;
	cutter->at += strcspn(cutter->at, BLANKS SIGNS);
	cutter->first = *cutter->at;
	*cutter->at = '\0';
}

static uint32_t find_word(const struct spokei_route_rule *rule, uint32_t list, const char *text)
{
	while (list && strcmp(rule->words[list].text, text) != 0)
		list = rule->words[list].next;
	return list;
}

/* Begins a key, or goes on with the values that it has: only after "&". */
static bool take_key(struct reader *reader, struct cutter *cutter, uint32_t *keys)
{
	cutter->key = find_word(reader->rule, *keys, cutter->word);
	if (cutter->key == 0)
		cutter->key = add_word(reader, keys, cutter->word);
	else if (cutter->len == 0)
		reader->rule->words[cutter->key].values = 0;
	return cutter->key != 0;
}

static bool take_value(struct reader *reader, struct cutter *cutter)
{
	uint32_t value = add_word(reader, &reader->rule->words[cutter->valued].values,
				  cutter->word);

	if (value)
		reader->rule->words[value].denied = cutter->denied;
	return value != 0;
}

static bool take_word(struct reader *reader, struct cutter *cutter, uint32_t *keys)
{
	if (cutter->len == 0 || (cutter->len == 1 && cutter->sign == '&'))
		return take_key(reader, cutter, keys);
	if (cutter->len == 1 && cutter->sign == ',' && cutter->valued)
		return take_value(reader, cutter);
	if (cutter->key == 0 || !((cutter->len == 1 && cutter->sign == '=') ||
				  (cutter->len == 2 && cutter->sign == '~')))
		return refuse(reader, SPOKE_ESYNTAX,
			      "a condition has signs that are none of & = != and a comma");
	cutter->valued = cutter->key;
	cutter->denied = cutter->len == 2;
	return take_value(reader, cutter);
}

/* Reads one side, e.g. "region=north,south & port!=20880". */
static bool read_side(struct reader *reader, char *text, uint32_t *ret_keys)
{
	struct cutter cutter = { .at = text, .first = *text };

	*ret_keys = 0;
	for (cut(&cutter); cutter.word; cut(&cutter))
		if (!take_word(reader, &cutter, ret_keys))
			return false;
	return true;
}

/* Removes all occurrences of a word. */
static void drop(char *text, const char *word)
{
	size_t len = strlen(word);

	while ((text = strstr(text, word)) != NULL)
		memmove(text, text + len, strlen(text + len) + 1);
}

/* Returns the text without blanks around it. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len > 0 && is_in(text[len - 1], BLANKS))
		len--;
	text[len] = '\0';
	return text;
}

/* Returns whether the side is blank, or this word. */
static bool is_blank_or(const char *text, const char *word)
{
	return *text == '\0' || strcmp(text, word) == 0;
}

static struct spokei_route_condition *add_condition(struct reader *reader)
{
	struct spokei_route_rule *rule = reader->rule;

	if (rule->condition_count == SPOKEI_ROUTE_CONDITIONS) {
		(void)refuse(reader, SPOKE_ETOOLARGE, "more than 64 conditions");
		return NULL;
	}
	rule->conditions[rule->condition_count].first = reader->destination_count;
	return &rule->conditions[rule->condition_count++];
}

static bool read_when(struct reader *reader, char *text, struct spokei_route_condition *condition)
{
	text = trim(text);
	return is_blank_or(text, "true") || read_side(reader, text, &condition->when);
}

static bool add_destination(struct reader *reader, char *text, uint32_t weight,
			    struct spokei_route_condition *condition)
{
	struct spokei_route_destination *to =
		&reader->rule->destinations[reader->destination_count];

	if (condition->count == SPOKEI_ROUTE_DESTINATIONS)
		return refuse(reader, SPOKE_ETOOLARGE, "a condition has more than 32 destinations");
	to->weight = weight;
	reader->destination_count++;
	condition->count++;
	text = trim(text);
	return is_blank_or(text, "false") || read_side(reader, text, &to->keys);
}

/* Reads "when => then". A blank `then` leaves no provider. */
static bool read_condition(struct reader *reader, char *text, bool force)
{
	struct spokei_route_condition *condition = add_condition(reader);
	char *arrow;

	if (condition == NULL)
		return false;
	condition->force = force;
	if (*trim(text) == '\0')
		return refuse(reader, SPOKE_ESYNTAX, "a condition is blank");
	drop(text, "consumer.");
	drop(text, "provider.");
	arrow = strstr(text, "=>");
	if (arrow)
		*arrow = '\0';
	if (arrow && !read_when(reader, text, condition))
		return false;
	text = trim(arrow ? arrow + 2 : text);
	return is_blank_or(text, "false") || add_destination(reader, text, 0, condition);
}

/* --- YAML */

/* Returns the text of a value, which may be cut. */
static char *text_of(const struct reader *reader, const struct spokei_yaml *value)
{
	return value && value->text && *value->text ? reader->texts + (value->text - reader->texts)
						    : NULL;
}

/* Reads "true" or "false" into *ret, which keeps its value if there is none. */
static bool read_flag(struct reader *reader, const struct spokei_yaml *map, const char *key,
		      bool *ret)
{
	const struct spokei_yaml *value = spokei_yaml_get(map, key);

	if (value == NULL)
		return true;
	*ret = value->text && strcasecmp(value->text, "true") == 0;
	return *ret || (value->text && strcasecmp(value->text, "false") == 0) ||
	       refuse(reader, SPOKE_ESYNTAX, "force or enabled: write true or false");
}

static bool is_list(const struct spokei_yaml *value)
{
	return value && value->kind == SPOKEI_YAML_LIST;
}

static bool read_conditions(struct reader *reader, const struct spokei_yaml *list, bool force)
{
	for (const struct spokei_yaml *at = spokei_yaml_next(list, NULL); at;
	     at = spokei_yaml_next(list, at)) {
		char blank[] = "";
		char *text = text_of(reader, at);

		if (at->text == NULL)
			return refuse(reader, SPOKE_ESYNTAX, "a condition is no text");
		if (!read_condition(reader, text ? text : blank, force))
			return false;
	}
	return true;
}

/* Reads a destination of v3.1: {match: "region=north", weight: 100}. */
static bool read_to(struct reader *reader, const struct spokei_yaml *to,
		    struct spokei_route_condition *condition)
{
	const struct spokei_yaml *weight = spokei_yaml_get(to, "weight");
	const char *digits = text_of(reader, weight);
	char blank[] = "";
	char *match = text_of(reader, spokei_yaml_get(to, "match"));
	unsigned long number = digits ? strtoul(digits, NULL, 10) : WEIGHT;

	if (to->kind != SPOKEI_YAML_MAP ||
	    (weight && (digits == NULL || strspn(digits, "0123456789") != strlen(digits) ||
			number > WEIGHT_MAX)))
		return refuse(reader, SPOKE_ESYNTAX,
			      "to: write {match, weight}, where weight is a number up to 1000000");
	return add_destination(reader, match ? match : blank, (uint32_t)number, condition);
}

/* Reads a condition of v3.1: {from: {match: "method=find"}, to: [...]}. */
static bool read_drawn(struct reader *reader, const struct spokei_yaml *item, bool force)
{
	struct spokei_route_condition *condition = add_condition(reader);
	const struct spokei_yaml *from = spokei_yaml_get(item, "from");
	const struct spokei_yaml *to = spokei_yaml_get(item, "to");
	char *match = from ? text_of(reader, spokei_yaml_get(from, "match")) : NULL;

	if (condition == NULL)
		return false;
	if (from == NULL || from->kind != SPOKEI_YAML_MAP || !is_list(to))
		return refuse(reader, SPOKE_ESYNTAX, "a condition without from and a list to");
	condition->drawn = true;
	condition->force = force;
	if (match && !read_when(reader, match, condition))
		return false;
	for (const struct spokei_yaml *at = spokei_yaml_next(to, NULL); at;
	     at = spokei_yaml_next(to, at))
		if (!read_to(reader, at, condition))
			return false;
	return true;
}

static bool read_all_drawn(struct reader *reader, const struct spokei_yaml *list, bool force)
{
	for (const struct spokei_yaml *at = spokei_yaml_next(list, NULL); at;
	     at = spokei_yaml_next(list, at))
		if (!read_drawn(reader, at, force))
			return false;
	return true;
}

/* Returns whether the version of a rule begins with a text, in any case. */
static bool is_version(const char *version, const char *text)
{
	return version && strncasecmp(version, text, strlen(text)) == 0;
}

static bool read_router(struct reader *reader, const struct spokei_yaml *root, bool force)
{
	const struct spokei_yaml *list = spokei_yaml_get(root, "conditions");
	const char *version = text_of(reader, spokei_yaml_get(root, "configVersion"));

	if (version && !is_version(version, "v3.1") && strcasecmp(version, "v3.1") > 0) {
		reader->rule->unsupported = "configVersion: above v3.1, so that there is no rule";
		return true;
	}
	if (list && !is_list(list))
		return refuse(reader, SPOKE_ESYNTAX, "conditions: no list");
	if (list && is_version(version, "v3.1"))
		return read_all_drawn(reader, list, force);
	return list == NULL || read_conditions(reader, list, force);
}

/* --- tags */

/* Adds the words of a list of texts. */
static bool add_texts(struct reader *reader, const struct spokei_yaml *list, uint32_t *words)
{
	if (list == NULL)
		return true;
	if (!is_list(list))
		return refuse(reader, SPOKE_ESYNTAX, "addresses: no list");
	for (const struct spokei_yaml *at = spokei_yaml_next(list, NULL); at;
	     at = spokei_yaml_next(list, at)) {
		if (at->text == NULL)
			return refuse(reader, SPOKE_ESYNTAX, "an address is no text");
		if (add_word(reader, words, at->text) == 0)
			return false;
	}
	return true;
}

/* Reads {key: region, value: {exact: north}}. The value is a word with the kind as its values. */
static bool read_match(struct reader *reader, const struct spokei_yaml *match, uint32_t *keys)
{
	static const char *const kinds[] = { "exact", "prefix", "wildcard", "empty", "noempty" };
	const struct spokei_yaml *value = spokei_yaml_get(match, "value");
	const char *key = text_of(reader, spokei_yaml_get(match, "key"));
	uint32_t word = key ? add_word(reader, keys, key) : 0;

	if (reader->error)
		return false;
	for (size_t i = 0; word && value && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct spokei_yaml *text = spokei_yaml_get(value, kinds[i]);
		uint32_t *values = &reader->rule->words[word].values;

		if (text && text->text && add_word(reader, values, kinds[i]))
			return add_word(reader, values, text->text) != 0;
	}
	return refuse(reader, SPOKE_ESYNTAX,
		      "match: write key and value: exact, prefix, wildcard, empty or noempty");
}

static bool read_tag(struct reader *reader, const struct spokei_yaml *item, bool matches)
{
	struct spokei_route_tag *tag = &reader->rule->tags[reader->rule->tag_count++];
	const struct spokei_yaml *match = spokei_yaml_get(item, "match");

	tag->name = text_of(reader, spokei_yaml_get(item, "name"));
	if (tag->name == NULL)
		return refuse(reader, SPOKE_ESYNTAX, "a tag has no name");
	if (!add_texts(reader, spokei_yaml_get(item, "addresses"), &tag->addresses))
		return false;
	if (!matches || match == NULL || tag->addresses)
		return true;
	if (!is_list(match))
		return refuse(reader, SPOKE_ESYNTAX, "match: no list");
	for (const struct spokei_yaml *at = spokei_yaml_next(match, NULL); at;
	     at = spokei_yaml_next(match, at))
		if (!read_match(reader, at, &tag->matches))
			return false;
	return true;
}

static bool read_tags(struct reader *reader, const struct spokei_yaml *root, bool force)
{
	const struct spokei_yaml *list = spokei_yaml_get(root, "tags");
	const char *version = text_of(reader, spokei_yaml_get(root, "configVersion"));

	reader->rule->force = force;
	if (list && !is_list(list))
		return refuse(reader, SPOKE_ESYNTAX, "tags: no list");
	for (const struct spokei_yaml *at = list ? spokei_yaml_next(list, NULL) : NULL; at;
	     at = spokei_yaml_next(list, at))
		if (!read_tag(reader, at, is_version(version, "v3.0")))
			return false;
	return true;
}

/* --- whole rules */

/* Returns a hash of a text, and of those before it. */
static uint64_t hash(uint64_t before, const char *text)
{
	const uint64_t key[2] = { before, 0 };

	return spokei_siphash(key, text, strlen(text));
}

/* Reads the values of YAML. Returns whether the rule is one that applies. */
static bool read_root(struct reader *reader, const struct spokei_yaml *root, const char *category)
{
	bool enabled = true;
	bool force = false;

	if (root->text && *root->text == '\0')
		return false;
	if (root->kind != SPOKEI_YAML_MAP)
		return refuse(reader, SPOKE_ESYNTAX, "no map of keys and values");
	if (!read_flag(reader, root, "enabled", &enabled) ||
	    !read_flag(reader, root, "force", &force) || !enabled)
		return false;
	if (strcmp(category, SPOKEI_RULE_TAGS) == 0 ? !read_tags(reader, root, force)
						    : !read_router(reader, root, force))
		return false;
	return reader->rule->condition_count > 0 || reader->rule->tag_count > 0 ||
	       reader->rule->unsupported;
}

static int read_values(const struct spoke_env *env, const char *category, const char *text,
		       struct spokei_yaml *values, struct spokei_route_rule **ret,
		       char why[SPOKEI_RULE_WHY])
{
	struct spokei_yaml_error syntax;
	struct reader reader;
	int error = make(env, SPOKEI_YAML_NODES, strlen(text) + 1, &reader);

	if (error)
		return error;
	error = spokei_yaml_read(text, reader.texts, values, &syntax);
	if (error) {
		(void)snprintf(why, SPOKEI_RULE_WHY, "line %u: %s", syntax.line, syntax.text);
	} else if (read_root(&reader, values, category)) {
		*ret = reader.rule;
		reader.rule->print = hash(0, text);
		return SPOKE_OK;
	} else if (reader.error) {
		(void)snprintf(why, SPOKEI_RULE_WHY, "%s", reader.why);
		error = reader.error;
	}
	spokei_route_free(reader.rule);
	return error;
}

int spokei_route_read(const struct spoke_env *env, const char *category, const char *text,
		      struct spokei_route_rule **ret, char why[SPOKEI_RULE_WHY])
{
	const bool mesh = strcmp(category, SPOKEI_RULE_MESH) == 0;
	struct spokei_yaml *values;
	struct reader reader;
	int error;

	*ret = NULL;
	if (mesh || strcmp(category, SPOKEI_RULE_SCRIPTS) == 0) {
		if (text[strspn(text, BLANKS)] == '\0')
			return SPOKE_OK;
		error = make(env, 0, 0, &reader);
		if (error)
			return error;
		reader.rule->unsupported = mesh ? "spoke has no rules of a mesh"
						: "spoke has no scripts; write a condition";
		*ret = reader.rule;
		return SPOKE_OK;
	}
	if (strlen(text) > SPOKEI_YAML_MAX) {
		(void)snprintf(why, SPOKEI_RULE_WHY, "more than 64 KiB");
		return SPOKE_ETOOLARGE;
	}
	values = spokei_alloc(env, SPOKEI_YAML_NODES, sizeof(*values));
	error = values ? read_values(env, category, text, values, ret, why) : SPOKE_ENOMEM;
	spokei_free(env, values, SPOKEI_YAML_NODES, sizeof(*values));
	return error;
}

/* --- URLs */

static const char *value_of(const struct spoke_url *url, const char *key)
{
	const char *value = spoke_url_get(url, key);

	return value ? value : "";
}

static bool is_condition(const struct spoke_url *url)
{
	const char *router = value_of(url, "router");

	return (strcmp(url->scheme, "condition") == 0 || strcmp(url->scheme, "route") == 0) &&
	       is_blank_or(router, "condition") && *value_of(url, "rule");
}

/* Reads a URL, whose rule is encoded once more than other parameters. */
static bool read_url(struct reader *reader, const struct spoke_url *url)
{
	const char *rule = value_of(url, "rule");
	const char *force = value_of(url, "force");
	size_t size = strlen(rule) + 1;
	char *text = reader->texts;

	if (spoke_url_decode(rule, size - 1, text, size, NULL))
		memcpy(text, rule, size);
	reader->texts += size;
	reader->rule->print = hash(hash(reader->rule->print, rule), force);
	return read_condition(reader, text, strcmp(force, "true") == 0);
}

static long priority_of(const struct spoke_url *url)
{
	return strtol(value_of(url, "priority"), NULL, 10);
}

/* Returns the URL that follows `at` by priority, and among equals by place; NULL: none does. */
static const struct spoke_url *next_by_priority(const struct spoke_url *urls, size_t count,
						const struct spoke_url *at)
{
	const struct spoke_url *next = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct spoke_url *url = &urls[i];
		bool after = at == NULL || priority_of(url) > priority_of(at) ||
			     (priority_of(url) == priority_of(at) && url > at);

		if (after && (next == NULL || priority_of(url) < priority_of(next)))
			next = url;
	}
	return next;
}

int spokei_route_read_urls(const struct spoke_env *env, const struct spoke_url *urls, size_t count,
			   struct spokei_route_rule **ret, size_t *ret_ignored)
{
	struct reader reader;
	size_t size = 1;
	size_t taken = 0;
	int error;

	*ret = NULL;
	*ret_ignored = 0;
	for (size_t i = 0; i < count; i++)
		size += strlen(value_of(&urls[i], "rule")) + 1;
	if (count == 0)
		return SPOKE_OK;
	error = make(env, SPOKEI_ROUTE_CONDITIONS, size, &reader);
	if (error)
		return error;
	count = count < URLS_MAX ? count : URLS_MAX;
	for (const struct spoke_url *url = next_by_priority(urls, count, NULL); url;
	     url = next_by_priority(urls, count, url)) {
		const struct reader before = reader;
		uint32_t conditions = reader.rule->condition_count;

		if (strcmp(value_of(url, "enabled"), "false") == 0)
			continue;
		if (is_condition(url) && read_url(&reader, url)) {
			taken++;
			continue;
		}
		++*ret_ignored;
		reader = before;
		reader.rule->condition_count = conditions;
	}
	if (taken > 0)
		*ret = reader.rule;
	else
		spokei_route_free(reader.rule);
	return SPOKE_OK;
}

/* --- addresses */

/* Returns whether one part of an IPv4 address is what the pattern says: "*", a number or "1-9". */
static bool part_fits(struct spoke_span pattern, unsigned long part)
{
	char text[8];
	char *end;
	unsigned long first;

	if (spokei_span_is(pattern, "*"))
		return true;
	if (pattern.len == 0 || pattern.len >= sizeof(text))
		return false;
	memcpy(text, pattern.data, pattern.len);
	text[pattern.len] = '\0';
	if (strspn(text, "0123456789-") != pattern.len || *text == '-')
		return false;
	first = strtoul(text, &end, 10);
	if (*end == '\0')
		return part == first;
	return end[1] && part >= first && part <= strtoul(end + 1, &end, 10) && *end == '\0';
}

static bool parts_fit(struct spoke_span pattern, uint64_t address)
{
	for (int shift = 24; shift >= 0; shift -= 8) {
		const char *text = pattern.data;
		const char *dot = memchr(text, '.', pattern.len);
		size_t len = dot ? (size_t)(dot - text) : pattern.len;

		if ((dot == NULL) != (shift == 0) ||
		    !part_fits(spokei_span(text, len), address >> shift & 0xff))
			return false;
		if (dot)
			pattern = spokei_span_after(pattern, len + 1);
	}
	return true;
}

/* Cuts the port off; empty: there is none. An IPv6 address has its port after brackets. */
static struct spoke_span cut_port(struct spoke_span *pattern)
{
	const char *text = pattern->data;
	const char *colon = memchr(text, ':', pattern->len);
	struct spoke_span port = { NULL, 0 };

	if (pattern->len > 0 && *text == '[') {
		colon = memchr(text, ']', pattern->len);
		if (colon == NULL)
			return port;
		*pattern = spokei_span_after(*pattern, 1);
		port = spokei_span_after(*pattern, (size_t)(colon - text));
		pattern->len = (size_t)(colon - text) - 1;
		return port.len > 0 ? spokei_span_after(port, 1) : port;
	}
	if (colon && memchr(colon + 1, ':', pattern->len - (size_t)(colon + 1 - text)) == NULL) {
		port = spokei_span_after(*pattern, (size_t)(colon + 1 - text));
		pattern->len = (size_t)(colon - text);
	}
	return port;
}

bool spokei_route_address_fits(struct spoke_span pattern, const char *host, int port)
{
	struct spoke_span of_port;
	struct spokei_machine machine;
	struct spokei_range range;
	char digits[12];

	if (host == NULL || pattern.len == 0)
		return false;
	if (memchr(pattern.data, '/', pattern.len))
		return spokei_machine_read(spokei_span_of(host), &machine) &&
		       spokei_range_read(pattern, &range) == NULL &&
		       spokei_range_has(&range, &machine);
	of_port = cut_port(&pattern);
	(void)snprintf(digits, sizeof(digits), "%d", port);
	if (of_port.len > 0 && !spokei_span_is(of_port, "*") && !spokei_span_is(of_port, digits))
		return false;
	if (spokei_span_is(pattern, "*") || spokei_span_is(pattern, "0.0.0.0") ||
	    spokei_span_is(pattern, host))
		return true;
	return spokei_machine_read(spokei_span_of(host), &machine) &&
	       machine.kind == SPOKEI_MACHINE_V4 && parts_fit(pattern, machine.low);
}
