/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings: read from URLs and options, laid over one another, and written to the
 * settings of owners. */
#include "cluster/config/keys.h"

#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/text/option.h"

#include <spoke/call.h>
#include <spoke/link.h>

#include <spoke/url.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_MAX 64u /* bytes of a key in a message */

/* --- names */

/* Keys about the service itself, and keys of Dubbo without a meaning for spoke. */
static const char *const other_keys[] = {
	"admin",
	"interface",
	"side",
	"dubbo",
	"release",
	"pid",
	"timestamp",
	"methods",
	"anyhost",
	"category",
	"serialization",
	"generic",
	"dynamic",
	"deprecated",
	"revision",
	"protocol",
	"prefer.serialization",
	"bean.name",
	"check",
	"logger",
	"qos.enable",
	"service.name",
	"spoke.serialization",
	"spoke.host",
	"spoke.local",
};

const char *spokei_keys_name(enum spokei_key key)
{
	return spokei_key_row(key)->option.name;
}

bool spokei_keys_is_other(const char *name)
{
	const enum spokei_key key = spokei_key_find(name);

	for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++)
		if (strcmp(name, other_keys[i]) == 0)
			return true;
	return key != SPOKEI_KEYS && spokei_key_row(key)->of_urls;
}

bool spokei_keys_is_secret(const char *name)
{
	const enum spokei_key key = spokei_key_find(name);

	return key != SPOKEI_KEYS && spokei_key_row(key)->secret;
}

/* `name` is the key as written, with the method's name if any. */
static int parse(enum spokei_key key, const char *name, const char *value, uint64_t *ret, char *why,
		 size_t size)
{
	struct spokei_option option = spokei_key_row(key)->option;

	option.name = name;
	return spokei_option_parse(&option, value, true, ret, why, size);
}

/* Returns the key after a method's name and a dot; SPOKEI_KEYS: none. */
static enum spokei_key key_of_method(const char *text)
{
	size_t len = strlen(text);

	for (unsigned i = 0; i < SPOKEI_KEYS_OF_METHODS; i++) {
		size_t key_len = strlen(spokei_keys_name((enum spokei_key)i));

		if (len > key_len + 1 && text[len - key_len - 1] == '.' &&
		    strcmp(text + len - key_len, spokei_keys_name((enum spokei_key)i)) == 0)
			return (enum spokei_key)i;
	}
	return SPOKEI_KEYS;
}

static const char *name_at(const void *of, size_t i)
{
	(void)of;
	return spokei_keys_name((enum spokei_key)i);
}

static int refuse_key(const char *key, char *why, size_t size)
{
	const char *nearest = spokei_option_nearest_name(key, name_at, NULL, SPOKEI_KEYS_OF_URLS);
	char quoted[QUOTED_MAX];

	(void)spokei_log_escape(quoted, sizeof(quoted), key, strlen(key));
	(void)snprintf(why, size, "%s: no such option%s%s%s", quoted,
		       nearest ? "; did you mean " : "", nearest ? nearest : "",
		       nearest ? "?" : "");
	return SPOKE_EINVAL;
}

static int read_parameter(const struct spoke_url_parameter *parameter,
			  struct spokei_key_values *values, char *why, size_t size)
{
	enum spokei_key key = spokei_key_find(parameter->key);
	uint64_t number;
	int error;

	if ((unsigned)key < SPOKEI_KEYS_OF_URLS) {
		error = parse(key, parameter->key, parameter->value, &number, why, size);
		if (error == SPOKE_OK)
			spokei_keys_put(values, key, number, SPOKEI_FROM_URL, 0);
		return error;
	}
	if (spokei_keys_is_other(parameter->key)) {
		if (key != SPOKEI_KEYS && spokei_key_is_text(key) && *parameter->value)
			spokei_keys_put_text(values, key, parameter->value, SPOKEI_FROM_URL, 0);
		return SPOKE_OK;
	}
	key = key_of_method(parameter->key);
	if (key != SPOKEI_KEYS)
		return parse(key, parameter->key, parameter->value, &number, why, size);
	return refuse_key(parameter->key, why, size);
}

/* Returns the default; for keys with names, the number of the default name in the catalog. */
static uint64_t preset_of(enum spokei_key key)
{
	const struct spokei_key_row *row = spokei_key_row(key);

	if (row->preset == NULL || row->option.names == NULL)
		return row->option.preset;
	for (unsigned i = 0; row->option.names(i); i++)
		if (strcmp(row->option.names(i), row->preset) == 0)
			return i;
	return 0;
}

void spokei_keys_preset(struct spokei_key_values *values)
{
	*values = (struct spokei_key_values){ .of = { 0 } };
	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		values->of[i] = preset_of((enum spokei_key)i);
}

void spokei_keys_put(struct spokei_key_values *values, enum spokei_key key, uint64_t number,
		     enum spokei_origin from, unsigned line)
{
	values->of[key] = number;
	values->text[key] = NULL;
	values->object[key] = NULL;
	values->line[key] = line;
	values->from[key] = (unsigned char)from;
}

void spokei_keys_put_text(struct spokei_key_values *values, enum spokei_key key, const char *text,
			  enum spokei_origin from, unsigned line)
{
	spokei_keys_put(values, key, 0, from, line);
	values->text[key] = spokei_key_row(key)->secret ? NULL : text;
}

void spokei_keys_copy(struct spokei_key_values *values, const struct spokei_key_values *from,
		      enum spokei_key key)
{
	values->of[key] = from->of[key];
	values->text[key] = from->text[key];
	values->object[key] = from->object[key];
	values->line[key] = from->line[key];
	values->from[key] = from->from[key];
}

void spokei_keys_lay(struct spokei_key_values *values, const struct spokei_key_values *over)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		if (over->from[i] != SPOKEI_FROM_DEFAULT)
			spokei_keys_copy(values, over, (enum spokei_key)i);
}

void spokei_keys_set(struct spokei_key_values *values, enum spokei_key key, uint64_t number)
{
	if (number)
		spokei_keys_put(values, key, number, SPOKEI_FROM_CODE, 0);
}

int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
		     struct spokei_key_values *values)
{
	char why[SPOKEI_OPTION_WHY_MAX];

	for (unsigned i = 0; i < url->parameter_count; i++) {
		int error = read_parameter(&url->parameters[i], values, why, sizeof(why));

		if (error) {
			spokei_event(engine, error, "URL: %s", why);
			return error;
		}
	}
	return SPOKE_OK;
}

void spokei_keys_read_method(const struct spoke_url *url, const char *method,
			     enum spokei_origin from, struct spokei_key_values *values)
{
	size_t len = strlen(method);
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t number;

	for (unsigned i = 0; i < url->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &url->parameters[i];
		enum spokei_key key = key_of_method(parameter->key);

		if (key == SPOKEI_KEYS || strncmp(parameter->key, method, len) != 0 ||
		    parameter->key[len] != '.' ||
		    strcmp(parameter->key + len + 1, spokei_keys_name(key)) != 0)
			continue;
		if (parse(key, parameter->key, parameter->value, &number, why, sizeof(why)) ==
		    SPOKE_OK)
			spokei_keys_put(values, key, number, from, 0);
	}
}

/* Limits on a consumer's own calls are not taken from providers. The serialization of each provider
 * is read with its address. */
static bool is_provided(unsigned key)
{
	return key < SPOKEI_KEYS_OF_METHODS && key != SPOKEI_KEY_ACTIVES && key != SPOKEI_KEY_TPS &&
	       key != SPOKEI_KEY_WAIT_READY && key != SPOKEI_KEY_SERIALIZATION;
}

void spokei_keys_read_provided(const struct spoke_url *url, enum spokei_origin from,
			       struct spokei_key_values *values)
{
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t number;

	for (unsigned i = 0; i < SPOKEI_KEYS_OF_METHODS; i++) {
		const char *name = spokei_keys_name((enum spokei_key)i);
		const char *value = is_provided(i) ? spoke_url_get(url, name) : NULL;

		if (value &&
		    parse((enum spokei_key)i, name, value, &number, why, sizeof(why)) == SPOKE_OK)
			spokei_keys_put(values, (enum spokei_key)i, number, from, 0);
	}
}

/* --- code */

/* Returns how many names a key has. */
static unsigned count_names(const struct spokei_option *option)
{
	unsigned count = 0;

	while (option->names(count))
		count++;
	return count;
}

void spokei_key_print_refusal(enum spokei_key key, uint64_t number, char why[SPOKEI_OPTION_WHY_MAX])
{
	const struct spokei_option *option = &spokei_key_row(key)->option;
	char min[32];
	char max[32];
	char value[32];

	spokei_option_print(option->kind, option->min, min, sizeof(min));
	spokei_option_print_max(option, max, sizeof(max));
	spokei_option_print(option->kind, number, value, sizeof(value));
	if (option->or_none && number < option->min)
		(void)snprintf(why, SPOKEI_OPTION_WHY_MAX,
			       "option %s=%s: %s at least, or SPOKE_OFF", option->name, value, min);
	else
		(void)snprintf(why, SPOKEI_OPTION_WHY_MAX, "option %s=%s: not between %s and %s",
			       option->name, value, min, max);
}

/* Sets a key from a number that is not 0. */
static int put_number(struct spoke_engine *engine, const struct spokei_field *field,
		      struct spokei_key_values *values, enum spokei_key key, uint64_t number)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const struct spokei_option *option = &row->option;
	char why[SPOKEI_OPTION_WHY_MAX];

	if (field->inverts || (row->none_in_code && number == SPOKE_NONE) ||
	    (option->or_none && number == SPOKE_OFF)) {
		number = 0;
	} else if (row->words) {
		if (number > count_names(option)) {
			spokei_event(engine, SPOKE_EINVAL, "option %s=%d: no value of enum %s",
				     option->name, (int)number, row->words);
			return SPOKE_EINVAL;
		}
		number--;
	} else if ((number < option->min || number > option->max) &&
		   !spokei_option_is_word(option->kind, number)) {
		spokei_key_print_refusal(key, number, why);
		spokei_event(engine, SPOKE_ERANGE, "%s", why);
		return SPOKE_ERANGE;
	}
	spokei_keys_put(values, key, number, SPOKEI_FROM_CODE, 0);
	return SPOKE_OK;
}

/* Refuses a text that a file could not contain. URLs are read by their owners, which say more. */
static int check_text(struct spoke_engine *engine, enum spokei_section section, enum spokei_key key,
		      const char *text)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	char sentence[SPOKEI_CHECK_WHY];
	const struct spokei_check of = {
		.env = engine->env,
		.key = key,
		.section = section,
		.why = sentence,
	};
	const bool is_list = row->option.kind == SPOKEI_OPTION_LIST;
	const char *why = row->is_url || row->check == NULL || *text == '\0'
				  ? NULL
				  : row->check(&of, text);
	char quoted[QUOTED_MAX];
	int error;

	if (why == NULL)
		return SPOKE_OK;
	error = why == spokei_check_no_memory ? SPOKE_ENOMEM : SPOKE_EINVAL;
	(void)spokei_log_escape(quoted, sizeof(quoted), text, strlen(text));
	/* A sentence about a list names the item. */
	spokei_event(engine, error, "option %s%s%s: %s", row->option.name, is_list ? "" : "=",
		     is_list ? "" : quoted, why);
	return error;
}

/* Sets a key from a pointer that is not NULL. */
static int put_pointer(struct spoke_engine *engine, const struct spokei_field *field,
		       struct spokei_key_values *values, enum spokei_section section,
		       enum spokei_key key, const void *to)
{
	if (field->type == SPOKEI_FIELD_OBJECT) {
		spokei_keys_put(values, key, 0, SPOKEI_FROM_CODE, 0);
		values->object[key] = to;
		return SPOKE_OK;
	}
	spokei_keys_put_text(values, key, to, SPOKEI_FROM_CODE, 0);
	return check_text(engine, section, key, to);
}

int spokei_keys_read_code(struct spoke_engine *engine, struct spokei_key_values *values,
			  enum spokei_section section, enum spokei_fields_of of,
			  const void *options)
{
	int error = SPOKE_OK;

	for (unsigned i = 0; options && i < SPOKEI_KEYS && error == SPOKE_OK; i++) {
		const enum spokei_key key = (enum spokei_key)i;
		const struct spokei_field *field = spokei_key_field(key, of);

		if (field == NULL)
			continue;
		if (spokei_field_is_pointer(field)) {
			const char *to = spokei_field_pointer(field, options);

			/* An empty text of a consumer is none. */
			if (to &&
			    (of != SPOKEI_AT_CONSUMER || field->type != SPOKEI_FIELD_TEXT || *to))
				error = put_pointer(engine, field, values, section, key, to);
		} else if (spokei_field_get(field, options)) {
			error = put_number(engine, field, values, key,
					   spokei_field_get(field, options));
		}
	}
	return error;
}

/* Returns what a key with names stands for. */
static const void *object_of(const struct spokei_key_values *values, enum spokei_key key)
{
	return values->object[key] ? values->object[key]
				   : spokei_key_row(key)->object((unsigned)values->of[key]);
}

void spokei_keys_fill(const struct spokei_key_values *values, unsigned sections,
		      enum spokei_fields_of of, void *settings)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const enum spokei_key key = (enum spokei_key)i;
		const struct spokei_field *field = spokei_key_field(key, of);

		if (field == NULL || (spokei_key_row(key)->sections & sections) == 0)
			continue;
		if (field->type == SPOKEI_FIELD_TEXT)
			spokei_field_set_pointer(field, settings, values->text[key]);
		else if (field->type == SPOKEI_FIELD_OBJECT)
			spokei_field_set_pointer(field, settings, object_of(values, key));
		else
			spokei_field_set(field, settings,
					 field->inverts ? !values->of[key] : values->of[key]);
	}
}
