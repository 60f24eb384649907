/* SPDX-License-Identifier: Apache-2.0 */
/* Checks tokens and signatures of requests, and refuses the others. */
#include "cluster/provider/proof.h"

#include "cluster/config/config.h"
#include "cluster/config/secrets.h"
#include "cluster/config/texts.h"
#include "cluster/filter/signature.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/gate.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/identity.h"
#include "transport/conn/link.h"

#include <spoke/provider.h>

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define NAME_TEXT 96u     /* bytes of a service's name in a refusal */
#define ADDRESS_TEXT 160u /* bytes of an address */

static const struct spoke_span no_name = { NULL, 0 };

/* The demands of one service: spokei_service.asked. */
struct service_proof {
	struct spoke_list node;
	struct spokei_credentials of;
	struct spokei_credentials next; /* while they are read again */
	size_t name_len;
	char name[];
};

struct spokei_proof {
	struct spoke_filter filter;
	struct spoke_engine *engine;
	const struct spokei_provider_settings *settings;
	const struct spokei_config_user *file; /* its config may be gone */
	struct spokei_credential_options options;
	char *texts; /* of the options */
	size_t texts_size;
	bool same_token; /* an option gave the tokens; its text is not kept */
	bool publishes;
	struct spokei_credentials own;
	struct spoke_list services;     /* of struct service_proof */
	struct spokei_secrets *secrets; /* NULL: no file can be in use */
	void (*changed)(void *arg);
	void *changed_arg;
};

/* --- reading */

static int read_own(const struct spokei_proof *proof, const struct spokei_credentials *before,
		    struct spokei_credentials *ret)
{
	const struct spokei_credential_source source = {
		.config = proof->file->config,
		.section = SPOKEI_IN_PROVIDER,
		.name = no_name,
		.options = proof->options,
		.keeps_text = proof->publishes,
		.same_token = before && proof->same_token,
		.before = before,
	};

	return spokei_credentials_read(proof->engine, &source, ret);
}

/* Settings that the service lacks are the provider's. */
static int read_service(const struct spokei_proof *proof, const struct service_proof *each,
			const struct spokei_credentials *own,
			const struct spokei_credentials *before, struct spokei_credentials *ret)
{
	const struct spokei_credential_source source = {
		.config = proof->file->config,
		.section = SPOKEI_IN_SERVICE,
		.name = spokei_span(each->name, each->name_len),
		.keeps_text = proof->publishes,
		.before = before,
	};
	struct spokei_credentials narrow;
	int error = spokei_credentials_read(proof->engine, &source, &narrow);

	if (error)
		return error;
	spokei_credentials_lay(own, &narrow, ret);
	spokei_credentials_wipe(&narrow);
	return SPOKE_OK;
}

static struct service_proof *proof_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct service_proof, node);
}

static const struct spokei_credentials *of_service(const struct spokei_proof *proof,
						   const struct spokei_service *service)
{
	const struct service_proof *each = service->asked;

	return each ? &each->of : &proof->own;
}

int spokei_proof_add(struct spokei_proof *proof, const char *service, void **ret_asked)
{
	const struct spoke_env *env = proof->engine->env;
	size_t len = service ? strlen(service) : 0;
	struct service_proof *added;
	int error;

	*ret_asked = NULL;
	if (proof->file->config == NULL || len == 0)
		return SPOKE_OK;
	added = spokei_alloc(env, 1, sizeof(*added) + len);
	if (added == NULL)
		return SPOKE_ENOMEM;
	added->name_len = len;
	memcpy(added->name, service, len);
	error = read_service(proof, added, &proof->own, NULL, &added->of);
	if (error) {
		spokei_free(env, added, 1, sizeof(*added) + len);
		return error;
	}
	spokei_list_append(&proof->services, &added->node);
	spokei_secrets_again(proof->secrets);
	*ret_asked = added;
	return SPOKE_OK;
}

/* Returns whether all of it was read. */
static bool read_all_again(struct spokei_proof *proof, struct spokei_credentials *own)
{
	struct spoke_list *all = &proof->services;
	bool fine = read_own(proof, &proof->own, own) == SPOKE_OK;

	for (struct spoke_list *node = all->next; node != all && fine; node = node->next) {
		struct service_proof *each = proof_at(node);

		fine = read_service(proof, each, own, &each->of, &each->next) == SPOKE_OK;
	}
	return fine;
}

/* Takes one that was read, or drops it. */
static bool replace(struct spokei_credentials *old, struct spokei_credentials *next, bool takes)
{
	bool changed = takes && strcmp(old->token, next->token) != 0;

	if (takes)
		*old = *next;
	spokei_credentials_wipe(next);
	return changed;
}

bool spokei_proof_reload(struct spokei_proof *proof)
{
	struct spoke_list *all = &proof->services;
	struct spokei_credentials own;
	bool changed;
	bool takes;

	spokei_secrets_again(proof->secrets);
	takes = read_all_again(proof, &own);
	changed = replace(&proof->own, &own, takes);

	for (struct spoke_list *node = all->next; node != all; node = node->next)
		changed |= replace(&proof_at(node)->of, &proof_at(node)->next, takes);
	if (!takes)
		spokei_event(proof->engine, SPOKE_EINVAL,
			     "reload: tokens and keys stay as they were");
	return changed;
}

/* --- properties */

static bool asks(const struct spokei_credentials *credentials)
{
	return credentials->tokens.count > 0 || credentials->signs;
}

bool spokei_proof_asks(const struct spokei_proof *proof)
{
	return asks(&proof->own);
}

bool spokei_proof_may_ask(const struct spokei_proof *proof)
{
	return proof->file->config != NULL || asks(&proof->own);
}

const char *spokei_proof_published(const struct spokei_proof *proof,
				   const struct spokei_service *service)
{
	return of_service(proof, service)->token;
}

const struct spoke_filter *spokei_proof_filter(const struct spokei_proof *proof)
{
	return &proof->filter;
}

static bool asks_anywhere(const struct spokei_proof *proof)
{
	const struct spoke_list *all = &proof->services;
	bool any = asks(&proof->own);

	for (struct spoke_list *node = all->next; node != all && !any; node = node->next)
		any = asks(&proof_at(node)->of);
	return any;
}

/* --- numbers of credentials: the print of the token, of the key, or of both together */

static bool has_proof(const struct spokei_credentials *credentials, uint64_t proof)
{
	uint64_t access = credentials->signs ? credentials->access_print : 0;

	for (unsigned i = 0; i < credentials->tokens.count; i++) {
		uint64_t token = spokei_digest_print(credentials->tokens.digests[i]);

		if (proof == token || proof == (token ^ access))
			return true;
	}
	return proof == access && access != 0;
}

bool spokei_proof_stands(const struct spokei_proof *proof, struct spokei_conn *conn)
{
	const struct spoke_list *all = &proof->services;
	uint64_t shown = conn->identity ? conn->identity->proof : 0;

	if (shown == 0 || has_proof(&proof->own, shown))
		return true;
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		if (has_proof(&proof_at(node)->of, shown))
			return true;
	spokei_identity_withdraw(conn->identity);
	return !asks_anywhere(proof);
}

/* --- checks */

/* Returns the token that a request bears; { NULL, 0 }: none. */
static struct spoke_span token_of(const struct spokei_message *message)
{
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;

	if (spoke_value_get(message->attachments, "token", &value) != SPOKE_OK ||
	    spoke_value_str(value, &text) != SPOKE_OK)
		return (struct spoke_span){ NULL, 0 };
	return text;
}

/* Returns whether a request bears a token, if one is asked for. *ret_proof becomes its number. */
static bool has_token(const struct spokei_credentials *credentials, const struct spokei_conn *conn,
		      const struct spokei_message *message, uint64_t *ret_proof)
{
	unsigned char digest[SPOKEI_SHA256];
	struct spoke_span text;

	*ret_proof = 0;
	if (credentials->tokens.count == 0)
		return true;
	if (conn->wire->attachments) {
		text = token_of(message);
		if (text.len > SPOKEI_TOKEN_MAX)
			return false;
		spokei_sha256(text.data, text.len, digest);
	} else if (conn->shown) {
		memcpy(digest, conn->shown, sizeof(digest));
	} else {
		return false;
	}
	if (!spokei_tokens_has_digest(&credentials->tokens, digest))
		return false;
	*ret_proof = spokei_digest_print(digest);
	return true;
}

/* The names that are signed are those of the service here: a caller may ask for any version. */
static struct spokei_signed signed_by(const struct spokei_service *service,
				      const struct spokei_message *message)
{
	struct spoke_span rest = spokei_span_after(service->key, service->name.len + 1);
	const char *end = memchr(rest.data, '\0', rest.len);
	size_t version_len = end ? (size_t)(end - (const char *)rest.data) : rest.len;

	return (struct spokei_signed){
		.service = service->name,
		.version = spokei_span(rest.data, version_len),
		.group = end ? spokei_span_after(rest, version_len + 1) : no_name,
		.method = message->method,
	};
}

static bool has_signature(const struct spokei_proof *proof,
			  const struct spokei_credentials *credentials,
			  const struct spokei_service *service,
			  const struct spokei_message *message)
{
	const struct spoke_env *env = proof->engine->env;
	struct spokei_signature_check check;
	struct spokei_signed of;

	if (!credentials->signs)
		return true;
	check = (struct spokei_signature_check){
		.id = spokei_span(credentials->id, credentials->id_len),
		.secret = spokei_span(credentials->secret, credentials->secret_len),
		.window_ms = credentials->window_ns / NS_PER_MS,
		.now_ms = env->wall(env->ctx) / NS_PER_MS,
	};
	of = signed_by(service, message);
	return spokei_signature_is_right(&check, &of, message->attachments);
}

static bool is_method(const struct spokei_message *message, const char *name)
{
	return message->method.len == strlen(name) &&
	       memcmp(message->method.data, name, message->method.len) == 0;
}

/* --- refusals */

/* One line for each connection. */
static void report(struct spoke_engine *engine, const struct spokei_conn *conn, const char *text)
{
	char peer[ADDRESS_TEXT];

	if (conn->refusals > 1)
		return;
	engine->env->net->print(engine->env->ctx, &conn->peer, peer, sizeof(peer));
	spokei_log(engine->log, SPOKE_LOG_WARN, "proof", SPOKEI_LOG_AUTH, engine->begin_ns,
		   "%s: %s", peer, text);
}

/* The caller learns neither the mistake nor the remedy. */
static struct spoke_filter_verdict refuse(const struct spokei_proof *proof,
					  struct spokei_conn *conn, struct spoke_span service,
					  char *text)
{
	char name[NAME_TEXT];

	(void)spokei_log_escape_end(name, sizeof(name), service.data, service.len);
	(void)snprintf(text, SPOKEI_GATE_TEXT, "no or bad credentials for %s",
		       *name ? name : "this provider");
	spokei_count(proof->engine, SPOKE_STAT_REFUSED_CREDENTIALS);
	conn->refusals++;
	conn->dismissed |= conn->refusals >= proof->settings->auth_failures_max;
	report(proof->engine, conn, text);
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EFORBIDDEN,
		.code = SPOKE_FORBIDDEN_UNPROVEN,
		.text = text,
	};
}

/* Reads the argument of "$token", and has the connection show it from now on. Returns 0, ENOMEM, or
 * EINVAL: it is no token of this provider. */
static int show_token(const struct spokei_proof *proof, struct spokei_conn *conn,
		      const struct spoke_request *request)
{
	const struct spoke_list *all = &proof->services;
	struct spoke_cursor args = spoke_request_args(request);
	unsigned char digest[SPOKEI_SHA256];
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;
	bool right;

	if (!spoke_cursor_next(&args, &value) || spoke_value_str(value, &text) != SPOKE_OK ||
	    text.len > SPOKEI_TOKEN_MAX)
		text = (struct spoke_span){ NULL, 0 };
	spokei_sha256(text.data, text.len, digest);
	right = spokei_tokens_has_digest(&proof->own.tokens, digest);
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		right |= spokei_tokens_has_digest(&proof_at(node)->of.tokens, digest);
	return right ? spokei_conn_show(conn, digest) : SPOKE_EINVAL;
}

static struct spoke_filter_verdict go_on(void)
{
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static struct spoke_filter_verdict refuse_for_memory(void)
{
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EREFUSED,
		.text = "the provider has no memory for the request",
	};
}

static struct spoke_filter_verdict take_token(const struct spokei_proof *proof,
					      struct spokei_conn *conn,
					      const struct spoke_request *request)
{
	int error = show_token(proof, conn, request);
	uint64_t number;

	if (error == SPOKE_EINVAL)
		return refuse(proof, conn, request->service->name, request->refusal);
	if (error == SPOKE_OK && has_token(&proof->own, conn, request->message, &number))
		error = spokei_conn_prove(conn, spokei_digest_print(conn->shown));
	return error ? refuse_for_memory() : go_on();
}

/* Returns whether the connection is known to bear these credentials. */
static bool is_noted(const struct spokei_conn *conn, uint64_t number)
{
	return !conn->unproven && conn->identity && conn->identity->proof == number;
}

static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	const struct spokei_proof *proof = arg;
	const struct spokei_credentials *credentials = of_service(proof, request->service);
	const struct spokei_message *message = request->message;
	struct spokei_conn *conn = request->conn;
	uint64_t number;

	if (is_method(message, "$token") && !conn->wire->attachments && asks_anywhere(proof))
		return take_token(proof, conn, request);
	if (!asks(credentials) || is_method(message, "$echo"))
		return go_on();
	if (!has_token(credentials, conn, message, &number) ||
	    !has_signature(proof, credentials, request->service, message))
		return refuse(proof, conn, request->service->name, request->refusal);
	if (credentials->signs)
		number ^= credentials->access_print;
	if (SPOKEI_UNLIKELY(!is_noted(conn, number)) && spokei_conn_prove(conn, number))
		return refuse_for_memory();
	return go_on();
}

bool spokei_proof_lets_know(void *arg, struct spokei_conn *conn,
			    const struct spokei_message *message, char *text,
			    struct spoke_filter_verdict *ret_verdict)
{
	const struct spokei_proof *proof = arg;
	uint64_t number;

	if (!asks(&proof->own) || !conn->unproven)
		return true;
	if (!proof->own.signs && has_token(&proof->own, conn, message, &number))
		return true;
	*ret_verdict = refuse(proof, conn, message->service, text);
	return false;
}

/* --- files */

static void list_section(const struct spokei_proof *proof, struct spokei_secrets *secrets,
			 enum spokei_section section, struct spoke_span name)
{
	const struct spoke_config *config = proof->file->config;

	spokei_secrets_add(secrets,
			   spokei_config_text(config, section, name, SPOKEI_KEY_TOKEN_FILE));
	spokei_secrets_add(secrets, spokei_config_text(config, section, name,
						       SPOKEI_KEY_ACCESS_SECRET_FILE));
}

static void list_files(void *arg, struct spokei_secrets *secrets)
{
	const struct spokei_proof *proof = arg;
	const struct spoke_list *all = &proof->services;

	spokei_secrets_add(secrets, proof->options.token_file);
	spokei_secrets_add(secrets, proof->options.access_secret_file);
	if (proof->file->config == NULL)
		return;
	list_section(proof, secrets, SPOKEI_IN_PROVIDER, no_name);
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct service_proof *each = proof_at(node);

		list_section(proof, secrets, SPOKEI_IN_SERVICE,
			     spokei_span(each->name, each->name_len));
	}
}

static void files_changed(void *arg)
{
	const struct spokei_proof *proof = arg;

	proof->changed(proof->changed_arg);
}

static const struct spokei_secrets_up secrets_up = { .list = list_files, .changed = files_changed };

int spokei_proof_watch(struct spokei_proof *proof, void (*changed)(void *arg), void *arg)
{
	if (proof->file->config == NULL && proof->options.token_file == NULL &&
	    proof->options.access_secret_file == NULL)
		return SPOKE_OK;
	proof->changed = changed;
	proof->changed_arg = arg;
	return spokei_secrets_new(proof->engine, &secrets_up, proof, &proof->secrets);
}

/* --- life */

/* Paths are used again at each reload; tokens are not kept. */
static int copy_options(struct spokei_proof *proof, const struct spoke_provider_options *options)
{
	const char *from[] = { options->token_file, options->access_id,
			       options->access_secret_file };
	const char **to[] = { &proof->options.token_file, &proof->options.access_id,
			      &proof->options.access_secret_file };

	proof->options = (struct spokei_credential_options){ .token = NULL };
	return spokei_texts_copy(proof->engine->env, from, to, sizeof(from) / sizeof(from[0]),
				 &proof->texts, &proof->texts_size);
}

int spokei_proof_new(struct spoke_engine *engine, const struct spoke_provider_options *options,
		     const struct spokei_provider_settings *settings,
		     const struct spokei_config_user *file, struct spokei_proof **ret_proof)
{
	struct spokei_proof *proof = spokei_alloc(engine->env, 1, sizeof(*proof));
	int error;

	*ret_proof = proof;
	if (proof == NULL)
		return SPOKE_ENOMEM;
	proof->engine = engine;
	proof->settings = settings;
	proof->file = file;
	proof->publishes = settings->token_publish && spokei_settings_texts(options).registry;
	proof->options = (struct spokei_credential_options){
		.token = options->token,
		.token_file = options->token_file,
		.access_id = options->access_id,
		.access_secret_file = options->access_secret_file,
	};
	proof->filter = (struct spoke_filter){
		.name = "proof",
		.arg = proof,
		.before_request = before_request,
	};
	spokei_list_init(&proof->services);
	error = read_own(proof, NULL, &proof->own);
	if (error)
		return error;
	proof->same_token = options->token != NULL;
	return copy_options(proof, options);
}

void spokei_proof_free(struct spokei_proof *proof)
{
	const struct spoke_env *env;

	if (proof == NULL)
		return;
	env = proof->engine->env;
	spokei_secrets_free(proof->secrets);
	while (!spokei_list_empty(&proof->services)) {
		struct service_proof *each = proof_at(spokei_list_first(&proof->services));

		spokei_list_remove(&each->node);
		spokei_credentials_wipe(&each->of);
		spokei_free(env, each, 1, sizeof(*each) + each->name_len);
	}
	spokei_credentials_wipe(&proof->own);
	spokei_free(env, proof->texts, 1, proof->texts_size);
	spokei_free(env, proof, 1, sizeof(*proof));
}
