/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the lists of callers and the credentials that a provider asks for, checks requests, and
 * refuses those of other callers. */
#include "cluster/serve/access_control.h"

#include "cluster/config/settings.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/signature.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/trust/caller.h"

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define SERVICE_TEXT 96u  /* bytes of a service's name in a refusal for credentials */
#define NAME_SHOWN 80u    /* ... for a list, and of the caller's name */
#define ADDRESS_TEXT 160u /* bytes of an address */

static const struct spoke_span no_name = { NULL, 0 };

/* --- credentials */

bool spokei_access_asks(const struct spokei_credentials *credentials)
{
	return credentials->tokens.count > 0 || credentials->signs;
}

const struct spokei_credentials *spokei_access_of(const struct spokei_access_control *access,
						  const struct spokei_service *service)
{
	return service->credentials ? service->credentials : access->own;
}

static bool ask(const struct spokei_credentials *credentials, const void *unused)
{
	(void)unused;
	return spokei_access_asks(credentials);
}

static bool asks_anywhere(const struct spokei_access_control *access)
{
	return spokei_credentials_any(&access->set, ask, NULL);
}

/* A token that was shown, by its digest. */
struct showing {
	const unsigned char *digest;
	bool *is_right;
};

static bool note_token(const struct spokei_credentials *credentials, const void *arg)
{
	const struct showing *showing = arg;

	*showing->is_right |= spokei_tokens_has_digest(&credentials->tokens, showing->digest);
	return false;
}

/* Returns whether any of the credentials has the token of a digest. All are compared, so the time
 * shows nothing. */
static bool is_known_token(const struct spokei_access_control *access, const unsigned char *digest)
{
	bool is_right = false;

	(void)spokei_credentials_any(&access->set, note_token,
				     &(struct showing){ digest, &is_right });
	return is_right;
}

/* Returns whether credentials have the number of a proof: the print of a token, of the key, or of
 * both together. */
static bool has_number(const struct spokei_credentials *credentials, const void *arg)
{
	const uint64_t number = *(const uint64_t *)arg;
	uint64_t access = credentials->signs ? credentials->access_print : 0;

	for (unsigned i = 0; i < credentials->tokens.count; i++) {
		uint64_t token = spokei_digest_print(credentials->tokens.digests[i]);

		if (number == token || number == (token ^ access))
			return true;
	}
	return number == access && access != 0;
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
	} else if (conn->identity && conn->identity->shows) {
		memcpy(digest, conn->identity->shown, sizeof(digest));
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

static bool has_signature(const struct spokei_access_control *access,
			  const struct spokei_credentials *credentials,
			  const struct spokei_service *service,
			  const struct spokei_message *message)
{
	const struct spoke_env *env = access->set.engine->env;
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

/* Writes the name of a service, escaped; no name stands for the provider. */
static void show_service(struct spoke_span service, const char *provider, char *shown, size_t size)
{
	(void)spokei_log_escape_end(shown, size, service.data, service.len);
	if (*shown == '\0')
		(void)snprintf(shown, size, "%s", provider);
}

/* Writes the sentence about the credentials for a service. */
static void write_sentence(struct spoke_span service, char *text, size_t size)
{
	char name[SERVICE_TEXT];

	show_service(service, "this provider", name, sizeof(name));
	(void)snprintf(text, size, "no or bad credentials for %s", name);
}

/* One line for each connection. */
static void report(struct spoke_engine *engine, const struct spokei_conn *conn,
		   struct spoke_span service)
{
	char text[SPOKEI_REFUSAL_TEXT];
	char peer[ADDRESS_TEXT];

	if (conn->refusals > 1)
		return;
	write_sentence(service, text, sizeof(text));
	engine->env->net->print(engine->env->ctx, &conn->peer, peer, sizeof(peer));
	spokei_log(engine->log, SPOKE_LOG_WARN, "proof", SPOKEI_LOG_AUTH, engine->begin_ns,
		   "%s: %s", peer, text);
}

/* Counts a request without proof. After some the connection is dismissed. */
static void count_refusal(const struct spokei_access_control *access, struct spokei_conn *conn,
			  struct spoke_span service)
{
	spokei_count(access->set.engine, SPOKE_STAT_REFUSED_CREDENTIALS);
	conn->refusals++;
	conn->dismissed |= conn->refusals >=
			   spokei_settings_number(access->settings, SPOKEI_KEY_AUTH_FAILURES_MAX);
	report(access->set.engine, conn, service);
}

/* The caller learns neither the mistake nor the remedy, and no name that it has not sent: a request
 * without one is for the default service, which the log names. */
static struct spoke_filter_verdict refuse(const struct spokei_access_control *access,
					  struct spokei_conn *conn,
					  const struct spokei_message *message,
					  struct spoke_span service, char *text)
{
	write_sentence(message->service, text, SPOKEI_REFUSAL_TEXT);
	count_refusal(access, conn, service);
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EFORBIDDEN,
		.code = SPOKE_FORBIDDEN_UNPROVEN,
		.text = text,
	};
}

/* Writes the strongest name of a peer, escaped. */
static void show_caller(const struct spokei_conn *conn, char shown[NAME_SHOWN])
{
	const struct spoke_env *env = conn->stream.engine->env;
	char name[SPOKEI_IDENTITY_NAME];

	if (spokei_identity_print(env, conn->identity, &conn->peer, 0, name, sizeof(name)) == 0)
		(void)snprintf(name, sizeof(name), "a caller without a name");
	(void)spokei_log_escape_end(shown, NAME_SHOWN, name, strlen(name));
}

/* Writes a line about a connection that a list has refused for the first time. */
static void log_refused(const struct spokei_conn *conn, const char *service, const char *caller)
{
	struct spoke_engine *engine = conn->stream.engine;
	char peer[NAME_SHOWN];

	engine->env->net->print(engine->env->ctx, &conn->peer, peer, sizeof(peer));
	spokei_log(engine->log, SPOKE_LOG_WARN, "provider", SPOKEI_LOG_AUTH, engine->begin_ns,
		   "%s (%s) may not call %s: allow.callers", peer, caller, service);
}

/* Makes the verdict on a caller that is not let in; its text is in `text`. The caller learns no
 * name that it has not sent: a request without one is for the default service, which the log names.
 */
static struct spoke_filter_verdict refuse_caller(const struct spokei_conn *conn,
						 const struct spokei_message *message,
						 struct spoke_span service, bool is_new, char *text)
{
	char caller[NAME_SHOWN];
	char name[NAME_SHOWN];

	show_caller(conn, caller);
	show_service(service, "the provider", name, sizeof(name));
	if (is_new)
		log_refused(conn, name, caller);
	spokei_count(conn->stream.engine, SPOKE_STAT_REFUSED_CALLER);
	show_service(message->service, "the provider", name, sizeof(name));
	(void)snprintf(text, SPOKEI_REFUSAL_TEXT, "%s does not let %s call it", name, caller);
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EFORBIDDEN,
		.text = text,
		.code = SPOKE_FORBIDDEN_CALLER,
	};
}

/* --- the filter */

/* Reads the argument of "$token", and has the connection show it from now on. Returns 0, ENOMEM, or
 * EINVAL: it is no token of this provider. */
static int show_token(const struct spokei_access_control *access, struct spokei_conn *conn,
		      const struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	unsigned char digest[SPOKEI_SHA256];
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;

	if (!spoke_cursor_next(&args, &value) || spoke_value_str(value, &text) != SPOKE_OK ||
	    text.len > SPOKEI_TOKEN_MAX)
		text = (struct spoke_span){ NULL, 0 };
	spokei_sha256(text.data, text.len, digest);
	return is_known_token(access, digest) ? spokei_conn_show(conn, digest) : SPOKE_EINVAL;
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

static struct spoke_filter_verdict take_token(const struct spokei_access_control *access,
					      struct spokei_conn *conn,
					      const struct spoke_request *request)
{
	int error = show_token(access, conn, request);
	uint64_t number;

	if (error == SPOKE_EINVAL)
		return refuse(access, conn, request->message, request->asked->service->name,
			      request->asked->text);
	if (error == SPOKE_OK && has_token(access->own, conn, request->message, &number))
		error = spokei_conn_prove(conn, spokei_digest_print(conn->identity->shown));
	return error ? refuse_for_memory() : go_on();
}

/* Returns whether the connection is known to bear these credentials. */
static bool is_noted(const struct spokei_conn *conn, uint64_t number)
{
	return !conn->unproven && conn->identity && conn->identity->proof == number;
}

static struct spoke_filter_verdict check_credentials(const struct spokei_access_control *access,
						     const struct spoke_request *request)
{
	const struct spokei_credentials *credentials = spokei_access_of(access,
									request->asked->service);
	const struct spokei_message *message = request->message;
	struct spokei_conn *conn = request->conn;
	uint64_t number;

	if (is_method(message, "$token") && !conn->wire->attachments && asks_anywhere(access))
		return take_token(access, conn, request);
	if (!spokei_access_asks(credentials))
		return go_on();
	if (!has_token(credentials, conn, message, &number) ||
	    !has_signature(access, credentials, request->asked->service, message))
		return refuse(access, conn, message, request->asked->service->name,
			      request->asked->text);
	if (credentials->signs)
		number ^= credentials->access_print;
	if (SPOKEI_UNLIKELY(!is_noted(conn, number)) && spokei_conn_prove(conn, number))
		return refuse_for_memory();
	return go_on();
}

static struct spoke_filter_verdict check_lists(const struct spokei_access_control *access,
					       const struct spoke_request *request)
{
	bool is_new;

	if (spokei_conn_let_in(request->conn, access->callers, &is_new) &&
	    spokei_conn_let_in(request->conn, request->asked->service->callers, &is_new))
		return go_on();
	return refuse_caller(request->conn, request->message, request->asked->service->name, is_new,
			     request->asked->text);
}

static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	const struct spokei_access_control *access = arg;
	struct spoke_filter_verdict verdict = check_credentials(access, request);

	return verdict.step == SPOKE_FILTER_GO_ON ? check_lists(access, request) : verdict;
}

bool spokei_access_lets_know(const struct spokei_access_control *access, struct spokei_conn *conn,
			     const struct spokei_message *message, char *text,
			     struct spoke_filter_verdict *ret_verdict)
{
	bool is_new;
	uint64_t number;

	if (spokei_access_asks(access->own) && conn->unproven &&
	    (access->own->signs || !has_token(access->own, conn, message, &number))) {
		*ret_verdict = refuse(access, conn, message, message->service, text);
		return false;
	}
	if (access->callers == NULL || spokei_conn_let_in(conn, access->callers, &is_new))
		return true;
	*ret_verdict = refuse_caller(conn, message, message->service, is_new, text);
	return false;
}

void spokei_access_note_unread(const struct spokei_access_control *access, struct spokei_conn *conn)
{
	count_refusal(access, conn, no_name);
}

bool spokei_access_stands(const struct spokei_access_control *access, struct spokei_conn *conn)
{
	const uint64_t shown = conn->identity ? conn->identity->proof : 0;

	if (shown == 0 || spokei_credentials_any(&access->set, has_number, &shown))
		return true;
	spokei_identity_withdraw(conn->identity);
	return !asks_anywhere(access);
}

/* --- lists */

/* Reads a list of callers; NULL: there is none. `why` begins with the name of the key. */
static int read_callers(struct spokei_access_control *access, const char *text,
			struct spokei_callers **ret_callers, char why[SPOKE_EVENT_TEXT])
{
	char sentence[SPOKEI_CALLERS_WHY];
	int error;

	*ret_callers = NULL;
	if (text == NULL)
		return SPOKE_OK;
	error = spokei_callers_new(access->set.engine->env, text, ++access->list_number,
				   ret_callers, sentence);
	if (error == SPOKE_EINVAL)
		(void)snprintf(why, SPOKE_EVENT_TEXT, "allow.callers: %.200s", sentence);
	return error;
}

/* Returns the list of a service in the file, or NULL. */
static const char *text_of_service(const struct spokei_access_control *access,
				   struct spoke_span name)
{
	return spokei_config_text(access->set.user->config, SPOKEI_IN_SERVICE, name,
				  SPOKEI_KEY_ALLOW_CALLERS);
}

int spokei_access_prepare(struct spokei_access_control *access,
			  const struct spokei_routes *services, char why[SPOKE_EVENT_TEXT])
{
	struct spokei_service *service = NULL;
	int error = read_callers(access, access->settings->next->text[SPOKEI_KEY_ALLOW_CALLERS],
				 &access->next_callers, why);

	while (error == SPOKE_OK && (service = spokei_routes_next(services, service)) != NULL)
		error = read_callers(access, text_of_service(access, service->name),
				     &service->next_callers, why);
	return error;
}

/* Moves a list to its place, or frees it. */
static void replace(const struct spoke_env *env, struct spokei_callers **next,
		    struct spokei_callers **in_force, bool takes)
{
	spokei_callers_free(env, takes ? *in_force : *next);
	if (takes)
		*in_force = *next;
	*next = NULL;
}

void spokei_access_replace(struct spokei_access_control *access,
			   const struct spokei_routes *services, bool takes)
{
	const struct spoke_env *env = access->set.engine->env;
	struct spokei_service *service = NULL;

	replace(env, &access->next_callers, &access->callers, takes);
	while ((service = spokei_routes_next(services, service)) != NULL)
		replace(env, &service->next_callers, &service->callers, takes);
}

/* --- life */

int spokei_access_init(struct spokei_access_control *access, struct spoke_engine *engine,
		       const struct spokei_settings *settings, const char *token,
		       struct spokei_filters *filters)
{
	const struct spokei_credential_section own = { .section = SPOKEI_IN_PROVIDER,
						       .has_options = true };
	char why[SPOKE_EVENT_TEXT];
	int error;

	access->settings = settings;
	access->filter = (struct spoke_filter){
		.name = "access control",
		.arg = access,
		.before_request = before_request,
	};
	access->set.keeps_text = spokei_settings_number(settings, SPOKEI_KEY_TOKEN_PUBLISH) &&
				 spokei_settings_text(settings, SPOKEI_KEY_REGISTRY_URL);
	access->set.stay = "provider: tokens and keys stay as they were";
	error = spokei_credentials_init(&access->set, engine, &settings->file, settings->options,
					token);
	if (error == SPOKE_OK)
		error = spokei_credentials_add(&access->set, &own, &access->own);
	if (error)
		return error;
	error = read_callers(access, spokei_settings_text(settings, SPOKEI_KEY_ALLOW_CALLERS),
			     &access->callers, why);
	if (error == SPOKE_EINVAL)
		spokei_event(engine, error, "option %s", why);
	/* Without a file nothing can ask for more later. */
	if (error || (settings->file.config == NULL && access->callers == NULL &&
		      !spokei_access_asks(access->own)))
		return error;
	return spokei_filters_put_first(filters, engine->env, &access->filter);
}

int spokei_access_read(struct spokei_access_control *access, const char *name,
		       struct spokei_callers **ret_callers,
		       const struct spokei_credentials **ret_credentials)
{
	const struct spoke_env *env = access->set.engine->env;
	const struct spokei_credential_section section = {
		.section = SPOKEI_IN_SERVICE,
		.name = spokei_span(name, name ? strlen(name) : 0),
		.over = access->own,
	};
	char why[SPOKE_EVENT_TEXT];
	int error = read_callers(access, text_of_service(access, section.name), ret_callers, why);

	*ret_credentials = NULL;
	if (error == SPOKE_EINVAL)
		spokei_event(access->set.engine, error, "new service: %s", why);
	if (error || access->set.user->config == NULL || section.name.len == 0)
		return error;
	error = spokei_credentials_add(&access->set, &section, ret_credentials);
	if (error)
		spokei_callers_free(env, *ret_callers);
	return error;
}

void spokei_access_fini(struct spokei_access_control *access)
{
	if (access->set.engine == NULL)
		return;
	spokei_callers_free(access->set.engine->env, access->callers);
	spokei_credentials_fini(&access->set);
}
