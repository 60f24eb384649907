/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings: read from URLs, the file and options, laid over one another, and written to
 * the structs of owners; copies of their texts; and their renewal. */
#include "cluster/config/settings.h"
#include "cluster/config/keys.h"
#include "cluster/config/places.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/text/option.h"
#include "transport/stream/tls/tls.h"

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

/* Returns the key after a method's name and a dot, the longest that fits; SPOKEI_KEYS: none. */
static enum spokei_key key_of_method(const char *text)
{
	enum spokei_key longest = SPOKEI_KEYS;
	size_t len = strlen(text);
	size_t longest_len = 0;

	for (unsigned i = 0; i < SPOKEI_KEYS_OF_METHODS; i++) {
		size_t key_len = strlen(spokei_keys_name((enum spokei_key)i));

		if (len <= key_len + 1 || key_len <= longest_len ||
		    text[len - key_len - 1] != '.' ||
		    strcmp(text + len - key_len, spokei_keys_name((enum spokei_key)i)) != 0)
			continue;
		longest = (enum spokei_key)i;
		longest_len = key_len;
	}
	return longest;
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

/* Returns why a file could not contain a text, in `sentence` maybe; NULL: it could. URLs are read
 * by their owners, which say more. */
static const char *check_text(const struct spoke_engine *engine, enum spokei_section section,
			      enum spokei_key key, const char *text,
			      char sentence[SPOKEI_CHECK_WHY])
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const struct spokei_check of = {
		.env = engine->env,
		.key = key,
		.section = section,
		.why = sentence,
	};

	return row->is_url || row->check == NULL || *text == '\0' ? NULL : row->check(&of, text);
}

/* Sets a key that is a text, for other code, which reads it from the URL. */
static int read_other(const struct spoke_engine *engine,
		      const struct spoke_url_parameter *parameter, enum spokei_key key,
		      struct spokei_key_values *values, char *why, size_t size)
{
	char sentence[SPOKEI_CHECK_WHY];
	const char *wrong;

	if (key == SPOKEI_KEYS || !spokei_key_is_text(key) || *parameter->value == '\0')
		return SPOKE_OK;
	spokei_keys_put_text(values, key, parameter->value, SPOKEI_FROM_URL, 0);
	wrong = check_text(engine, SPOKEI_IN_CONSUMER, key, parameter->value, sentence);
	if (wrong == NULL)
		return SPOKE_OK;
	(void)snprintf(why, size, "%s: %s", parameter->key, wrong);
	return wrong == spokei_check_no_memory ? SPOKE_ENOMEM : SPOKE_EINVAL;
}

/* Finds a key by its name in a consumer's URL, or by the name that it has in Dubbo. */
static enum spokei_key find_key(const char *name)
{
	if (strcmp(name, "dubbo.tag") == 0)
		return SPOKEI_KEY_TAG;
	return strcmp(name, "dubbo.force.tag") == 0 ? SPOKEI_KEY_TAG_FORCE : spokei_key_find(name);
}

static int read_parameter(const struct spoke_engine *engine,
			  const struct spoke_url_parameter *parameter,
			  struct spokei_key_values *values, char *why, size_t size)
{
	enum spokei_key key = find_key(parameter->key);
	uint64_t number;
	int error;

	if ((unsigned)key < SPOKEI_KEYS_OF_URLS) {
		error = parse(key, parameter->key, parameter->value, &number, why, size);
		if (error == SPOKE_OK)
			spokei_keys_put(values, key, number, SPOKEI_FROM_URL, 0);
		return error;
	}
	if (key == SPOKEI_KEY_TAG || spokei_keys_is_other(parameter->key))
		return read_other(engine, parameter, key, values, why, size);
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

/* Copies one key, or every key that `over` sets. */
static void copy_key(struct spokei_key_values *values, const struct spokei_key_values *from,
		     enum spokei_key key)
{
	values->of[key] = from->of[key];
	values->text[key] = from->text[key];
	values->object[key] = from->object[key];
	values->line[key] = from->line[key];
	values->from[key] = from->from[key];
}

/* --- values that are kept */

static size_t size_of(unsigned count)
{
	return sizeof(struct spokei_kept_values) + count * sizeof(struct spokei_kept_value);
}

int spokei_keys_keep(const struct spoke_env *env, const struct spokei_key_values *values,
		     struct spokei_kept_values **ret)
{
	struct spokei_kept_values *kept;
	unsigned count = 0;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		count += values->from[i] != SPOKEI_FROM_DEFAULT;
	kept = spokei_alloc(env, 1, size_of(count));
	if (kept == NULL)
		return SPOKE_ENOMEM;
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (values->from[i] == SPOKEI_FROM_DEFAULT)
			continue;
		kept->set[kept->count++] = (struct spokei_kept_value){
			.number = values->of[i],
			.to = values->text[i] ? values->text[i] : values->object[i],
			.line = values->line[i],
			.key = (uint8_t)i,
			.from = values->from[i],
		};
	}
	spokei_keys_drop(env, *ret);
	*ret = kept;
	return SPOKE_OK;
}

void spokei_keys_drop(const struct spoke_env *env, struct spokei_kept_values *kept)
{
	if (kept)
		spokei_free(env, kept, 1, size_of(kept->count));
}

const struct spokei_kept_value *spokei_keys_kept(const struct spokei_kept_values *kept,
						 enum spokei_key key)
{
	for (unsigned i = 0; kept && i < kept->count; i++)
		if (kept->set[i].key == key)
			return &kept->set[i];
	return NULL;
}

void spokei_keys_lay(const struct spokei_kept_values *kept, struct spokei_key_values *values)
{
	for (unsigned i = 0; kept && i < kept->count; i++) {
		const struct spokei_kept_value *value = &kept->set[i];
		const enum spokei_key key = (enum spokei_key)value->key;

		spokei_keys_put(values, key, value->number, (enum spokei_origin)value->from,
				value->line);
		if (spokei_key_is_text(key))
			values->text[key] = value->to;
		else
			values->object[key] = value->to;
	}
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
		int error = read_parameter(engine, &url->parameters[i], values, why, sizeof(why));

		if (error) {
			spokei_event(engine, error, "URL: %s", why);
			return error;
		}
	}
	return SPOKE_OK;
}

/* Sets the keys that a URL contains for one method. spokei_keys_read() has checked the URL. */
static void read_method_of_url(const struct spoke_url *url, const char *method,
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

/* Sets the keys that a consumer takes from a provider's URL. Ignores invalid values. */
static void read_provided(const struct spoke_url *url, enum spokei_origin from,
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

/* Refuses a text that a file could not contain. */
static int refuse_text(struct spoke_engine *engine, enum spokei_section section,
		       enum spokei_key key, const char *text)
{
	const struct spokei_option *option = &spokei_key_row(key)->option;
	const bool is_list = option->kind == SPOKEI_OPTION_LIST;
	char sentence[SPOKEI_CHECK_WHY];
	const char *why = check_text(engine, section, key, text, sentence);
	char quoted[QUOTED_MAX];
	int error;

	if (why == NULL)
		return SPOKE_OK;
	error = why == spokei_check_no_memory ? SPOKE_ENOMEM : SPOKE_EINVAL;
	(void)spokei_log_escape(quoted, sizeof(quoted), text, strlen(text));
	/* A sentence about a list names the item. */
	spokei_event(engine, error, "option %s%s%s: %s", option->name, is_list ? "" : "=",
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
	return refuse_text(engine, section, key, to);
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

/* --- sources */

/* Sections with a name override those without. */
static void read_sections(const struct spokei_settings *settings, unsigned sections,
			  struct spoke_span service, struct spokei_key_values *ret)
{
	const struct spoke_span none = { NULL, 0 };

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < SPOKEI_SECTIONS; i++) {
			const enum spokei_section section = (enum spokei_section)i;
			const bool named = spokei_section_is_named(section);

			if (sections & 1u << i && named == (pass == 1))
				spokei_config_read(settings->file.config, section,
						   named ? service : none, settings->kind->sections,
						   ret);
		}
	}
}

/* Reads the values that apply to all methods. */
static int read_wide(const struct spokei_settings *settings, unsigned sections,
		     struct spoke_span service, struct spokei_key_values *ret)
{
	int error = SPOKE_OK;

	spokei_keys_preset(ret);
	if (settings->provided)
		read_provided(settings->provided, SPOKEI_FROM_PROVIDER, ret);
	read_sections(settings, sections, service, ret);
	if (settings->url)
		error = spokei_keys_read(settings->file.engine, settings->url, ret);
	spokei_keys_lay(settings->options, ret);
	if (settings->ruled)
		read_provided(settings->ruled, SPOKEI_FROM_RULE, ret);
	return error;
}

static int read_own(const struct spokei_settings *settings, struct spokei_key_values *ret)
{
	const char *service = settings->service ? settings->service : "";

	return read_wide(settings, settings->kind->sections,
			 (struct spoke_span){ (const unsigned char *)service, strlen(service) },
			 ret);
}

int spokei_settings_read_method(const struct spokei_settings *settings,
				const struct spokei_method_name *name,
				const struct spokei_method_code *code,
				struct spokei_key_values *ret)
{
	int error = read_wide(settings, settings->kind->sections | 1u << SPOKEI_IN_SERVICE,
			      name->service, ret);

	if (error)
		return error;
	if (settings->provided)
		read_method_of_url(settings->provided, name->method, SPOKEI_FROM_PROVIDER, ret);
	spokei_config_read_method(settings->file.config, name->service, name->method,
				  settings->kind->sections, ret);
	if (settings->url)
		read_method_of_url(settings->url, name->method, SPOKEI_FROM_URL, ret);
	if (code)
		error = spokei_keys_read_code(settings->file.engine, ret, SPOKEI_IN_METHOD,
					      code->of, code->options);
	if (settings->ruled)
		read_method_of_url(settings->ruled, name->method, SPOKEI_FROM_RULE, ret);
	return error;
}

/* --- texts */

/* Copies a list without the blanks around its items, or another text. Returns the bytes, with the
 * NUL. */
static size_t copy_text(enum spokei_key key, const char *text, char *out)
{
	struct spoke_span item;
	size_t len = 0;

	if (spokei_key_row(key)->option.kind != SPOKEI_OPTION_LIST) {
		len = strlen(text) + 1;
		memcpy(out, text, len);
		return len;
	}
	while (spokei_option_item(&text, &item)) {
		if (item.len > 0)
			memcpy(out + len, item.data, item.len);
		len += item.len;
		out[len++] = ',';
	}
	out[len - 1] = '\0';
	return len;
}

/* Returns whether a value has a text among those that a reload replaces, or among the others. */
static bool has_text(const struct spokei_key_values *values, unsigned key, bool live)
{
	return values->text[key] && spokei_key_row((enum spokei_key)key)->live == live;
}

/* Has `values` refer to copies of its texts. */
static int copy_texts(const struct spoke_env *env, struct spokei_key_values *values, bool live,
		      struct spokei_settings_texts *ret)
{
	size_t size = 0;
	char *at;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		if (has_text(values, i, live))
			size += strlen(values->text[i]) + 1;
	if (size == 0)
		return SPOKE_OK;
	at = spokei_alloc(env, 1, size);
	if (at == NULL)
		return SPOKE_ENOMEM;
	*ret = (struct spokei_settings_texts){ at, size };
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const char *text = values->text[i];

		if (!has_text(values, i, live))
			continue;
		values->text[i] = at;
		at += copy_text((enum spokei_key)i, text, at);
	}
	return SPOKE_OK;
}

static void free_texts(const struct spoke_env *env, struct spokei_settings_texts *texts)
{
	spokei_free(env, texts->bytes, 1, texts->size);
	*texts = (struct spokei_settings_texts){ NULL, 0 };
}

/* Has the options refer to the copies, too. Nothing with texts overrides them. */
static void share_texts(struct spokei_settings *settings, const struct spokei_key_values *copies)
{
	for (unsigned i = 0; i < settings->options->count; i++) {
		struct spokei_kept_value *value = &settings->options->set[i];

		if (spokei_key_is_text((enum spokei_key)value->key))
			value->to = copies->text[value->key];
	}
}

/* --- life */

static void fill(struct spokei_settings *settings, const struct spokei_key_values *values)
{
	const struct spokei_settings_kind *kind = settings->kind;

	for (unsigned i = 0; i < kind->part_count; i++)
		spokei_keys_fill(values, kind->sections, kind->parts[i].of,
				 (char *)settings->structs + kind->parts[i].at);
}

int spokei_settings_begin(struct spokei_settings *settings, struct spoke_engine *engine,
			  const struct spokei_key_values *options)
{
	const struct spoke_env *env = engine->env;
	struct spokei_key_values values;
	int error;

	settings->file.engine = engine;
	settings->file.settings = settings;
	error = spokei_config_join(&settings->file, engine);
	if (error == SPOKE_OK)
		error = spokei_keys_keep(env, options, &settings->options);
	if (error == SPOKE_OK)
		error = read_own(settings, &values);
	if (error == SPOKE_OK)
		error = copy_texts(env, &values, false, &settings->fixed);
	if (error == SPOKE_OK)
		error = copy_texts(env, &values, true, &settings->live);
	if (error == SPOKE_OK)
		error = spokei_keys_keep(env, &values, &settings->in_force);
	if (error)
		return error;
	share_texts(settings, &values);
	fill(settings, &values);
	return SPOKE_OK;
}

void spokei_settings_look(const struct spokei_settings *settings, struct spokei_key_values *ret)
{
	spokei_keys_preset(ret);
	spokei_keys_lay(settings->in_force, ret);
}

uint64_t spokei_settings_number(const struct spokei_settings *settings, enum spokei_key key)
{
	const struct spokei_kept_value *value = spokei_keys_kept(settings->in_force, key);

	return value ? value->number : preset_of(key);
}

const char *spokei_settings_text(const struct spokei_settings *settings, enum spokei_key key)
{
	const struct spokei_kept_value *value = spokei_keys_kept(settings->in_force, key);

	return value ? value->to : NULL;
}

void spokei_settings_leave(struct spokei_settings *settings)
{
	spokei_settings_drop(settings);
	spokei_config_leave(&settings->file);
}

void spokei_settings_end(struct spokei_settings *settings, const struct spoke_env *env)
{
	spokei_settings_leave(settings);
	free_texts(env, &settings->fixed);
	free_texts(env, &settings->live);
	spokei_keys_drop(env, settings->options);
	spokei_keys_drop(env, settings->in_force);
	settings->options = settings->in_force = NULL;
}

/* Keeps the values in force but for the live keys, which come from values that were read, with or
 * without those that are texts. */
static int renew_from(const struct spokei_settings *settings, const struct spokei_key_values *read,
		      bool texts, struct spokei_kept_values **ret)
{
	struct spokei_key_values values;

	spokei_settings_look(settings, &values);
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const enum spokei_key key = (enum spokei_key)i;

		if (spokei_key_row(key)->live && (texts || !spokei_key_is_text(key)))
			copy_key(&values, read, key);
	}
	return spokei_keys_keep(settings->file.engine->env, &values, ret);
}

void spokei_settings_renew(struct spokei_settings *settings)
{
	struct spokei_key_values values;

	/* Cannot fail: the sources were read before, and a loaded file is valid. */
	if (read_own(settings, &values) != SPOKE_OK ||
	    renew_from(settings, &values, false, &settings->in_force))
		return;
	spokei_settings_look(settings, &values);
	fill(settings, &values);
}

/* --- a reload */

int spokei_settings_prepare(struct spokei_settings *settings)
{
	const struct spoke_env *env;
	int error;

	if (settings == NULL)
		return SPOKE_OK;
	env = settings->file.engine->env;
	settings->next = spokei_alloc_unset(env, sizeof(*settings->next));
	if (settings->next == NULL)
		return SPOKE_ENOMEM;
	error = read_own(settings, settings->next);
	if (error == SPOKE_OK)
		error = copy_texts(env, settings->next, true, &settings->coming);
	if (error == SPOKE_OK)
		error = renew_from(settings, settings->next, true, &settings->renewed);
	return error || settings->kind->prepare == NULL ? error
							: settings->kind->prepare(settings->owner);
}

static void drop_next(struct spokei_settings *settings)
{
	const struct spoke_env *env = settings->file.engine->env;

	spokei_free(env, settings->next, 1, sizeof(*settings->next));
	settings->next = NULL;
	spokei_keys_drop(env, settings->renewed);
	settings->renewed = NULL;
	free_texts(env, &settings->coming);
}

void spokei_settings_take(struct spokei_settings *settings)
{
	const struct spokei_settings_kind *kind = settings ? settings->kind : NULL;
	struct spokei_settings_texts former;
	struct spokei_kept_values *before;

	if (settings == NULL)
		return;
	former = settings->live;
	settings->live = settings->coming;
	settings->coming = former;
	before = settings->in_force;
	settings->in_force = settings->renewed;
	settings->renewed = before;
	spokei_settings_look(settings, settings->next);
	share_texts(settings, settings->next);
	fill(settings, settings->next);
	for (unsigned i = 0; i < kind->part_count; i++)
		if (kind->parts[i].apply)
			kind->parts[i].apply(settings->owner);
	if (kind->take)
		kind->take(settings->owner);
	drop_next(settings);
}

void spokei_settings_drop(struct spokei_settings *settings)
{
	if (settings == NULL || settings->next == NULL)
		return;
	if (settings->kind->drop)
		settings->kind->drop(settings->owner);
	drop_next(settings);
}

/* --- TLS */

static int find_mode(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
		     enum spokei_tls_mode *ret)
{
	*ret = (enum spokei_tls_mode)spokei_settings_number(sources->settings, SPOKEI_KEY_TLS);
	if (sources->options)
		*ret = sources->options->optional ? SPOKEI_TLS_OPTIONAL : SPOKEI_TLS_ON;
	else if (sources->of_url && !spokei_places_tls_mode(sources->of_url, ret)) {
		spokei_event(engine, SPOKE_EINVAL, "tls: use on or off");
		return SPOKE_EINVAL;
	}
	if (sources->section == SPOKEI_IN_PROVIDER || *ret != SPOKEI_TLS_OPTIONAL)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "tls: a consumer never falls back to plain connections; use on or off");
	return SPOKE_EINVAL;
}

static struct spokei_tls_options options_of(const struct spokei_tls_sources *sources)
{
	const unsigned named = spokei_settings_number(sources->settings, SPOKEI_KEY_TLS_MIN) ? 12
											     : 13;
	struct spokei_key_values values;
	struct spokei_tls_options options = {
		.accepts = sources->section == SPOKEI_IN_PROVIDER,
		.oldest = sources->options && sources->options->oldest ? sources->options->oldest
								       : named,
	};

	spokei_settings_look(sources->settings, &values);
	spokei_keys_fill(&values, 1u << sources->section, SPOKEI_AT_FILES, &options);
	spokei_keys_fill(&values, 1u << sources->section, SPOKEI_AT_HANDSHAKES, &options.limits);
	return options;
}

/* Files and rules of TLS without TLS are a mistake mostly, and a link would be plain without a
 * word.
 */
static void tell_of_unused(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
			   const struct spokei_tls_options *options)
{
	const char *key = options->ca      ? "tls.ca"
			  : options->cert  ? "tls.cert"
			  : options->key   ? "tls.key"
			  : options->crl   ? "tls.crl"
			  : options->peers ? "tls.peers"
					   : NULL;

	if (key == NULL && options->verify != SPOKE_TLS_VERIFY_DEFAULT)
		key = "tls.verify";
	if (key && sources->of_url == NULL)
		spokei_event(engine, SPOKE_EINVAL, "tls: %s is set, but TLS is off; set tls = on",
			     key);
}

int spokei_settings_tls(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
			enum spokei_tls_mode *ret_mode, struct spokei_tls **ret_tls)
{
	struct spokei_tls_options options;
	char why[SPOKEI_TLS_WHY];
	int error = find_mode(engine, sources, ret_mode);

	*ret_tls = NULL;
	if (error)
		return error;
	options = options_of(sources);
	if (*ret_mode == SPOKEI_TLS_OFF &&
	    (!options.accepts || (options.cert == NULL && options.key == NULL))) {
		tell_of_unused(engine, sources, &options);
		return SPOKE_OK;
	}
	error = spokei_tls_new(engine, &options, why, ret_tls);
	if (error)
		spokei_event(engine, error, "%s", why);
	return error;
}
