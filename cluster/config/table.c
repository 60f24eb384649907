/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings: names, checks of values, rows and fields; and its description for users.
 */
#include "cluster/config/keys.h"

#include "cluster/balancer/balancers.h"
#include "cluster/balancer/weights.h"
#include "cluster/config/credentials.h"
#include "cluster/config/owners.h"
#include "cluster/config/places.h"
#include "cluster/config/store.h"
#include "cluster/policy/policies.h"
#include "core/base/log.h"
#include "core/text/secret.h"
#include "transport/conn/link.h"
#include "transport/http/guard.h"
#include "transport/listen/quota.h"
#include "transport/listen/rules.h"
#include "transport/stream/tls/tls.h"
#include "transport/trust/caller.h"

#include <spoke/call.h>
#include <spoke/comet.h>
#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/lease.h>
#include <spoke/link.h>
#include <spoke/provider.h>
#include <spoke/registry.h>
#include <spoke/tls.h>
#include <spoke/value.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

/* --- names of values */

/* Defines a function of names by number. */
#define NAMES_OF(function, ...)                                                                    \
	static const char *function(unsigned index)                                                \
	{                                                                                          \
		static const char *const names[] = { __VA_ARGS__ };                                \
                                                                                                   \
		return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;             \
	}

NAMES_OF(backoff_name, "fixed", "exponential")
NAMES_OF(serialization_name, "auto", "hessian2", "msgpack")
NAMES_OF(auth_name, "none", "accesskey")
NAMES_OF(local_path_name, "auto", "off")
NAMES_OF(subscribe_mode_name, "all", "first", "interface", "instance")
NAMES_OF(register_mode_name, "all", "interface", "instance") /* enum spokei_keeper_mode */
NAMES_OF(unknown_name, "refuse", "run")
NAMES_OF(ids_name, "auto", "on", "off")
NAMES_OF(durability_name, "process", "power", "none")
NAMES_OF(broken_name, "refuse", "volatile")
NAMES_OF(damaged_name, "refuse", "salvage")
NAMES_OF(overflow_name, "reject", "drop-oldest")
NAMES_OF(tls_name, "off", "on", "optional")
NAMES_OF(tls_verify_name, "auto", "none", "optional", "required")
NAMES_OF(tls_min_name, "1.3", "1.2")

static const char *log_level_name(unsigned index)
{
	if (index == SPOKE_LOG_DEBUG + 1)
		return "off";
	return index <= SPOKE_LOG_DEBUG ? spokei_log_level_name((enum spoke_log_level)index) : NULL;
}

/* --- objects of names */

static const char *policy_name(unsigned index)
{
	return spokei_policies[index] ? spokei_policies[index]->name : NULL;
}

static const void *policy_at(unsigned index)
{
	return spokei_policies[index];
}

static const char *balancer_name(unsigned index)
{
	return spokei_balancers[index] ? spokei_balancers[index]->name : NULL;
}

static const void *balancer_at(unsigned index)
{
	return spokei_balancers[index];
}

/* --- checks of texts: functions of rows */

const char spokei_check_no_memory[] = "out of memory";

/* Returns the sentence without the name of the list. */
static const char *after_name(const char *why, const char *name)
{
	return why + strlen(name) + strlen(": ");
}

static const char *check_rules(const struct spokei_check *of, const char *value)
{
	const struct spokei_rules_of lists = {
		.allow_from = of->key == SPOKEI_KEY_ALLOW_FROM ? value : NULL,
		.deny_from = of->key == SPOKEI_KEY_DENY_FROM ? value : NULL,
		.allow_users = of->key == SPOKEI_KEY_ALLOW_USERS ? value : NULL,
	};
	struct spokei_rules *rules;
	int error = spokei_rules_new(of->env, &lists, &rules, of->why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_RULES_WHY, "any sentence fits");
	if (error)
		return error == SPOKE_ENOMEM ? spokei_check_no_memory
					     : after_name(of->why, spokei_keys_name(of->key));
	spokei_rules_free(of->env, rules);
	return NULL;
}

static const char *check_callers(const struct spokei_check *of, const char *value)
{
	struct spokei_callers *callers;
	int error = spokei_callers_new(of->env, value, 1, &callers, of->why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_CALLERS_WHY, "any sentence fits");
	if (error)
		return error == SPOKE_ENOMEM ? spokei_check_no_memory : of->why;
	spokei_callers_free(of->env, callers);
	return NULL;
}

static const char *check_tls_peers(const struct spokei_check *of, const char *value)
{
	int error = spokei_tls_check_peers(of->env, value, of->why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_TLS_WHY, "any sentence fits");
	if (error == SPOKE_ENOMEM)
		return spokei_check_no_memory;
	return error ? after_name(of->why, spokei_keys_name(of->key)) : NULL;
}

static const char *check_origins(const struct spokei_check *of, const char *value)
{
	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_GUARD_WHY, "any sentence fits");
	return spokei_guard_check_origins(value, of->why);
}

/* The header of a response that names an origin has room for this many bytes of it. */
static const char *check_comet_origins(const struct spokei_check *of, const char *value)
{
	struct spoke_span item;

	for (const char *at = value; spokei_option_item(&at, &item);)
		if (item.len > SPOKEI_ORIGIN_MAX)
			return "an origin has at most 280 bytes";
	return check_origins(of, value);
}

static const char *check_hosts(const struct spokei_check *of, const char *value)
{
	return spokei_guard_check_names(value, of->why);
}

static const char *refuse_entry(const struct spokei_check *of, unsigned number,
				struct spoke_span entry, const char *wrong)
{
	char shown[SPOKEI_PLACES_SHOWN];

	(void)spokei_log_escape(shown, sizeof(shown), entry.data, entry.len);
	(void)snprintf(of->why, SPOKEI_CHECK_WHY, "entry %u, %s: %s", number, shown, wrong);
	return of->why;
}

static const char *check_ranges(const struct spokei_check *of, const char *value)
{
	struct spokei_range range;
	struct spoke_span item;

	for (unsigned number = 1; spokei_option_item(&value, &item); number++) {
		const char *wrong = spokei_range_read(item, &range);

		if (wrong)
			return refuse_entry(of, number, item, wrong);
	}
	return NULL;
}

static const char *check_comet_listen(const struct spokei_check *of, const char *value)
{
	struct spoke_address address;
	struct spoke_span item;

	for (unsigned number = 1; spokei_option_item(&value, &item); number++) {
		if (!spokei_places_read(of->env, item, &address))
			return refuse_entry(of, number, item,
					    "not a numeric address; write e.g. 127.0.0.1:8080 or "
					    "unix:/run/pages.sock");
	}
	return NULL;
}

static const char *check_token(const struct spokei_check *of, const char *value)
{
	const bool is_random = spokei_token_is_random(value);
	struct spokei_tokens read = { .count = 0 };
	const char *why = is_random || spokei_token_is_none(value)
				  ? NULL
				  : spokei_tokens_read_list(&read, value, NULL);

	if (why || of->section != SPOKEI_IN_CONSUMER)
		return why;
	if (strcmp(value, "true") == 0)
		return "it cannot be random here: write it, or name its file";
	return strchr(value, ',') ? "only one token is possible here" : NULL;
}

static const char *check_tls(const struct spokei_check *of, const char *value)
{
	return of->section == SPOKEI_IN_CONSUMER && strcmp(value, "optional") == 0
		       ? "a consumer never falls back to plain connections; use on or off"
		       : NULL;
}

static const char *check_host(const struct spokei_check *of, const char *value)
{
	return spokei_places_check_host(of->env, value);
}

static const char *check_admin(const struct spokei_check *of, const char *value)
{
	static const char scheme[] = "https://";
	struct spoke_address address;

	if (strncmp(value, scheme, sizeof(scheme) - 1) == 0)
		value += sizeof(scheme) - 1;
	if (spokei_places_read(of->env, spokei_span_of(value), &address))
		return NULL;
	return "not a numeric address; write e.g. 127.0.0.1:9090, https://10.0.0.1:9090 or "
	       "unix:/run/page.sock";
}

static const char *check_store(const struct spokei_check *of, const char *value)
{
	struct spoke_url_error why;
	struct spokei_store store;
	int error = spokei_store_parse(of->env, value, strlen(value), &store, &why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKE_URL_ERROR_MAX, "any sentence fits");
	if (error == SPOKE_OK)
		spokei_store_fini(&store);
	else
		(void)snprintf(of->why, SPOKEI_CHECK_WHY, "%s", why.text);
	if (error == SPOKE_ENOMEM)
		return spokei_check_no_memory;
	return error ? of->why : NULL;
}

static const char *check_listen(const struct spokei_check *of, const struct spoke_url *url)
{
	return spokei_places_check_listen(of->env, url, of->why);
}

static const char *check_registry(const struct spokei_check *of, const struct spoke_url *url)
{
	(void)of;
	if (strcmp(url->scheme, "file") == 0 && (!url->host || *url->host || !*url->path))
		return "the path must be absolute, on this machine; write e.g. "
		       "file:///run/spoke/providers";
	return spoke_registry_find(url->scheme) ? NULL
						: "not a registry; write " SPOKE_REGISTRY_URLS;
}

static const char *check_backend(const struct spokei_check *of, const struct spoke_url *url)
{
	(void)of;
	if (*spokei_places_service(url) == '\0')
		return "the URL must name the service, e.g. dubbo://127.0.0.1:20880/shop.Texts";
	if (strcmp(url->scheme, SPOKEI_PLACES_LISTED) != 0 &&
	    spokei_places_wire(url->scheme) == NULL)
		return "unknown scheme; use dubbo, msgpack-rpc, tcp or consumer";
	if (url->host && url->port == 0)
		return "port 0 is not valid for a consumer";
	return NULL;
}

/* --- rows */

/* Details of a row. */
#define LIVE .live = true
#define RANGE(from, to) .option.min = (from), .option.max = (to)
#define NAMES(function) .option.names = (function)
#define PRESET(number) .option.preset = (number)
#define OR_NONE .option.or_none = true
#define PRESET_TEXT(text) .preset = (text)
#define OF_URLS .of_urls = true
#define CHECK(function) .check = (function)
#define URLS(function) .is_url = true, .check_url = (function)
#define IS_URL .is_url = true
#define SECRET .secret = true
#define NONE_IN_CODE .none_in_code = true
#define WORDS(enumeration) .words = (enumeration)
#define FIELDS(...) .fields = { __VA_ARGS__ }

#define OBJECTS(function) .object = (function)

/* A field of a struct. NOT: it means the opposite. OBJECT: a pointer to what a name stands for. */
#define AT(of, field)                                                                              \
	FIELD(SPOKEI_AT_##of, STRUCT_##of, field, TYPE_OF(((STRUCT_##of *)0)->field), false)
#define NOT(of, field)                                                                             \
	FIELD(SPOKEI_AT_##of, STRUCT_##of, field, TYPE_OF(((STRUCT_##of *)0)->field), true)
#define OBJECT(of, field) FIELD(SPOKEI_AT_##of, STRUCT_##of, field, SPOKEI_FIELD_OBJECT, false)
#define FIELD(of, structure, field, type, inverts)                                                 \
	{                                                                                          \
		(of), (type), (inverts), offsetof(structure, field), #field                        \
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
#define STRUCT_FILES struct spokei_tls_options
#define STRUCT_HANDSHAKES struct spokei_tls_limits
#define STRUCT_QUOTA struct spokei_quota_limits
#define STRUCT_DIRECTORY struct spokei_directory_settings
#define STRUCT_JOURNAL struct spokei_journal_settings

/* clang-format off */
#define SETTING(key, text, kind_, in, says, ...)                                                   \
	[SPOKEI_KEY_##key] = { .option.name = (text), .option.kind = SPOKEI_OPTION_##kind_,        \
			       .option.sentence = (says), .sections = (in), __VA_ARGS__ },
static const struct spokei_key_row rows[SPOKEI_KEYS] = {
#include "cluster/config/rows.h"
#include <spoke/url.h>
};
/* clang-format on */

const struct spokei_key_row *spokei_key_row(enum spokei_key key)
{
	return &rows[key];
}

enum spokei_key spokei_key_find(const char *name)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		if (strcmp(rows[i].option.name, name) == 0)
			return (enum spokei_key)i;
	return SPOKEI_KEYS;
}

enum spokei_key spokei_key_find_in(enum spokei_section section, const char *name)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		if (rows[i].sections & 1u << section &&
		    strcmp(spokei_key_in_file((enum spokei_key)i), name) == 0)
			return (enum spokei_key)i;
	return SPOKEI_KEYS;
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

bool spokei_field_is_pointer(const struct spokei_field *field)
{
	return field->type == SPOKEI_FIELD_TEXT || field->type == SPOKEI_FIELD_OBJECT;
}

void spokei_field_set_pointer(const struct spokei_field *field, void *options, const void *to)
{
	memcpy((char *)options + field->at, &to, sizeof(to));
}

const void *spokei_field_pointer(const struct spokei_field *field, const void *options)
{
	const void *to;

	memcpy(&to, (const char *)options + field->at, sizeof(to));
	return to;
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

/* The words of headings, and whether a name follows, e.g. "service.NAME". */
static const struct {
	const char *word;
	bool named;
} sections[SPOKEI_SECTIONS] = {
	[SPOKEI_IN_CONSUMER] = { "consumer", false }, [SPOKEI_IN_SERVICE] = { "service", true },
	[SPOKEI_IN_METHOD] = { "method", true },      [SPOKEI_IN_PROVIDER] = { "provider", false },
	[SPOKEI_IN_REGISTRY] = { "registry", false }, [SPOKEI_IN_LEASE] = { "lease", false },
	[SPOKEI_IN_COMET] = { "comet", false },       [SPOKEI_IN_ENGINE] = { "engine", false },
};

const char *spokei_section_word(enum spokei_section section)
{
	return sections[section].word;
}

bool spokei_section_is_named(enum spokei_section section)
{
	return sections[section].named;
}

void spokei_sections_print(unsigned left, const char *before, const char *behind, char *out,
			   size_t size)
{
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; left && used < size; i++) {
		int len;

		if (!(left & 1u << i))
			continue;
		left &= ~(1u << i);
		len = snprintf(out + used, size - used, "%s%s%s%s%s", used ? ", " : "", before,
			       sections[i].word, sections[i].named ? ".NAME" : "", behind);
		used += len > 0 ? (size_t)len : 0;
	}
}

/* --- the table, for users */

static const char *const kinds[] = {
	[SPOKEI_OPTION_DURATION] = "duration",
	[SPOKEI_OPTION_SIZE] = "size",
	[SPOKEI_OPTION_COUNT] = "count",
	[SPOKEI_OPTION_CAP] = "count or auto",
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
	       kind == SPOKEI_OPTION_COUNT || kind == SPOKEI_OPTION_CAP;
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
	spokei_sections_print(row->sections, "", "", ret_key->sections, sizeof(ret_key->sections));
	spokei_key_print(key, row->option.preset, true, ret_key->preset, sizeof(ret_key->preset));
	print_range(&row->option, ret_key->range, sizeof(ret_key->range));
	return true;
}
