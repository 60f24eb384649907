/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of settings, and its description for users. Values: read from URLs and options, laid
 * over one another, and written to the settings of owners.
 */
#include "cluster/config/keys.h"

#include "cluster/catalog.h"
#include "cluster/config/owners.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/text/similar.h"
#include "core/text/tokens.h"
#include "transport/conn/callers.h"
#include "transport/conn/link.h"
#include "transport/listen/quota.h"
#include "transport/listen/rules.h"
#include "transport/stream/tls/tls.h"

#include <spoke/call.h>
#include <spoke/comet.h>
#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/lease.h>
#include <spoke/link.h>
#include <spoke/provider.h>
#include <spoke/tls.h>
#include <spoke/value.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_MAX 64u /* bytes of a key in a message */
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_H UINT64_C(3600000000000)
#define FRAME_MAX 67108864u
#define SHM_RING_MIN 4096u
#define SHM_RING_MAX 1048576u
#define FRAME_MIN 1024u
#define VALUES_MIN 1024u
#define TEXT_MAX 2048u
#define LEASE_TTL_MIN_NS (100 * NS_PER_MS)
#define LEASES_MAX 10000000u
#define CREDENTIAL_MAX 255u
#define UNPROVEN_FRAME_MAX 8388608u
#define COMET_TIME_MAX (480 * NS_PER_H) /* its stamps are 32 bits of ms */
#define COMET_TEXT_MAX 131072u          /* so that a text fits the engine's scratch */

/* Sections in which keys are allowed. */
#define CONSUMER (1u << SPOKEI_IN_CONSUMER)
#define CALLS (CONSUMER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define PROVIDER (1u << SPOKEI_IN_PROVIDER)
#define BOTH (CONSUMER | PROVIDER)
#define SERVED (PROVIDER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define SERVICE (1u << SPOKEI_IN_SERVICE)
#define PROVEN (CONSUMER | PROVIDER | SERVICE)
#define REGISTRY (1u << SPOKEI_IN_REGISTRY)
#define LEASE (1u << SPOKEI_IN_LEASE)
#define COMET (1u << SPOKEI_IN_COMET)
#define ENGINE (1u << SPOKEI_IN_ENGINE)

/* --- the table */

static const char *backoff_name(unsigned index)
{
	static const char *const names[] = { "fixed", "exponential", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *serialization_name(unsigned index)
{
	static const char *const names[] = { "auto", "hessian2", "msgpack", NULL };

	return index < 4 ? names[index] : NULL;
}

static const char *auth_name(unsigned index)
{
	static const char *const names[] = { "none", "accesskey", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *log_level_name(unsigned index)
{
	if (index == SPOKE_LOG_DEBUG + 1)
		return "off";
	return index <= SPOKE_LOG_DEBUG ? spokei_log_level_name((enum spoke_log_level)index) : NULL;
}

static const char *local_path_name(unsigned index)
{
	static const char *const names[] = { "auto", "off", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *overflow_name(unsigned index)
{
	static const char *const names[] = { "reject", "drop-oldest", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *tls_name(unsigned index)
{
	static const char *const names[] = { "off", "on", "optional", NULL };

	return index < 4 ? names[index] : NULL;
}

static const char *tls_verify_name(unsigned index)
{
	static const char *const names[] = { "auto", "none", "optional", "required", NULL };

	return index < 5 ? names[index] : NULL;
}

static const char *tls_min_name(unsigned index)
{
	static const char *const names[] = { "1.3", "1.2", NULL };

	return index < 3 ? names[index] : NULL;
}

/* Details of a row. */
#define LIVE .live = true
#define RANGE(from, to) .option.min = (from), .option.max = (to)
#define NAMES(function) .option.names = (function)
#define PRESET(number) .option.preset = (number)
#define OR_NONE .option.or_none = true
#define PRESET_TEXT(text) .preset = (text)
#define OF_URLS .of_urls = true
#define IS_URL .is_url = true
#define SECRET .secret = true
#define NONE_IN_CODE .none_in_code = true
#define WORDS(enumeration) .words = (enumeration)
#define FIELDS(...) .fields = { __VA_ARGS__ }

/* A field of a struct. NOT: it means the opposite. */
#define AT(of, field) FIELD(SPOKEI_AT_##of, STRUCT_##of, field, false)
#define NOT(of, field) FIELD(SPOKEI_AT_##of, STRUCT_##of, field, true)
#define FIELD(of, type, field, inverts)                                                            \
	{                                                                                          \
		(of), TYPE_OF(((type *)0)->field), (inverts), offsetof(type, field), #field        \
	}
#define TYPE_OF(member)                                                                            \
	(_Generic((member), const char *: SPOKEI_FIELD_TEXT, bool: SPOKEI_FIELD_BOOL,              \
		  default: sizeof(member) == 4 ? SPOKEI_FIELD_32 : SPOKEI_FIELD_64) +              \
	 IS_TRUE(sizeof(member) == 1 || sizeof(member) == 4 || sizeof(member) == 8))
/* 0, or no program. */
#define IS_TRUE(condition) (0 * sizeof(char[(condition) ? 1 : -1]))
#define STRUCT_CONSUMER struct spoke_consumer_options
#define STRUCT_METHOD struct spoke_method_options
#define STRUCT_PROVIDER struct spoke_provider_options
#define STRUCT_TLS struct spoke_tls_options
#define STRUCT_LEASES struct spoke_leases_options
#define STRUCT_COMET struct spoke_comet_options
#define STRUCT_ENGINE struct spoke_engine_options
#define STRUCT_CALL struct spokei_call_settings
#define STRUCT_LINK struct spokei_link_limits
#define STRUCT_HANDSHAKES struct spokei_tls_limits
#define STRUCT_QUOTA struct spokei_quota_limits
#define STRUCT_DIRECTORY struct spokei_directory_settings

/* clang-format off */
#define SETTING(key, text, kind_, in, says, ...)                                                   \
	[SPOKEI_KEY_##key] = { .option.name = (text), .option.kind = SPOKEI_OPTION_##kind_,        \
			       .option.sentence = (says), .sections = (in), __VA_ARGS__ },
static const struct spokei_key_row rows[SPOKEI_KEYS] = {
#include "cluster/config/rows.h"
};
/* clang-format on */

const struct spokei_key_row *spokei_key_row(enum spokei_key key)
{
	return &rows[key];
}

bool spokei_key_is_text(enum spokei_key key)
{
	return rows[key].option.kind == SPOKEI_OPTION_TEXT ||
	       rows[key].option.kind == SPOKEI_OPTION_LIST;
}

const struct spokei_field *spokei_key_field(enum spokei_key key, enum spokei_fields_of of)
{
	for (unsigned i = 0; i < SPOKEI_FIELDS_MAX; i++)
		if (rows[key].fields[i].of == of)
			return &rows[key].fields[i];
	return NULL;
}

uint64_t spokei_field_get(const struct spokei_field *field, const void *options)
{
	const char *at = (const char *)options + field->at;
	uint64_t wide;
	uint32_t narrow;

	if (field->type == SPOKEI_FIELD_BOOL)
		return *(const bool *)at;
	if (field->type == SPOKEI_FIELD_32) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

void spokei_field_set(const struct spokei_field *field, void *options, uint64_t number)
{
	char *at = (char *)options + field->at;
	const uint32_t narrow = (uint32_t)number;

	if (field->type == SPOKEI_FIELD_BOOL)
		*(bool *)at = number != 0;
	else if (field->type == SPOKEI_FIELD_32)
		memcpy(at, &narrow, sizeof(narrow));
	else
		memcpy(at, &number, sizeof(number));
}

void spokei_field_set_text(const struct spokei_field *field, void *options, const char *text)
{
	memcpy((char *)options + field->at, &text, sizeof(text));
}

const char *spokei_field_text(const struct spokei_field *field, const void *options)
{
	const char *text;

	memcpy(&text, (const char *)options + field->at, sizeof(text));
	return text;
}

const char *spokei_key_in_file(enum spokei_key key)
{
	const char *name = rows[key].option.name;

	if (rows[key].sections == REGISTRY)
		return name + strlen("registry.");
	if (rows[key].sections == COMET)
		return name + strlen("comet.");
	return rows[key].sections == LEASE ? name + strlen("lease.") : name;
}

const char *spokei_section_name(enum spokei_section section)
{
	static const char *const names[SPOKEI_SECTIONS] = {
		[SPOKEI_IN_CONSUMER] = "consumer",  [SPOKEI_IN_SERVICE] = "service.NAME",
		[SPOKEI_IN_METHOD] = "method.NAME", [SPOKEI_IN_PROVIDER] = "provider",
		[SPOKEI_IN_REGISTRY] = "registry",  [SPOKEI_IN_LEASE] = "lease",
		[SPOKEI_IN_COMET] = "comet",        [SPOKEI_IN_ENGINE] = "engine",
	};

	return names[section];
}

bool spokei_section_is_named(enum spokei_section section)
{
	return strchr(spokei_section_name(section), '.') != NULL;
}

void spokei_key_sections(enum spokei_key key, const char *before, const char *behind, char *out,
			 size_t size)
{
	unsigned left = rows[key].sections;
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; left && used < size; i++) {
		int len;

		if (!(left & 1u << i))
			continue;
		left &= ~(1u << i);
		len = snprintf(out + used, size - used, "%s%s%s%s", used ? ", " : "", before,
			       spokei_section_name((enum spokei_section)i), behind);
		used += len > 0 ? (size_t)len : 0;
	}
}

/* --- the table, for users */

static const char *const kinds[] = {
	[SPOKEI_OPTION_DURATION] = "duration",
	[SPOKEI_OPTION_SIZE] = "size",
	[SPOKEI_OPTION_COUNT] = "count",
	[SPOKEI_OPTION_BOOL] = "boolean",
	[SPOKEI_OPTION_NAME] = "name",
	[SPOKEI_OPTION_TEXT] = "text",
	[SPOKEI_OPTION_LIST] = "list",
	[SPOKEI_OPTION_DELAY] = "duration or percentile",
	[SPOKEI_OPTION_SPIN] = "duration, auto or off",
};

static bool is_measure(enum spokei_option_kind kind)
{
	return kind == SPOKEI_OPTION_DURATION || kind == SPOKEI_OPTION_DELAY ||
	       kind == SPOKEI_OPTION_SPIN || kind == SPOKEI_OPTION_SIZE ||
	       kind == SPOKEI_OPTION_COUNT;
}

static void print_range(const struct spokei_option *option, char *out, size_t size)
{
	char min[32];
	char max[32];

	*out = '\0';
	if (option->kind == SPOKEI_OPTION_NAME)
		spokei_option_list_names(option->names, out, size);
	if (!is_measure(option->kind))
		return;
	spokei_option_print(option->kind, option->min, min, sizeof(min));
	spokei_option_print_max(option, max, sizeof(max));
	(void)snprintf(out, size, "%s%s to %s", option->or_none && option->min ? "0, or " : "", min,
		       max);
}

void spokei_key_print(enum spokei_key key, uint64_t number, bool preset, char *out, size_t size)
{
	const struct spokei_key_row *row = &rows[key];
	const struct spokei_option *option = &row->option;

	if (preset && row->preset)
		(void)snprintf(out, size, "%s", row->preset);
	else if (option->kind == SPOKEI_OPTION_NAME)
		(void)snprintf(out, size, "%s", option->names((unsigned)number));
	else if (option->kind == SPOKEI_OPTION_TEXT || option->kind == SPOKEI_OPTION_LIST)
		*out = '\0';
	else
		spokei_option_print(option->kind, number, out, size);
}

bool spoke_config_key(size_t index, struct spoke_config_key *ret_key)
{
	const struct spokei_key_row *row;
	enum spokei_key key = (enum spokei_key)index;

	if (index >= SPOKEI_KEYS)
		return false;
	row = &rows[key];
	*ret_key = (struct spoke_config_key){
		.name = spokei_key_in_file(key),
		.kind = kinds[row->option.kind],
		.sentence = row->option.sentence,
		.live = row->live,
	};
	spokei_key_sections(key, "", "", ret_key->sections, sizeof(ret_key->sections));
	spokei_key_print(key, row->option.preset, true, ret_key->preset, sizeof(ret_key->preset));
	print_range(&row->option, ret_key->range, sizeof(ret_key->range));
	return true;
}

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

/* Returns the key of this name that URLs may contain, although it is not checked here; SPOKEI_KEYS:
 * none. */
static enum spokei_key find_other(const char *name)
{
	for (unsigned i = SPOKEI_KEYS_OF_URLS; i < SPOKEI_KEYS; i++) {
		const struct spokei_key_row *row = spokei_key_row((enum spokei_key)i);

		if (row->of_urls && strcmp(name, row->option.name) == 0)
			return (enum spokei_key)i;
	}
	return SPOKEI_KEYS;
}

bool spokei_keys_is_other(const char *key)
{
	for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++)
		if (strcmp(key, other_keys[i]) == 0)
			return true;
	return find_other(key) != SPOKEI_KEYS;
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
	key = find_other(parameter->key);
	if (key != SPOKEI_KEYS && spokei_key_is_text(key) && *parameter->value)
		spokei_keys_put_text(values, key, parameter->value, SPOKEI_FROM_URL, 0);
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

void spokei_keys_put_text(struct spokei_key_values *values, enum spokei_key key, const char *text,
			  enum spokei_origin from, unsigned line)
{
	spokei_keys_put(values, key, 0, from, line);
	values->text[key] = spokei_key_row(key)->secret ? NULL : text;
}

static void copy(struct spokei_key_values *to, const struct spokei_key_values *values, unsigned key)
{
	to->of[key] = values->of[key];
	to->text[key] = values->text[key];
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
		if (!spokei_key_row((enum spokei_key)i)->live)
			continue;
		copy(values, read, i);
		if (read->from[i] == SPOKEI_FROM_FILE)
			values->text[i] = NULL;
	}
}

/* Returns the bytes that a copy of a text needs; 0: it has none. */
static size_t copy_size(const struct spokei_key_values *values, unsigned key)
{
	const bool changes = spokei_key_row((enum spokei_key)key)->live &&
			     values->from[key] == SPOKEI_FROM_FILE;

	return values->text[key] && !changes ? strlen(values->text[key]) + 1 : 0;
}

int spokei_keys_own(const struct spoke_env *env, struct spokei_key_values *values,
		    struct spokei_key_values *layer)
{
	size_t size = 0;
	char *at;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		size += copy_size(values, i);
	at = size ? spokei_alloc_unset(env, size) : NULL;
	if (at == NULL && size)
		return SPOKE_ENOMEM;
	values->owned = at;
	values->owned_size = size;
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const size_t len = copy_size(values, i);

		if (len)
			memcpy(at, values->text[i], len);
		values->text[i] = len ? at : NULL;
		if (layer->said[i])
			layer->text[i] = values->text[i];
		at = len ? at + len : at;
	}
	return SPOKE_OK;
}

void spokei_keys_disown(const struct spoke_env *env, struct spokei_key_values *values)
{
	spokei_free(env, values->owned, 1, values->owned_size);
	values->owned = NULL;
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

static int refuse_number(struct spoke_engine *engine, const struct spokei_key_row *row,
			 uint64_t number)
{
	const struct spokei_option *option = &row->option;
	char min[32];
	char max[32];
	char value[32];

	spokei_option_print(option->kind, option->min, min, sizeof(min));
	spokei_option_print(option->kind, option->max, max, sizeof(max));
	spokei_option_print(option->kind, number, value, sizeof(value));
	if (option->or_none && number < option->min)
		spokei_event(engine, SPOKE_ERANGE, "option %s=%s: %s at least, or SPOKE_OFF",
			     option->name, value, min);
	else
		spokei_event(engine, SPOKE_ERANGE, "option %s=%s: not between %s and %s",
			     option->name, value, min, max);
	return SPOKE_ERANGE;
}

/* Sets a key from a number that is not 0. */
static int put_number(struct spoke_engine *engine, const struct spokei_field *field,
		      struct spokei_key_values *values, enum spokei_key key, uint64_t number)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const struct spokei_option *option = &row->option;

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
		return refuse_number(engine, row, number);
	}
	spokei_keys_put(values, key, number, SPOKEI_FROM_CODE, 0);
	return SPOKE_OK;
}

int spokei_keys_read_code(struct spoke_engine *engine, struct spokei_key_values *values,
			  enum spokei_fields_of of, const void *options)
{
	int error = SPOKE_OK;

	for (unsigned i = 0; i < SPOKEI_KEYS && error == SPOKE_OK; i++) {
		const struct spokei_field *field = spokei_key_field((enum spokei_key)i, of);
		const char *text;
		uint64_t number;

		if (field == NULL)
			continue;
		if (field->type == SPOKEI_FIELD_TEXT) {
			text = spokei_field_text(field, options);
			/* An empty text of a consumer is none. */
			if (text && (*text || of != SPOKEI_AT_CONSUMER))
				spokei_keys_put_text(values, (enum spokei_key)i, text,
						     SPOKEI_FROM_CODE, 0);
			continue;
		}
		number = spokei_field_get(field, options);
		if (number)
			error = put_number(engine, field, values, (enum spokei_key)i, number);
	}
	return error;
}

void spokei_keys_fill(const struct spokei_key_values *values, enum spokei_section section,
		      enum spokei_fields_of of, void *settings)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_field *field = spokei_key_field((enum spokei_key)i, of);

		if (field && spokei_key_row((enum spokei_key)i)->sections & 1u << section)
			spokei_field_set(field, settings,
					 field->inverts ? !values->of[i] : values->of[i]);
	}
}
