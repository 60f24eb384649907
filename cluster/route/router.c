/* SPDX-License-Identifier: Apache-2.0 */
/* Compares calls and providers with routing rules. */
#include "cluster/route/router.h"

#include "core/base/span.h"
#include "timer/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT 300u /* bytes of a number, or of an address */

/* Of an argument that the call does not have, as in Java: no text, but unequal to each. */
static const struct spoke_span missing = { "\x01", 1 };

/* Returns condition number `at` of all in force, and its rule; NULL: there are fewer. */
static const struct spokei_route_condition *condition_at(const struct spokei_route_rules *rules,
							 uint16_t at,
							 enum spokei_route_source *ret_source)
{
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES; i++) {
		const struct spokei_route_rule *rule = rules->of[i];

		if (rule == NULL)
			continue;
		*ret_source = (enum spokei_route_source)i;
		if (at < rule->condition_count)
			return &rule->conditions[at];
		at = (uint16_t)(at - rule->condition_count);
	}
	return NULL;
}

/* --- values of keys */

/* The places in which a key is looked for. */
struct sample {
	const struct spoke_url *url;
	const struct spokei_route_call *call; /* NULL: the URL is a provider's */
	char text[TEXT];                      /* room for values that are not texts */
};

static bool print_number(struct sample *sample, int64_t number, struct spoke_span *ret)
{
	int len = snprintf(sample->text, sizeof(sample->text), "%" PRId64, number);

	*ret = spokei_span(sample->text, (size_t)len);
	return true;
}

static bool take_text(const char *text, struct spoke_span *ret)
{
	if (text)
		*ret = spokei_span_of(text);
	return text != NULL;
}

/* Finds a part of the URL, which counts more than a parameter. */
static bool find_in_url(struct sample *sample, const char *key, struct spoke_span *ret)
{
	const struct spoke_url *url = sample->url;

	if (strcmp(key, "protocol") == 0)
		return take_text(url->scheme, ret);
	if (strcmp(key, "path") == 0)
		return take_text(url->path, ret);
	if (url->host && strcmp(key, "host") == 0)
		return take_text(url->host, ret);
	if (url->port > 0 && strcmp(key, "port") == 0)
		return print_number(sample, url->port, ret);
	if (url->host && strcmp(key, "address") == 0) {
		(void)snprintf(sample->text, sizeof(sample->text), url->port > 0 ? "%s:%d" : "%s",
			       url->host, url->port);
		return take_text(sample->text, ret);
	}
	return take_text(spoke_url_get(url, key), ret);
}

/* Returns a value as Java prints it; an array, a map or a double has no text here. */
static struct spoke_span print_value(struct sample *sample, struct spoke_value value)
{
	struct spoke_span text = missing;
	int64_t number;
	bool flag;

	if (spoke_value_str(value, &text) == 0)
		return text;
	if (spoke_value_i64(value, &number) == 0)
		(void)print_number(sample, number, &text);
	else if (spoke_value_bool(value, &flag) == 0)
		(void)take_text(flag ? "true" : "false", &text);
	else if (spoke_value_is_nil(value))
		(void)take_text("null", &text);
	return text;
}

/* Returns the text in brackets of "arguments[0]"; empty: there is none. */
static struct spoke_span index_of(const char *key)
{
	const char *open = strchr(key, '[');
	const char *end = open ? strchr(open, ']') : NULL;

	/* Java looks before the first dot only. */
	if (end == NULL || memchr(key, '.', (size_t)(end - key)))
		return spokei_span(NULL, 0);
	return spokei_span(open + 1, (size_t)(end - open - 1));
}

static struct spoke_span find_argument(struct sample *sample, const char *key)
{
	struct spoke_span index = index_of(key);
	struct spoke_cursor cursor;
	struct spoke_value value;
	unsigned long at;

	if (index.len == 0 || index.len > 4 || strspn(index.data, "0123456789") != index.len)
		return missing;
	at = strtoul(index.data, NULL, 10);
	cursor = spoke_cursor_bytes(sample->call->args);
	do
		if (!spoke_cursor_next(&cursor, &value))
			return missing;
	while (at-- > 0);
	return print_value(sample, value);
}

static bool find_attachment(struct sample *sample, const char *key, struct spoke_span *ret)
{
	struct spoke_span name = index_of(key);
	struct spoke_value value;
	char text[TEXT];

	*ret = missing;
	if (name.len == 0 || name.len >= sizeof(text))
		return true;
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	if (spoke_value_get(sample->call->attachments, text, &value))
		return false;
	*ret = print_value(sample, value);
	return true;
}

/* Finds the value of a key. Returns false if there is none. */
static bool find_value(struct sample *sample, const char *key, struct spoke_span *ret)
{
	const struct spokei_route_call *call = sample->call;

	*ret = missing;
	if (strncmp(key, "arguments", strlen("arguments")) == 0) {
		if (call)
			*ret = find_argument(sample, key);
		return true;
	}
	if (strncmp(key, "attachments", strlen("attachments")) == 0)
		return call == NULL || find_attachment(sample, key, ret);
	if (call && (strcmp(key, "method") == 0 || strcmp(key, "methods") == 0)) {
		*ret = call->method;
		return true;
	}
	return find_in_url(sample, key, ret);
}

/* --- patterns */

/* Only the last star stands for something. */
static bool fits_glob(struct spoke_span pattern, struct spoke_span value)
{
	const char *text = pattern.data;
	size_t star = pattern.len;
	size_t rest;

	while (star > 0 && text[star - 1] != '*')
		star--;
	if (star == 0)
		return spokei_span_same(pattern, value);
	rest = pattern.len - star;
	if (pattern.len == 1)
		return true;
	return value.len > 0 && value.len >= star - 1 && value.len >= rest &&
	       memcmp(text, value.data, star - 1) == 0 &&
	       memcmp(text + star, (const char *)value.data + value.len - rest, rest) == 0;
}

/* Reads an integer as Java does: another text counts as 0. Returns false if it is too large. */
static bool read_integer(struct spoke_span text, long *ret)
{
	const char *digits = text.data;
	size_t count = 0;

	*ret = 0;
	while (count < text.len && digits[count] >= '0' && digits[count] <= '9')
		count++;
	if (count < text.len)
		return true;
	for (size_t i = 0; i < count; i++) {
		*ret = 10 * *ret + (digits[i] - '0');
		if (*ret > INT32_MAX)
			return false;
	}
	return true;
}

/* Compares with "1~9" or "~9". An invalid range, as "1~", fits providers and no call. */
static bool fits_range(const char *pattern, struct spoke_span value, bool of_provider)
{
	size_t len = strcspn(pattern, "~");
	const char *rest = pattern + len + 1;
	size_t rest_len = strcspn(rest, "~");
	long number;
	long first;
	long last;

	if (rest_len == 0 || !read_integer(value, &number) ||
	    !read_integer(spokei_span(pattern, len), &first) ||
	    !read_integer(spokei_span(rest, rest_len), &last))
		return of_provider;
	return number <= last && (len == 0 || number >= first);
}

/* `consumer`: of a provider's value; else NULL. */
static bool fits(const char *pattern, struct spoke_span value, const struct spoke_url *consumer)
{
	struct sample sample = { .url = consumer };
	struct spoke_span own;

	if (strchr(pattern, '~'))
		return fits_range(pattern, value, consumer != NULL);
	if (consumer == NULL || *pattern != '$')
		return fits_glob(spokei_span_of(pattern), value);
	return find_in_url(&sample, pattern + 1, &own) && own.len > 0 && fits_glob(own, value);
}

/* --- conditions */

/* One of the values after "=" has to fit, if there are any, and none of those after "!=". */
static bool meets_key(const struct spokei_route_rule *rule, const struct spokei_route_word *key,
		      struct sample *sample, const struct spoke_url *consumer)
{
	struct spoke_span value;
	bool met = false;
	bool wanted = false;

	if (key->values == 0 || !find_value(sample, key->text, &value))
		return false;
	for (uint32_t i = key->values; i; i = rule->words[i].next) {
		bool fit = fits(rule->words[i].text, value, consumer);

		if (rule->words[i].denied && fit)
			return false;
		wanted |= !rule->words[i].denied;
		met |= !rule->words[i].denied && fit;
	}
	return met || !wanted;
}

static bool meets(const struct spokei_route_rule *rule, uint32_t keys, struct sample *sample,
		  const struct spoke_url *consumer)
{
	for (; keys; keys = rule->words[keys].next)
		if (!meets_key(rule, &rule->words[keys], sample, consumer))
			return false;
	return true;
}

static bool meets_destination(const struct spokei_route_rule *rule,
			      const struct spokei_route_condition *condition, uint32_t which,
			      const struct spoke_url *provider, const struct spoke_url *consumer)
{
	struct sample sample = { .url = provider };
	uint32_t keys = rule->destinations[condition->first + which].keys;

	if (provider == NULL || keys == 0)
		return keys == 0 && condition->drawn;
	return meets(rule, keys, &sample, consumer);
}

/* --- choice */

/* Draws a destination by weight among those that were not tried. Returns it plus 1; 0: there is
 * none with a weight. */
static uint8_t draw(const struct spokei_route_rule *rule,
		    const struct spokei_route_condition *condition, uint32_t tried, uint64_t dice)
{
	const struct spokei_route_destination *to = &rule->destinations[condition->first];
	uint64_t sum = 0;

	if (condition->count == 1)
		return 1;
	for (uint32_t i = 0; i < condition->count; i++)
		sum += tried & 1u << i ? 0 : to[i].weight;
	if (sum == 0)
		return 0;
	dice %= sum;
	for (uint32_t i = 0; i < condition->count; i++) {
		if (tried & 1u << i)
			continue;
		if (dice < to[i].weight)
			return (uint8_t)(i + 1);
		dice -= to[i].weight;
	}
	return 0;
}

static uint8_t choose_one(const struct spokei_route_rule *rule,
			  const struct spokei_route_condition *condition,
			  const struct spokei_route_call *call, uint64_t dice)
{
	struct sample sample = { .url = call->consumer, .call = call };

	if (!meets(rule, condition->when, &sample, NULL))
		return 0;
	return condition->drawn && condition->count > 0 ? draw(rule, condition, 0, dice) : 1;
}

void spokei_route_choose(const struct spokei_route_rules *rules,
			 const struct spokei_route_call *call, uint64_t dice,
			 struct spokei_route_choice *ret)
{
	memset(ret, 0, offsetof(struct spokei_route_choice, of));
	if (call->tag.len > 0 && call->tag.len < sizeof(ret->tag))
		memcpy(ret->tag, call->tag.data, call->tag.len);
	else if (call->tag.len > 0)
		*ret->tag = '\x01';
	ret->force_tag = call->force_tag && call->tag.len > 0;
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES; i++) {
		const struct spokei_route_rule *rule = rules->of[i];

		/* Each condition has its own part of the random number. */
		for (uint32_t k = 0; rule && k < rule->condition_count; k++, dice = dice * 25 + 7)
			ret->of[ret->count++] = choose_one(rule, &rule->conditions[k], call,
							   dice >> 24);
	}
}

void spokei_route_draw_again(const struct spokei_route_rules *rules, uint16_t condition,
			     uint32_t *tried, uint64_t dice, struct spokei_route_choice *choice)
{
	enum spokei_route_source source;
	const struct spokei_route_condition *of = condition_at(rules, condition, &source);

	SPOKE_ASSERT(of != NULL);
	*tried |= 1u << (choice->of[condition] - 1);
	choice->of[condition] = draw(rules->of[source], of, *tried, dice);
}

/* --- providers */

struct work {
	const struct spokei_route_provider *providers;
	size_t count;
	const struct spoke_url *consumer;
	uint8_t *members;
	size_t left;
};

/* Marks the members that meet a destination. Returns how many there are. */
static size_t mark_destination(struct work *work, const struct spokei_route_rule *rule,
			       const struct spokei_route_condition *condition, uint32_t which)
{
	size_t marked = 0;

	for (size_t i = 0; i < work->count; i++) {
		bool met = work->members[i] &&
			   meets_destination(rule, condition, which, work->providers[i].url,
					     work->consumer);

		work->members[i] = (uint8_t)((work->members[i] & 1u) | (met ? 2u : 0u));
		marked += met;
	}
	return marked;
}

/* Leaves the marked members, or no change. */
static void keep_marked(struct work *work, bool keep, size_t marked)
{
	for (size_t i = 0; i < work->count; i++)
		work->members[i] = (uint8_t)(keep ? work->members[i] >> 1 : work->members[i] & 1u);
	if (keep)
		work->left = marked;
}

/* Applies a condition that the call meets. Returns false if another destination has to be drawn. */
static bool apply_condition(struct work *work, const struct spokei_route_rule *rule,
			    const struct spokei_route_condition *condition, uint8_t chosen)
{
	size_t marked;

	if (condition->count == 0) {
		memset(work->members, 0, work->count);
		work->left = 0;
		return true;
	}
	marked = mark_destination(work, rule, condition, chosen - 1u);
	for (uint32_t i = 0; marked == 0 && condition->drawn && i < condition->count; i++)
		if (i != chosen - 1u && rule->destinations[condition->first + i].weight > 0 &&
		    mark_destination(work, rule, condition, i) > 0)
			return false;
	keep_marked(work, marked > 0 || condition->force, marked);
	return true;
}

/* --- tags */

static const char *tag_of(const struct spokei_route_provider *provider)
{
	return provider->tag ? provider->tag : "";
}

static bool meets_match(const struct spokei_route_rule *rule, const struct spokei_route_word *key,
			const struct spoke_url *url)
{
	const struct spokei_route_word *kind = &rule->words[key->values];
	const char *wanted = rule->words[kind->next].text;
	const char *value = spoke_url_get(url, key->text);

	if (strcmp(kind->text, "empty") == 0)
		return value == NULL || *value == '\0';
	if (value == NULL)
		return false;
	if (strcmp(kind->text, "noempty") == 0)
		return *value != '\0';
	if (strcmp(kind->text, "prefix") == 0)
		return strncmp(value, wanted, strlen(wanted)) == 0;
	return strcmp(value, wanted) == 0 ||
	       (strcmp(kind->text, "wildcard") == 0 && strcmp(wanted, "*") == 0);
}

/* Returns whether the rule gives the provider this tag. */
static bool has_tag(const struct spokei_route_rule *rule, const struct spokei_route_tag *tag,
		    const struct spokei_route_provider *provider)
{
	const struct spoke_url *url = provider->url;

	if (url == NULL || (tag->addresses == 0 && tag->matches == 0))
		return false;
	for (uint32_t i = tag->addresses; i; i = rule->words[i].next)
		if (spokei_route_address_fits(spokei_span_of(rule->words[i].text), url->host,
					      url->port))
			return true;
	for (uint32_t i = tag->matches; i; i = rule->words[i].next)
		if (!meets_match(rule, &rule->words[i], url))
			return false;
	return tag->addresses == 0;
}

/* Marks the members to which a rule gives the tag; "": any. *ret_knows: the rule has the tag. */
static size_t mark_ruled(struct work *work, const struct spokei_route_rule *rule, const char *name,
			 bool *ret_knows)
{
	size_t marked = 0;

	*ret_knows = false;
	for (uint32_t t = 0; rule && t < rule->tag_count; t++) {
		const struct spokei_route_tag *tag = &rule->tags[t];

		if (*name && strcmp(name, tag->name) != 0)
			continue;
		*ret_knows |= tag->addresses != 0;
		for (size_t i = 0; i < work->count; i++) {
			if (!has_tag(rule, tag, &work->providers[i]))
				continue;
			*ret_knows = true;
			marked += work->members[i] == 1;
			work->members[i] = work->members[i] ? 3 : 0;
		}
	}
	return marked;
}

static size_t mark_tagged(struct work *work, const char *tag)
{
	size_t marked = 0;

	for (size_t i = 0; i < work->count; i++) {
		if (work->members[i] && strcmp(tag_of(&work->providers[i]), tag) == 0) {
			work->members[i] |= 2u;
			marked++;
		}
	}
	return marked;
}

/* Leaves the members that have no tag, neither by the rule nor by themselves. */
static void keep_untagged(struct work *work, const struct spokei_route_rule *rule)
{
	bool knows;

	(void)mark_ruled(work, rule, "", &knows);
	work->left = 0;
	for (size_t i = 0; i < work->count; i++) {
		work->members[i] = work->members[i] == 1 && *tag_of(&work->providers[i]) == '\0';
		work->left += work->members[i];
	}
}

static void apply_tags(struct work *work, const struct spokei_route_rule *rule,
		       const struct spokei_route_choice *choice)
{
	size_t marked = 0;
	bool knows = false;
	bool final;

	if (*choice->tag == '\0') {
		keep_untagged(work, rule);
		return;
	}
	marked = mark_ruled(work, rule, choice->tag, &knows);
	if (!knows)
		marked = mark_tagged(work, choice->tag);
	final = marked > 0 || choice->force_tag || (knows && rule->force);
	keep_marked(work, final, marked);
	if (!final)
		keep_untagged(work, rule);
}

/* --- the whole */

/* Applies the conditions of a rule, the first of which is number `at` of all. Returns the number of
 * one for which to draw again; UINT16_MAX: none. */
static uint16_t apply_conditions(struct work *work, const struct spokei_route_rule *rule,
				 const struct spokei_route_choice *choice, uint16_t at)
{
	for (uint32_t k = 0; k < rule->condition_count && work->left > 0; k++, at++)
		if (choice->of[at] &&
		    !apply_condition(work, rule, &rule->conditions[k], choice->of[at]))
			return at;
	return UINT16_MAX;
}

void spokei_route_apply(const struct spokei_route_rules *rules,
			const struct spokei_route_choice *choice, const struct spoke_url *consumer,
			const struct spokei_route_field *field, struct spokei_route_verdict *ret)
{
	struct work work = { field->providers, field->count, consumer, field->members,
			     field->count };
	uint16_t at = 0;

	*ret = (struct spokei_route_verdict){ .empty = UINT16_MAX };
	memset(field->members, 1, field->count);
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES && work.left > 0; i++) {
		const struct spokei_route_rule *rule = rules->of[i];

		ret->by = (enum spokei_route_source)i;
		if (i == SPOKEI_ROUTE_TAGS)
			apply_tags(&work, rule, choice);
		if (rule == NULL)
			continue;
		ret->empty = apply_conditions(&work, rule, choice, at);
		if (ret->empty != UINT16_MAX)
			return;
		at = (uint16_t)(at + rule->condition_count);
	}
	ret->left = work.left;
}
