/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the settings in force, with the source of each value. */
#include "cluster/admin/settings.h"

#include "cluster/admin/members.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/comet/view.h"
#include "cluster/config/config.h"
#include "cluster/config/file.h"
#include "cluster/config/places.h"
#include "cluster/consumer/consumer.h"
#include "cluster/consumer/settings.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/view.h"
#include "cluster/provider/provider.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/json/document.h"

#include <spoke/engine.h>

#include <stdio.h>
#include <string.h>

#define VALUE 1024u /* bytes */

/* An engine, consumer, method, provider or handler. */
struct owner {
	const char *kind;
	struct spoke_span name;
	const struct spoke_config *config; /* NULL: none */
	const char *file;                  /* its name, if it is not in use any more, or NULL */
	const struct spokei_key_values *values;
	const struct spokei_key_values *above; /* its equal settings are omitted; NULL: none */
	unsigned sections;                     /* bits 1 << section: it has their keys */
	unsigned within;                       /* only keys that these sections have, too; 0: all */
	const struct spokei_call_settings *calls; /* NULL: makes no calls */
};

struct report {
	struct spokei_json json;
	struct spoke_engine *engine;
	const struct spoke_config *files[SPOKEI_SETTINGS_FILES];
	size_t file_count;
	size_t rows_left;
	size_t owners_left;
	size_t more;
};

/* --- a value */

static void print_text(const struct owner *owner, enum spokei_key key, char *out, size_t size)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	const char *text = owner->values->text[key];
	bool is_preset = owner->values->from[key] == SPOKEI_FROM_DEFAULT;
	char shown[SPOKEI_PLACES_SHOWN];

	if (row->secret && !is_preset) {
		(void)snprintf(out, size, "%s", SPOKEI_CONFIG_HIDDEN);
	} else if (text == NULL || *text == '\0') {
		(void)snprintf(out, size, "%s", is_preset && row->preset ? row->preset : "");
	} else if (row->is_url) {
		spokei_places_show(text, shown);
		(void)snprintf(out, size, "%s", shown);
	} else {
		(void)snprintf(out, size, "%s", text);
	}
}

static void print_value(const struct owner *owner, enum spokei_key key, char *out, size_t size)
{
	const struct spokei_call_settings *calls = owner->calls;
	const struct spokei_key_values *values = owner->values;

	if (spokei_key_is_text(key))
		print_text(owner, key, out, size);
	else if (calls && key == SPOKEI_KEY_CLUSTER)
		(void)snprintf(out, size, "%s", calls->policy->name);
	else if (calls && key == SPOKEI_KEY_LOADBALANCE && calls->balancer)
		(void)snprintf(out, size, "%s", calls->balancer->name);
	else if (calls && key == SPOKEI_KEY_RETRIES)
		(void)snprintf(out, size, "%u", spokei_settings_retries(calls, calls->policy));
	else
		spokei_key_print(key, values->of[key], values->from[key] == SPOKEI_FROM_DEFAULT,
				 out, size);
}

static const char *const origins[] = {
	[SPOKEI_FROM_DEFAULT] = "default", [SPOKEI_FROM_PROVIDER] = "provider",
	[SPOKEI_FROM_FILE] = "file",       [SPOKEI_FROM_URL] = "URL",
	[SPOKEI_FROM_CODE] = "code",       [SPOKEI_FROM_RULE] = "rule",
};

static void show_setting(struct spokei_json *json, const struct owner *owner, enum spokei_key key)
{
	const struct spokei_key_values *values = owner->values;
	char value[VALUE];

	print_value(owner, key, value, sizeof(value));
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "key", spokei_keys_name(key));
	spokei_json_put_text(json, "value", value);
	spokei_json_put_text(json, "origin", origins[values->from[key]]);
	if (values->from[key] == SPOKEI_FROM_FILE)
		spokei_json_put_u64(json, "line", values->line[key]);
	spokei_json_close(json, '}');
}

/* --- an owner */

/* Is the key about lists of providers, which consumers receive? */
static bool is_of_lists(enum spokei_key key)
{
	return key == SPOKEI_KEY_REGISTRY_CACHE || key == SPOKEI_KEY_REGISTRY_PROTECT;
}

/* Is the key for providers only, although it stands in a section of a service, too? */
static bool is_of_requests(enum spokei_key key)
{
	const unsigned sections = spokei_key_row(key)->sections;

	return (sections & 1u << SPOKEI_IN_PROVIDER) != 0 &&
	       (sections & 1u << SPOKEI_IN_CONSUMER) == 0;
}

/* Is there no default, because without the key programs choose? */
static bool is_of_programs(enum spokei_key key)
{
	return key == SPOKEI_KEY_LISTEN || key == SPOKEI_KEY_COMET_LISTEN ||
	       key == SPOKEI_KEY_ADMIN || key == SPOKEI_KEY_ADMIN_TOKEN_FILE;
}

static bool has_key(const struct owner *owner, enum spokei_key key)
{
	const struct spokei_key_values *values = owner->values;
	const struct spokei_key_values *above = owner->above;

	const unsigned sections = spokei_key_row(key)->sections;

	if ((sections & owner->sections) == 0 || (sections & owner->within) != owner->within)
		return false;
	if (is_of_programs(key) && values->from[key] == SPOKEI_FROM_DEFAULT)
		return false;
	if (owner->calls ? is_of_requests(key) : is_of_lists(key))
		return false;
	return above == NULL || values->from[key] != above->from[key] ||
	       values->line[key] != above->line[key] || values->of[key] != above->of[key];
}

static size_t count_keys(const struct owner *owner)
{
	size_t count = 0;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		count += has_key(owner, (enum spokei_key)i);
	return count;
}

static void note_file(struct report *report, const struct spoke_config *config)
{
	for (size_t i = 0; i < report->file_count; i++)
		if (report->files[i] == config)
			return;
	if (config && report->file_count < SPOKEI_SETTINGS_FILES)
		report->files[report->file_count++] = config;
}

static void show_owner(struct report *report, const struct owner *owner)
{
	struct spokei_json *json = &report->json;
	size_t count = count_keys(owner);

	if (count > report->rows_left) {
		report->more++;
		return;
	}
	if (count == 0)
		return;
	report->rows_left -= count;
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "kind", owner->kind);
	spokei_json_key(json, "name");
	spokei_json_span(json, owner->name.data, owner->name.len);
	spokei_json_put_text(json, "file",
			     owner->config ? spokei_config_look(owner->config).name
			     : owner->file ? owner->file
					   : "");
	spokei_json_open_member(json, "settings", '[');
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (has_key(owner, (enum spokei_key)i))
			show_setting(json, owner, (enum spokei_key)i);
	}
	spokei_json_close(json, ']');
	spokei_json_close(json, '}');
}

/* Takes one of the methods and handlers that are compared. */
static bool may_compare(struct report *report)
{
	if (report->owners_left == 0) {
		report->more++;
		return false;
	}
	report->owners_left--;
	return true;
}

/* `values` gets those in force. */
static struct owner owner_of(const char *kind, const struct spokei_settings *settings,
			     struct spokei_key_values *values)
{
	spokei_settings_look(settings, values);
	return (struct owner){
		.kind = kind,
		.config = settings->file.config,
		.values = values,
		.sections = settings->kind->sections,
	};
}

/* A method lies over its owner. The caller sets the values. */
static struct owner part_of(const char *kind, const struct owner *above)
{
	return (struct owner){
		.kind = kind,
		.config = above->config,
		.above = above->values,
		.sections = 1u << SPOKEI_IN_METHOD,
	};
}

/* --- consumers */

static void show_method(struct report *report, const struct spokei_consumer_view *view,
			const struct owner *above, const struct spoke_method *method)
{
	const struct spokei_method_name name = { method->service, method->name };
	char text[VALUE];
	struct spokei_key_values values;
	struct owner owner = part_of("method", above);

	owner.calls = &method->settings;
	(void)snprintf(text, sizeof(text), "%.*s.%s", (int)method->service.len,
		       method->service.len ? (const char *)method->service.data : "", method->name);
	owner.name = spokei_span_of(text);
	if (!may_compare(report) ||
	    spokei_settings_method_values(view->all, &name, &method->said, &values))
		return;
	owner.values = &values;
	show_owner(report, &owner);
}

static void show_consumer(struct report *report, struct spokei_member *member)
{
	const struct spokei_consumer_view view = spokei_consumer_look(spokei_consumer_of(member));
	const struct spoke_list *methods = &view.caller->methods;
	struct spokei_key_values values;
	struct owner owner = owner_of("consumer", &view.all->keys, &values);

	owner.name = spokei_span_of(view.service);
	owner.calls = view.settings;
	show_owner(report, &owner);
	for (struct spoke_list *node = methods->next; node != methods; node = node->next)
		show_method(report, &view, &owner,
			    spoke_container_of(node, struct spoke_method, node));
}

/* --- providers */

static void show_handler(struct report *report, const struct spokei_provider_view *view,
			 const struct owner *above, const struct spokei_route *route)
{
	const struct spoke_span service = route->service->name;
	const struct spoke_span method = route->method;
	char name[VALUE + SPOKEI_SERVICE_KEY_MAX];
	struct spokei_key_values values;
	struct owner owner = part_of("handler", above);

	if (!may_compare(report))
		return;
	(void)snprintf(name, sizeof(name), "%.*s.%.*s", (int)service.len,
		       service.len ? (const char *)service.data : "",
		       method.len ? (int)method.len : 1,
		       method.len ? (const char *)method.data : "*");
	owner.name = spokei_span_of(name);
	owner.within = 1u << SPOKEI_IN_PROVIDER;
	spokei_settings_route(&view->settings->keys, route, &values);
	owner.values = &values;
	show_owner(report, &owner);
}

/* A service lies over its provider, and its handlers over it. */
static void show_service(struct report *report, const struct spokei_provider_view *view,
			 const struct owner *above, const struct spokei_service *service)
{
	const struct spokei_method_name name = { service->name, "" };
	struct spokei_key_values values;
	struct owner owner = part_of("service", above);

	if (!may_compare(report) ||
	    spokei_settings_read_method(&view->settings->keys, &name, NULL, &values))
		return;
	owner.name = service->name;
	owner.values = &values;
	owner.sections = 1u << SPOKEI_IN_SERVICE;
	owner.within = 1u << SPOKEI_IN_PROVIDER;
	show_owner(report, &owner);
	for (size_t i = 0; i < service->count; i++)
		show_handler(report, view, &owner, &service->routes[i]);
}

static void show_provider(struct report *report, struct spokei_member *member)
{
	const struct spoke_provider *provider = spokei_provider_of(member);
	const struct spokei_provider_view view = spokei_provider_look(provider);
	const struct spokei_service *service = NULL;
	char address[SPOKEI_PLACES_SHOWN] = "";
	struct spokei_key_values values;
	struct owner owner = owner_of("provider", &view.settings->keys, &values);

	if (view.addresses > 0)
		(void)spoke_provider_address(provider, 0, address, sizeof(address));
	owner.name = spokei_span_of(address);
	show_owner(report, &owner);
	while ((service = spokei_routes_next(view.services, service)) != NULL)
		show_service(report, &view, &owner, service);
}

/* --- the engine */

static void set_number(struct spokei_key_values *values, enum spokei_key key, uint64_t number,
		       uint64_t preset)
{
	if (number == values->of[key] && values->from[key] == SPOKEI_FROM_FILE)
		return;
	spokei_keys_put(values, key, number,
			number == preset ? SPOKEI_FROM_DEFAULT : SPOKEI_FROM_CODE, 0);
}

/* The engine does not know a file, so its options come from one that has the same number, else from
 * code. */
static void show_engine(struct report *report)
{
	const struct spoke_engine_options *options = spokei_engine_options(report->engine);
	const struct spokei_log *log = report->engine->log;
	struct spokei_key_values values;
	const struct owner owner = {
		.kind = "engine",
		.config = report->file_count > 0 ? report->files[0] : NULL,
		.values = &values,
		.sections = 1u << SPOKEI_IN_ENGINE,
	};

	spokei_keys_preset(&values);
	for (size_t i = report->file_count; i > 0; i--)
		spokei_config_read_in_force(report->files[i - 1], SPOKEI_IN_ENGINE, &values);
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_field *field = spokei_key_field(i, SPOKEI_AT_ENGINE);

		if (field && spokei_field_get(field, options))
			set_number(&values, i, spokei_field_get(field, options),
				   spokei_key_row(i)->option.preset);
	}
	set_number(&values, SPOKEI_KEY_LOG, log->off ? SPOKE_LOG_DEBUG + 1u : log->level_max,
		   spokei_log_preset(log));
	show_owner(report, &owner);
}

/* --- gateways and leases */

static void show_comet(struct report *report, struct spokei_member *member)
{
	const struct spoke_comet *comet = spokei_comet_of_member(member);
	struct spokei_key_values values;
	struct owner owner = owner_of("gateway", spokei_comet_settings(comet), &values);
	char address[SPOKEI_PLACES_SHOWN] = "";

	(void)spoke_comet_address(comet, 0, address, sizeof(address));
	owner.name = spokei_span_of(address);
	show_owner(report, &owner);
}

static void show_leases(struct report *report, struct spokei_member *member)
{
	const struct spoke_leases *leases = spokei_leases_of(member);
	const struct spokei_lease_settings *settings = spokei_leases_settings(leases);
	struct spokei_key_values values = settings->in_force;
	struct spoke_leases_look look;
	struct owner owner = {
		.kind = "leases",
		.file = settings->file,
		.values = &values,
		.sections = 1u << SPOKEI_IN_LEASE,
	};

	spoke_leases_look(leases, &look);
	owner.name = spokei_span_of(look.store);
	values.text[SPOKEI_KEY_LEASE_STORE] = look.store;
	show_owner(report, &owner);
}

/* --- files */

static void note_file_of_consumer(struct report *report, struct spokei_member *member)
{
	note_file(report, spokei_consumer_look(spokei_consumer_of(member)).all->keys.file.config);
}

static void note_file_of_provider(struct report *report, struct spokei_member *member)
{
	note_file(report,
		  spokei_provider_look(spokei_provider_of(member)).settings->keys.file.config);
}

static void note_file_of_comet(struct report *report, struct spokei_member *member)
{
	note_file(report, spokei_comet_settings(spokei_comet_of_member(member))->file.config);
}

static void show_file(struct report *report, const struct spoke_config *config)
{
	const struct spokei_config_news news = spokei_config_look(config);
	uint64_t now_ns = report->engine->env->now(report->engine->env->ctx);
	struct spokei_json *json = &report->json;

	spokei_json_open(json, '{');
	spokei_json_put_text(json, "name", news.name);
	spokei_json_put_u64(json, "reloads", news.reloads);
	spokei_json_put_ms(json, "ago_ms", news.reloads > 0 ? now_ns - news.at_ns : UINT64_MAX);
	spokei_json_put_text(json, "error", news.error ? spoke_errname(news.error) : "");
	spokei_json_put_text(json, "text", news.sentence);
	spokei_json_put_u64(json, "messages", news.sentences);
	spokei_json_close(json, '}');
}

/* --- the whole */

static void each_member(struct report *report, const char *kind,
			void (*take)(struct report *report, struct spokei_member *member))
{
	struct spokei_member *member = NULL;

	while ((member = spokei_members_next(report->engine, kind, member)) != NULL)
		take(report, member);
}

int spokei_admin_settings_write(struct spoke_engine *engine, struct spokei_buffer *out)
{
	struct report report = {
		.json = spokei_json_make(out),
		.engine = engine,
		.rows_left = SPOKEI_SETTINGS_ROWS,
		.owners_left = SPOKEI_SETTINGS_OWNERS,
	};
	struct spokei_json *json = &report.json;
	size_t before = spokei_buffer_len(out);

	each_member(&report, spokei_consumer_kind, note_file_of_consumer);
	each_member(&report, spokei_provider_kind, note_file_of_provider);
	each_member(&report, spokei_comet_kind, note_file_of_comet);
	spokei_json_open(json, '{');
	spokei_json_open_member(json, "files", '[');
	for (size_t i = 0; i < report.file_count; i++)
		show_file(&report, report.files[i]);
	spokei_json_close(json, ']');
	spokei_json_open_member(json, "owners", '[');
	show_engine(&report);
	each_member(&report, spokei_consumer_kind, show_consumer);
	each_member(&report, spokei_provider_kind, show_provider);
	each_member(&report, spokei_comet_kind, show_comet);
	each_member(&report, spokei_leases_kind, show_leases);
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", report.more);
	spokei_json_close(json, '}');
	if (json->error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}
