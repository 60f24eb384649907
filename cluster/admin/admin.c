/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and ends the admin page of an engine: checks its options, listens, takes samples. */
#include "cluster/admin/parts.h"
#include "cluster/config/config.h"
#include "cluster/config/credentials.h"
#include "cluster/config/places.h"
#include "cluster/config/settings.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"
#include "transport/http/guard.h"
#include "transport/http/response.h"
#include "transport/http/server.h"
#include "transport/listen/listener.h"
#include "transport/stream/tls/tls.h"

#define VIEWERS_MAX 16u
#define TOKEN_MAX 256u
#define NAME_MAX_LEN 128u
#define HOSTS_MAX 1024u
#define ACTION_NAME_MAX 32u
#define SENTENCE_MAX 256u
#define HTTPS "https://"

/* A page with its token. */
struct block {
	struct spoke_admin admin;
	char own_token[SPOKEI_TOKEN_MAX + 1];     /* of the options, or a random one */
	struct spokei_credential_set credentials; /* ... of a file */
	const struct spokei_credentials
		*of_file;                /* its token, if has_token; NULL: no file can be */
	struct spokei_config_user file;  /* reads the files of token and TLS again */
	struct spokei_kept_values *code; /* the path of the file of the token; or NULL */
	struct spokei_settings keys;     /* of TLS in [provider]; without TLS unused */
};

static struct block *block_of(struct spoke_admin *admin)
{
	return spoke_container_of(admin, struct block, admin);
}

/* --- timers */

bool spokei_admin_arm(struct spoke_admin *admin, struct spokei_admin_timer *timer,
		      uint64_t delay_ns)
{
	struct spoke_wheel *wheel = admin->engine->wheel;
	uint64_t due_ns = spokei_later(admin->engine->begin_ns, delay_ns);

	if (spoke_timer_armed(&timer->timer))
		return spoke_wheel_reschedule(wheel, &timer->timer, due_ns) == SPOKE_WHEEL_OK;
	return spoke_wheel_schedule(wheel, &timer->timer, admin->timer_class, due_ns) ==
	       SPOKE_WHEEL_OK;
}

static void admin_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_admin_timer *due = spoke_container_of(timer, struct spokei_admin_timer,
							    timer);

	(void)arg;
	due->due(due);
}

/* If the wheel has no room for the timer, sampling stops; nothing else depends on it. */
static void sample_due(struct spokei_admin_timer *timer)
{
	struct spoke_admin *admin = spoke_container_of(timer, struct spoke_admin, sample);

	spokei_history_take(&admin->history, admin->engine);
	(void)spokei_admin_arm(admin, timer, SPOKEI_ADMIN_SAMPLE_NS);
}

/* --- the end */

static void free_admin(struct spoke_admin *admin)
{
	const struct spoke_env *env = admin->engine->env;
	struct block *block = block_of(admin);

	spokei_buffer_fini(&admin->document);
	spokei_buffer_fini(&admin->body);
	spokei_quota_fini(&admin->quota);
	spokei_config_leave(&block->file);
	spokei_settings_end(&block->keys, env);
	spokei_credentials_fini(&block->credentials);
	spokei_keys_drop(env, block->code);
	spokei_secret_wipe(block->own_token, sizeof(block->own_token));
	spokei_tls_free(admin->tls);
	spokei_free(env, admin->texts, 1, admin->texts_size);
	spokei_free(env, block, 1, sizeof(*block));
}

static void admin_finalise(struct spokei_task *task)
{
	struct spoke_admin *admin = spoke_container_of(task, struct spoke_admin, finalise);

	if (!admin->freed) {
		spokei_member_retire(admin->engine, &admin->member);
		return;
	}
	spokei_member_drop(&admin->member);
	free_admin(admin);
}

/* Connections are put on the dead list before the page, so they are freed first. */
static void end_admin(struct spoke_admin *admin)
{
	if (admin->closed)
		return;
	admin->closed = true;
	spokei_config_leave(&block_of(admin)->file);
	spokei_settings_leave(&block_of(admin)->keys);
	(void)spoke_wheel_cancel(admin->engine->wheel, &admin->sample.timer);
	(void)spoke_wheel_cancel(admin->engine->wheel, &admin->tick.timer);
	spokei_listener_free(admin->listener);
	spokei_http_server_close(&admin->http);
	spokei_run_freeing(admin->engine, &admin->finalise);
}

void spoke_admin_free(struct spoke_admin *admin)
{
	if (admin == NULL || spokei_engine_keeps(admin->engine, "spoke_admin_free()") ||
	    admin->freed)
		return;
	admin->freed = true;
	end_admin(admin);
	spokei_run_freeing(admin->engine, &admin->finalise);
}

static void admin_close(struct spokei_member *member)
{
	end_admin(spoke_container_of(member, struct spoke_admin, member));
}

static void admin_member_free(struct spokei_member *member)
{
	spoke_admin_free(spoke_container_of(member, struct spoke_admin, member));
}

/* A drain does not wait for the page, which shows the drain until the engine ends. */
static void admin_drain(struct spokei_member *member)
{
	struct spoke_admin *admin = spoke_container_of(member, struct spoke_admin, member);

	spokei_member_retire(admin->engine, member);
}

/* --- the beginning */

static int wrong(struct spoke_engine *engine, const char *option, const char *rule)
{
	spokei_event(engine, SPOKE_EINVAL, "option %s of the admin page: %s", option, rule);
	return SPOKE_EINVAL;
}

static bool is_visible(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text <= ' ' || *text > '~')
			return false;
	}
	return true;
}

static bool is_action_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-')
			return false;
	}
	return len > 0 && len <= ACTION_NAME_MAX;
}

static int check_actions(struct spoke_engine *engine, const struct spoke_admin_options *with)
{
	if (with->action_count > SPOKEI_ADMIN_ACTIONS_MAX)
		return wrong(engine, "actions", "at most 16");
	for (size_t i = 0; i < with->action_count; i++) {
		const struct spoke_admin_action *action = &with->actions[i];

		if (action->name == NULL || !is_action_name(action->name))
			return wrong(engine, "actions",
				     "a name has 1 to 32 letters, digits and hyphens");
		if (action->sentence == NULL || strlen(action->sentence) > SENTENCE_MAX)
			return wrong(engine, "actions",
				     "each needs a sentence of at most 256 bytes");
		if (action->act == NULL)
			return wrong(engine, "actions", "each needs a function");
		for (size_t j = 0; j < i; j++) {
			if (strcmp(with->actions[j].name, action->name) == 0)
				return wrong(engine, "actions", "the names have to differ");
		}
	}
	return SPOKE_OK;
}

static bool is_https(const struct spoke_admin_options *with)
{
	return with->listen && strncmp(with->listen, HTTPS, strlen(HTTPS)) == 0;
}

static int check(struct spoke_engine *engine, const struct spoke_admin_options *with,
		 struct spoke_address *ret_address)
{
	const char *listen = with->listen ? with->listen : "127.0.0.1:0";
	const struct spoke_env *env = engine->env;
	size_t token_len = with->token ? strlen(with->token) : 1;
	char why[SPOKEI_GUARD_WHY];
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	if (is_https(with))
		listen += strlen(HTTPS);
	if (env->net->parse(env->ctx, listen, ret_address))
		return wrong(engine, "listen",
			     "a numeric address, e.g. 127.0.0.1:9090, or unix:PATH");
	if (with->name && strlen(with->name) > NAME_MAX_LEN)
		return wrong(engine, "name", "at most 128 bytes");
	if (token_len == 0 || token_len > TOKEN_MAX || (with->token && !is_visible(with->token)))
		return wrong(engine, "token", "1 to 256 visible ASCII characters");
	if (with->token && with->token_file)
		return wrong(engine, "token_file", "not with token");
	if (with->hosts && (*with->hosts == '\0' || strlen(with->hosts) > HOSTS_MAX))
		return wrong(engine, "hosts", "1 to 1024 bytes");
	if (with->hosts && spokei_guard_check_names(with->hosts, why))
		return wrong(engine, "hosts", why);
	return check_actions(engine, with);
}

static size_t size_of(const char *text)
{
	return strlen(text) + 1;
}

/* Copies a text to *room, and moves *room behind it. */
static const char *copy(char **room, const char *text)
{
	char *at = *room;

	memcpy(at, text, size_of(text));
	*room += size_of(text);
	return at;
}

static int copy_texts(struct spoke_admin *admin, const struct spoke_admin_options *with)
{
	const char *name = with->name ? with->name : "spoke";
	const char *hosts = with->hosts ? with->hosts : "";
	const char *path = with->token_file ? with->token_file : "";
	char *room;

	admin->texts_size = size_of(name) + size_of(hosts) + size_of(path);
	for (size_t i = 0; i < with->action_count; i++)
		admin->texts_size += size_of(with->actions[i].name) +
				     size_of(with->actions[i].sentence);
	admin->texts = spokei_alloc(admin->engine->env, 1, admin->texts_size);
	if (admin->texts == NULL)
		return SPOKE_ENOMEM;
	room = admin->texts;
	admin->name = copy(&room, name);
	admin->hosts = copy(&room, hosts);
	path = copy(&room, path);
	admin->token_file = with->token_file ? path : NULL;
	admin->token_reads = with->token_reads;
	admin->action_count = with->action_count;
	for (size_t i = 0; i < with->action_count; i++) {
		admin->actions[i] = with->actions[i];
		admin->actions[i].name = copy(&room, with->actions[i].name);
		admin->actions[i].sentence = copy(&room, with->actions[i].sentence);
	}
	spokei_admin_add_own(admin);
	return SPOKE_OK;
}

/* The token of the page's own is used while no file sets one. */
static void use_token(struct spoke_admin *admin)
{
	const struct spokei_credentials *of_file = block_of(admin)->of_file;

	admin->token = of_file && of_file->has_token ? of_file->token : block_of(admin)->own_token;
}

/* Streams that need the token begin again, with the new one. */
static void token_changed(void *arg)
{
	struct spoke_admin *admin = arg;

	use_token(admin);
	if (block_of(admin)->credentials.new_text && admin->token_reads)
		spokei_http_server_drain(&admin->http);
}

/* Reads the token from the file that the options or [engine] name. A look each minute and reloads
 * of the settings file read it again, as they read the files of TLS. */
static int read_token_file(struct spoke_admin *admin)
{
	const struct spokei_credential_section section = { .section = SPOKEI_IN_ENGINE,
							   .has_options = true };
	struct spokei_credential_set *set = &block_of(admin)->credentials;
	struct spokei_key_values code = { .of = { 0 } };
	int error;

	if (admin->token_file)
		spokei_keys_put_text(&code, SPOKEI_KEY_ADMIN_TOKEN_FILE, admin->token_file,
				     SPOKEI_FROM_CODE, 0);
	error = spokei_keys_keep(admin->engine->env, &code, &block_of(admin)->code);
	if (error)
		return error;
	set->keeps_text = true;
	set->sends = true;
	set->stay = "page: the token stays as it was";
	set->changed = token_changed;
	set->changed_arg = admin;
	error = spokei_credentials_init(set, admin->engine, &block_of(admin)->file,
					block_of(admin)->code, NULL);
	if (error == SPOKE_OK)
		error = spokei_credentials_add(set, &section, &block_of(admin)->of_file);
	if (error == SPOKE_OK)
		block_of(admin)->file.credentials = set;
	return error;
}

/* The page has joined its settings file. */
static int make_token(struct spoke_admin *admin, const char *given)
{
	const bool has_file = admin->token_file || block_of(admin)->file.config;
	char *own = block_of(admin)->own_token;
	int error = SPOKE_OK;

	_Static_assert(SPOKEI_TOKEN_MAX + 1 >= SPOKEI_HTTP_NONCE, "a made token fits");
	_Static_assert(SPOKEI_TOKEN_MAX >= TOKEN_MAX, "and a given one");
	if (given)
		memcpy(own, given, strlen(given) + 1);
	else
		spokei_http_make_nonce(admin->engine->env, own);
	if (has_file && !given)
		error = read_token_file(admin);
	use_token(admin);
	return error;
}

static int join_file(struct spoke_admin *admin, struct spoke_config *config)
{
	struct spokei_config_user *user = &block_of(admin)->file;

	user->config = config;
	user->tls = admin->tls;
	return spokei_config_join(user, admin->engine);
}

/* Is also called after a reload. */
static void limit_handshakes(void *owner)
{
	struct spoke_admin *admin = owner;
	struct spokei_key_values values;
	struct spokei_tls_limits limits;

	spokei_settings_look(&block_of(admin)->keys, &values);
	spokei_keys_fill(&values, 1u << SPOKEI_IN_PROVIDER, SPOKEI_AT_HANDSHAKES, &limits);
	spokei_tls_limit(admin->tls, &limits);
	admin->http.limits.open_ns = values.of[SPOKEI_KEY_HANDSHAKE_TIMEOUT];
}

static const struct spokei_settings_kind tls_kind = {
	.sections = 1u << SPOKEI_IN_PROVIDER,
	.take = limit_handshakes,
};

/* Has connections use TLS, if the options ask for it: that of the options, or of the file. */
static int secure(struct spoke_admin *admin, const struct spoke_admin_options *with)
{
	struct spokei_settings *keys = &block_of(admin)->keys;
	const struct spokei_tls_sources sources = {
		.options = with->tls,
		.of_url = with->tls ? NULL : "on",
		.settings = keys,
		.section = SPOKEI_IN_PROVIDER,
	};
	struct spokei_key_values values = { .of = { 0 } };
	enum spokei_tls_mode mode;
	int error;

	if (with->tls == NULL && !is_https(with))
		return SPOKE_OK;
	error = spokei_keys_read_code(admin->engine, &values, SPOKEI_IN_PROVIDER, SPOKEI_AT_TLS,
				      with->tls);
	if (error == SPOKE_OK) {
		keys->kind = &tls_kind;
		keys->owner = admin;
		keys->file.config = with->tls ? NULL : with->config;
		error = spokei_settings_begin(keys, admin->engine, &values);
	}
	if (error == SPOKE_OK)
		error = spokei_settings_tls(admin->engine, &sources, &mode, &admin->tls);
	if (error)
		return error;
	spokei_tls_watch(admin->tls, spokei_http_finish_stream);
	admin->http.stream = mode == SPOKEI_TLS_OPTIONAL ? spokei_tls_or_plain(admin->tls)
							 : spokei_tls_kind(admin->tls);
	limit_handshakes(admin);
	return SPOKE_OK;
}

static void admin_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spoke_admin *admin = arg;
	struct spokei_quota_peer *quota_peer = spokei_quota_peer(&admin->quota, peer);
	struct spokei_http_conn *conn;
	struct spokei_viewer *viewer;

	(void)marks;
	if (spokei_http_accept(&admin->http, fd, peer, &conn)) {
		spokei_quota_leave(&admin->quota, quota_peer);
		return;
	}
	viewer = spokei_http_user(conn);
	viewer->quota_peer = quota_peer;
}

/* Is a spokei_make_room. */
static bool make_room(void *arg)
{
	struct spoke_admin *admin = arg;

	return spokei_http_make_room(&admin->http);
}

/* Reports that the page is open to all hosts, and how to change that. */
static void warn(const struct spoke_admin *admin)
{
	const struct spoke_env *env = admin->engine->env;
	const struct spokei_exposure of = {
		.local = spokei_places_is_local(env, spokei_listener_address(admin->listener)),
		.plain = admin->tls == NULL ||
			 admin->http.stream == spokei_tls_or_plain(admin->tls),
		.asks = admin->token_reads,
		.verify = admin->tls ? spokei_tls_verifies(admin->tls) : SPOKE_TLS_VERIFY_DEFAULT,
	};
	enum spokei_exposed exposed = spokei_exposure_judge(&of);

	if (exposed == SPOKEI_EXPOSED_NOT)
		return;
	spokei_event(admin->engine, SPOKE_OK,
		     "page: all hosts that reach %s may read it%s, token_reads or an address of "
		     "loopback to change that",
		     admin->address, spokei_exposed_why(exposed));
}

static int open_admin(struct spoke_admin *admin, const struct spoke_address *address,
		      const struct spoke_admin_options *with)
{
	struct spoke_engine *engine = admin->engine;
	const struct spoke_env *env = engine->env;
	int error = spokei_engine_class(engine, "admin", admin_due, &admin->timer_class);

	if (error == SPOKE_OK)
		error = spokei_http_server_init(&admin->http, engine, &spokei_admin_up, NULL);
	if (error == SPOKE_OK)
		error = secure(admin, with);
	if (error == SPOKE_OK)
		error = join_file(admin, with->config);
	if (error == SPOKE_OK)
		error = make_token(admin, with->token);
	if (error == SPOKE_OK && !spokei_admin_arm(admin, &admin->sample, SPOKEI_ADMIN_SAMPLE_NS))
		error = SPOKE_ELIMIT;
	if (error)
		return error;
	error = spokei_listener_new(engine, &(struct spokei_listener_at){ .address = address },
				    &admin->quota, admin_accept, admin, &admin->listener);
	if (error) {
		(void)spoke_wheel_cancel(engine->wheel, &admin->sample.timer);
		return error;
	}
	env->net->print(env->ctx, spokei_listener_address(admin->listener), admin->address,
			sizeof(admin->address));
	warn(admin);
	return SPOKE_OK;
}

static int admin_new(struct spoke_engine *engine, const struct spoke_admin_options *options,
		     struct spoke_admin **ret_admin)
{
	static const struct spoke_admin_options defaults;
	const struct spoke_admin_options *with = options ? options : &defaults;
	uint32_t viewers_max = with->viewers_max ? with->viewers_max : VIEWERS_MAX;
	const uint32_t most = UINT32_MAX - SPOKEI_ADMIN_PROBES;
	/* A peer may be a proxy for all. */
	const struct spokei_quota_limits limits = {
		.max = (viewers_max < most ? viewers_max : most) + SPOKEI_ADMIN_PROBES,
		.per_peer_max = UINT32_MAX,
	};
	struct spoke_address address;
	struct spoke_admin *admin;
	struct block *block;
	int error = check(engine, with, &address);

	if (error)
		return error;
	block = spokei_alloc(engine->env, 1, sizeof(*block));
	if (block == NULL)
		return SPOKE_ENOMEM;
	admin = &block->admin;
	admin->engine = engine;
	admin->number = with->number;
	admin->viewers_max = viewers_max;
	admin->born_ns = engine->env->now(engine->env->ctx);
	admin->finalise.run = admin_finalise;
	admin->sample.due = sample_due;
	admin->tick.due = spokei_admin_tick;
	spokei_quota_init(&admin->quota, engine->env, &limits);
	spokei_quota_give_way(&admin->quota, make_room, admin);
	spokei_buffer_init(&admin->document, engine->env, SPOKEI_ADMIN_BODY_MAX);
	spokei_buffer_init(&admin->body, engine->env, SPOKEI_ADMIN_BODY_MAX);
	spokei_history_init(&admin->history, engine);
	error = copy_texts(admin, with);
	if (error == SPOKE_OK)
		error = open_admin(admin, &address, with);
	if (error) {
		free_admin(admin);
		return error;
	}
	admin->member = (struct spokei_member){
		.kind = "admin",
		.close = admin_close,
		.drain = admin_drain,
		.free = admin_member_free,
	};
	spokei_member_add(engine, &admin->member);
	*ret_admin = admin;
	return SPOKE_OK;
}

int spoke_admin_new(struct spoke_engine *engine, const struct spoke_admin_options *options,
		    struct spoke_admin **ret_admin)
{
	uint64_t begun = spokei_why_begin(engine);

	return spokei_why_end(engine, begun, admin_new(engine, options, ret_admin), "new page");
}

const char *spoke_admin_address(const struct spoke_admin *admin)
{
	return admin->address;
}

const char *spoke_admin_token(const struct spoke_admin *admin)
{
	return admin->token;
}
