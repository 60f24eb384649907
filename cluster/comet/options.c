/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a gateway: their defaults and limits, the section [comet] of a file, and changes
 * of that file while the gateway runs.
 */
#include "cluster/comet/parts.h"
#include "cluster/comet/view.h"
#include "cluster/config/config.h"
#include "core/text/option.h"
#include "transport/http/guard.h"
#include "transport/listen/listener.h"

#include <spoke/config.h>

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define TIME_MAX (UINT64_C(20) * 24 * 3600 * SECOND) /* stamps are 32 bits of ms */
#define LIST_MAX 4096u                               /* bytes of a list of names */

/* A file that the options come from. */
struct spokei_comet_file {
	struct spokei_config_user user;
	struct spoke_comet *comet;
	struct spoke_comet_options given; /* by the program; its texts are not valid any more */
	struct spoke_comet_options next;  /* while a reload prepares */
	char *next_texts;
	size_t next_size;
};

/* --- limits */

int spokei_comet_wrong(struct spoke_engine *engine, const char *option, const char *rule)
{
	spokei_event(engine, SPOKE_EINVAL, "option %s of the gateway: %s", option, rule);
	return SPOKE_EINVAL;
}

/* Returns the field of a key that is a number; NULL: it is none of a gateway. */
static const struct spokei_field *number_at(unsigned key)
{
	const struct spokei_field *field = spokei_key_field((enum spokei_key)key, SPOKEI_AT_COMET);

	return field && field->type != SPOKEI_FIELD_TEXT ? field : NULL;
}

/* Sets the numbers that are 0 to their defaults. Returns NULL, or the name of the first that is out
 * of range. */
static const char *fill_presets(struct spoke_comet_options *with)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_option *option = &spokei_key_row((enum spokei_key)i)->option;
		const struct spokei_field *field = number_at(i);

		if (field == NULL)
			continue;
		if (spokei_field_get(field, with) == 0)
			spokei_field_set(field, with, option->preset);
		if (spokei_field_get(field, with) < option->min ||
		    spokei_field_get(field, with) > option->max)
			return field->name;
	}
	return NULL;
}

/* Sets the numbers whose keys a reload does not change to those of `old`. */
static void keep_numbers(struct spoke_comet_options *with, const struct spoke_comet_options *old)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_field *field = number_at(i);

		if (field && !spokei_key_row((enum spokei_key)i)->live)
			spokei_field_set(field, with, spokei_field_get(field, old));
	}
}

/* No key of the file sets the time of the authorizer. */
static int fill_numbers(struct spoke_engine *engine, struct spoke_comet_options *with)
{
	const char *wrong = fill_presets(with);

	if (with->authorize_ns == 0)
		with->authorize_ns = 5 * SECOND;
	if (with->authorize_ns < MS || with->authorize_ns > TIME_MAX)
		wrong = "authorize_ns";
	if (wrong)
		return spokei_comet_wrong(engine, wrong, "out of range");
	if (with->retry_min_ns > with->retry_max_ns)
		return spokei_comet_wrong(engine, "retry_min_ns", "greater than retry_max_ns");
	return SPOKE_OK;
}

/* An item with a blank inside would match no request. Headers have room for any item. */
static bool is_item(struct spoke_span item)
{
	const char *text = item.data;

	for (size_t i = 0; i < item.len; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return item.len <= SPOKEI_COMET_ORIGIN_MAX;
}

static bool is_list(const char *list)
{
	bool fits = strlen(list) <= LIST_MAX;
	struct spoke_span item;

	while (fits && spokei_option_item(&list, &item))
		fits = is_item(item);
	return fits;
}

static int check(struct spoke_engine *engine, const struct spoke_comet_options *with)
{
	char why[SPOKEI_GUARD_WHY];

	if (with->listen && !is_list(with->listen))
		return spokei_comet_wrong(engine, "listen",
					  "comma-separated addresses without blanks inside");
	if (with->origins && !is_list(with->origins))
		return spokei_comet_wrong(engine, "origins",
					  "comma-separated without blanks inside, 280 bytes each");
	if (with->origins && spokei_guard_check_origins(with->origins, why))
		return spokei_comet_wrong(engine, "origins", why);
	if (with->hosts && !is_list(with->hosts))
		return spokei_comet_wrong(engine, "hosts",
					  "comma-separated without blanks inside, 280 bytes each");
	if (with->hosts && spokei_guard_check_names(with->hosts, why))
		return spokei_comet_wrong(engine, "hosts", why);
	if (with->proxies && !is_list(with->proxies))
		return spokei_comet_wrong(engine, "proxies",
					  "comma-separated addresses without blanks inside");
	if (with->authorize == NULL && !with->query_user)
		return spokei_comet_wrong(engine, "authorize",
					  "required, unless query_user is set");
	return SPOKE_OK;
}

/* --- texts that are used later */

/* Copies a list without the blanks around its items. Returns the bytes, with the NUL. */
static size_t copy_list(const char *list, char *out)
{
	struct spoke_span item;
	size_t len = 0;

	while (spokei_option_item(&list, &item)) {
		if (item.len > 0)
			memcpy(out + len, item.data, item.len);
		len += item.len;
		out[len++] = ',';
	}
	out[len - 1] = '\0';
	return len;
}

/* Copies the lists into one block. Returns 0 or ENOMEM. */
static int copy_lists(struct spoke_engine *engine, struct spoke_comet_options *with,
		      char **ret_texts, size_t *ret_size)
{
	const char **lists[] = { &with->origins, &with->hosts, &with->proxies };
	const size_t count = sizeof(lists) / sizeof(lists[0]);
	size_t size = 0;
	char *texts;

	for (size_t i = 0; i < count; i++) {
		if (*lists[i] == NULL)
			*lists[i] = "";
		size += strlen(*lists[i]) + 1;
	}
	texts = spokei_alloc(engine->env, 1, size);
	if (texts == NULL)
		return SPOKE_ENOMEM;
	*ret_texts = texts;
	*ret_size = size;
	for (size_t i = 0; i < count; i++) {
		const size_t len = copy_list(*lists[i], texts);

		*lists[i] = texts;
		texts += len;
	}
	return SPOKE_OK;
}

/* --- changes of the file */

void spokei_comet_preset(const struct spoke_comet *comet, struct spokei_listener *listener)
{
	/* A client that is gone without a word, or does not read, costs the system little. */
	spokei_listener_preset(listener, comet->with.slow_ns, comet->with.send_buffer);
}

/* Returns the place of an origin of the former list in the present one. */
static uint16_t moved(const struct spoke_comet *comet, const char *former, uint16_t origin)
{
	const char *name = former + (origin ? origin - 1 : 0);

	if (origin == 0)
		return 0;
	return spokei_comet_listed((struct spoke_span){ name, strcspn(name, ",") },
				   comet->with.origins);
}

static void move_asks(const struct spoke_comet *comet, const struct spoke_list *asks,
		      const char *former)
{
	for (struct spoke_list *node = asks->next; node != asks; node = node->next) {
		struct spokei_comet_door *door = spokei_http_user(
			spoke_container_of(node, struct spokei_comet_ask, node)->http);

		door->origin = moved(comet, former, door->origin);
	}
}

/* Connections know their origin by its place in the list. Those without one are never answered, or
 * have been. */
static void move_origins(struct spoke_comet *comet, const char *former)
{
	for (uint32_t i = 0; i < comet->used; i++) {
		struct spokei_comet_conn *conn = spokei_comet_cell(comet, i);

		if (conn->state != SPOKEI_COMET_FREE)
			conn->origin = moved(comet, former, conn->origin);
	}
	move_asks(comet, &comet->asks, former);
	move_asks(comet, &comet->sends, former);
}

struct spokei_quota_limits spokei_comet_quota(const struct spoke_comet_options *with)
{
	return (struct spokei_quota_limits){
		.max = with->connections_max,
		.per_peer_max = with->connections_per_peer_max,
		.prefix6 = with->connections_per_peer_prefix6,
	};
}

/* Applies the limits that other objects hold. */
static void apply(struct spoke_comet *comet)
{
	const struct spoke_comet_options *with = &comet->with;
	const struct spokei_quota_limits limits = spokei_comet_quota(with);
	const uint64_t now_ns = comet->engine->begin_ns;

	comet->http.limits.request_ns = with->head_ns;
	comet->http.limits.body_max = with->frame_max;
	comet->http.limits.slow_ns = with->authorize_ns + with->slow_ns;
	if (comet->rate.rate != with->accept_rate) {
		const uint32_t half = with->accept_rate / 2;

		comet->rate = spokei_bucket_make(with->accept_rate, with->accept_rate, now_ns);
		comet->reserve = spokei_bucket_make(half, half, now_ns);
	}
	comet->ask_slab.max = with->connections_max;
	spokei_quota_change(&comet->quota, &limits);
	for (size_t i = 0; i < comet->listener_count; i++) {
		if (comet->listeners[i])
			spokei_comet_preset(comet, comet->listeners[i]);
	}
}

/* Reads the file again into `with`, whose keys that are not live stay as they are. */
static int read_again(const struct spoke_comet *comet, struct spoke_comet_options *with)
{
	const struct spoke_comet_options *old = &comet->with;
	int error;

	*with = comet->file->given;
	/* The program's texts are known by their copies. */
	with->origins = with->origins ? old->origins : NULL;
	with->hosts = with->hosts ? old->hosts : NULL;
	with->proxies = with->proxies ? old->proxies : NULL;
	spoke_config_comet(comet->file->user.config, with);
	with->listen = NULL;
	with->page = NULL;
	keep_numbers(with, old);
	error = check(comet->engine, with);
	return error ? error : fill_numbers(comet->engine, with);
}

static int prepare(struct spokei_config_user *user)
{
	struct spokei_comet_file *file = user->owner;
	int error = read_again(file->comet, &file->next);

	return error ? error
		     : copy_lists(file->comet->engine, &file->next, &file->next_texts,
				  &file->next_size);
}

static void drop(struct spokei_config_user *user)
{
	struct spokei_comet_file *file = user->owner;

	spokei_free(file->comet->engine->env, file->next_texts, 1, file->next_size);
	file->next_texts = NULL;
}

/* Drops the former texts. */
static void take(struct spokei_config_user *user)
{
	struct spokei_comet_file *file = user->owner;
	struct spoke_comet *comet = file->comet;
	char *former = comet->texts;
	const size_t former_size = comet->texts_size;

	comet->with = file->next;
	comet->texts = file->next_texts;
	comet->texts_size = file->next_size;
	move_origins(comet, former);
	apply(comet);
	file->next_texts = former;
	file->next_size = former_size;
	drop(user);
}

static const struct spokei_config_user_up file_up = {
	.prepare = prepare,
	.take = take,
	.drop = drop,
};

/* --- the beginning, and the end */

static int join_file(struct spoke_comet *comet, const struct spoke_comet_options *options)
{
	struct spokei_comet_file *file = spokei_alloc(comet->engine->env, 1, sizeof(*file));

	if (file == NULL)
		return SPOKE_ENOMEM;
	comet->file = file;
	file->comet = comet;
	file->given = *options;
	file->user.config = options->config;
	file->user.up = &file_up;
	file->user.owner = file;
	return spokei_config_join(&file->user, comet->engine);
}

void spokei_comet_leave_file(struct spoke_comet *comet)
{
	if (comet->file == NULL)
		return;
	spokei_config_leave(&comet->file->user);
	spokei_free(comet->engine->env, comet->file, 1, sizeof(*comet->file));
	comet->file = NULL;
}

const struct spoke_comet_options *spokei_comet_settings(const struct spoke_comet *comet,
							const struct spoke_config **ret_config)
{
	*ret_config = comet->file ? comet->file->user.config : NULL;
	return &comet->with;
}

int spokei_comet_read_options(struct spoke_comet *comet, const struct spoke_comet_options *options,
			      const char **ret_listen)
{
	struct spoke_engine *engine = comet->engine;
	int error = options->config ? join_file(comet, options) : SPOKE_OK;

	comet->with = *options;
	if (error)
		return error;
	if (options->config)
		spoke_config_comet(options->config, &comet->with);
	*ret_listen = comet->with.listen;
	error = check(engine, &comet->with);
	comet->with.listen = NULL;
	if (error == SPOKE_OK)
		error = fill_numbers(engine, &comet->with);
	if (error == SPOKE_OK)
		error = copy_lists(engine, &comet->with, &comet->texts, &comet->texts_size);
	return error ? error : spokei_comet_make_page(comet);
}
