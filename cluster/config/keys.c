/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of configuration keys from URLs and options, and lays them over one another. */
#include "cluster/config/keys.h"

#include "cluster/catalog.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/text/similar.h"

#include <spoke/call.h>
#include <spoke/link.h>

#include <stdio.h>
#include <string.h>

#define QUOTED_MAX 64u /* bytes of a key in a message */

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

bool spokei_keys_is_other(const char *key)
{
	for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++)
		if (strcmp(key, other_keys[i]) == 0)
			return true;
	for (unsigned i = SPOKEI_KEYS_OF_URLS; i < SPOKEI_KEYS; i++) {
		const struct spokei_key_row *row = spokei_key_row((enum spokei_key)i);

		if (row->of_urls && strcmp(key, row->option.name) == 0)
			return true;
	}
	return false;
}

bool spokei_keys_is_secret(const char *key)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_key_row *row = spokei_key_row((enum spokei_key)i);

		if (row->secret && strcmp(key, row->option.name) == 0)
			return true;
	}
	return false;
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
	const char *nearest = spokei_similar_nearest(key, name_at, NULL, SPOKEI_KEYS_OF_URLS);
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
	enum spokei_key key;
	uint64_t number;

	for (unsigned i = 0; i < SPOKEI_KEYS_OF_URLS; i++) {
		int error;

		if (strcmp(spokei_keys_name((enum spokei_key)i), parameter->key) != 0)
			continue;
		error = parse((enum spokei_key)i, parameter->key, parameter->value, &number, why,
			      size);
		if (error == SPOKE_OK)
			spokei_keys_put(values, (enum spokei_key)i, number, SPOKEI_FROM_URL, 0);
		return error;
	}
	if (spokei_keys_is_other(parameter->key))
		return SPOKE_OK;
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
	values->line[key] = line;
	values->from[key] = (unsigned char)from;
	values->said[key] = true;
}

static void copy(struct spokei_key_values *to, const struct spokei_key_values *values, unsigned key)
{
	to->of[key] = values->of[key];
	to->line[key] = values->line[key];
	to->from[key] = values->from[key];
	to->said[key] = values->said[key];
}

void spokei_keys_lay(struct spokei_key_values *values, const struct spokei_key_values *over)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (over->said[i])
			copy(values, over, i);
	}
}

void spokei_keys_renew(struct spokei_key_values *values, const struct spokei_key_values *read)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (spokei_key_row((enum spokei_key)i)->live)
			copy(values, read, i);
	}
}

void spokei_keys_set_none(struct spokei_key_values *values, enum spokei_key key)
{
	spokei_keys_put(values, key, 0, SPOKEI_FROM_CODE, 0);
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

int spokei_keys_overrule(struct spoke_engine *engine, struct spokei_key_values *values,
			 enum spokei_key key, uint64_t option)
{
	const struct spokei_option *row = &spokei_key_row(key)->option;
	char min[32];
	char max[32];
	char value[32];

	if (option == 0 || (option >= row->min && option <= row->max) ||
	    spokei_option_is_word(row->kind, option)) {
		spokei_keys_set(values, key, option);
		return SPOKE_OK;
	}
	spokei_option_print(row->kind, row->min, min, sizeof(min));
	spokei_option_print(row->kind, row->max, max, sizeof(max));
	spokei_option_print(row->kind, option, value, sizeof(value));
	spokei_event(engine, SPOKE_ERANGE, "option %s=%s: not between %s and %s", row->name, value,
		     min, max);
	return SPOKE_ERANGE;
}

int spokei_keys_overrule_interval(struct spoke_engine *engine, struct spokei_key_values *values,
				  enum spokei_key key, uint64_t option)
{
	const struct spokei_option *row = &spokei_key_row(key)->option;
	char text[32];
	char min[32];

	if (option == SPOKE_OFF) {
		spokei_keys_set_none(values, key);
		return SPOKE_OK;
	}
	if (option == 0 || option >= row->min)
		return spokei_keys_overrule(engine, values, key, option);
	spokei_option_print(SPOKEI_OPTION_DURATION, option, text, sizeof(text));
	spokei_option_print(SPOKEI_OPTION_DURATION, row->min, min, sizeof(min));
	spokei_event(engine, SPOKE_ERANGE, "option %s=%s: %s at least, or SPOKE_OFF",
		     spokei_keys_name(key), text, min);
	return SPOKE_ERANGE;
}

int spokei_keys_overrule_retries(struct spoke_engine *engine, struct spokei_key_values *values,
				 uint32_t option)
{
	if (option != SPOKE_NONE)
		return spokei_keys_overrule(engine, values, SPOKEI_KEY_RETRIES, option);
	spokei_keys_set_none(values, SPOKEI_KEY_RETRIES);
	return SPOKE_OK;
}

int spokei_keys_overrule_serialization(struct spoke_engine *engine,
				       struct spokei_key_values *values, unsigned option)
{
	if (option > SPOKE_SERIALIZATION_MSGPACK) {
		spokei_event(engine, SPOKE_EINVAL,
			     "option serialization=%u: no value of enum spoke_serialization",
			     option);
		return SPOKE_EINVAL;
	}
	if (option == SPOKE_SERIALIZATION_AUTO)
		spokei_keys_set_none(values, SPOKEI_KEY_SERIALIZATION);
	else if (option != SPOKE_SERIALIZATION_DEFAULT)
		spokei_keys_set(values, SPOKEI_KEY_SERIALIZATION,
				option - SPOKE_SERIALIZATION_AUTO);
	return SPOKE_OK;
}
