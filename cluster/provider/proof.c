/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the tokens and keys that a provider asks for, checks requests, and refuses those without.
 */
#include "cluster/provider/proof.h"

#include "cluster/config/config.h"
#include "cluster/filter/signature.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/gate.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/trust/caller.h"

#include <spoke/provider.h>

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define NAME_TEXT 96u     /* bytes of a service's name in a refusal */
#define ADDRESS_TEXT 160u /* bytes of an address */

static const struct spoke_span no_name = { NULL, 0 };

/* --- credentials */

bool spokei_proof_asks(const struct spokei_credentials *credentials)
{
	return credentials->tokens.count > 0 || credentials->signs;
}

bool spokei_proof_may_ask(const struct spokei_proof *proof)
{
	return proof->set.user->config != NULL || spokei_proof_asks(proof->own);
}

const struct spokei_credentials *spokei_proof_of(const struct spokei_proof *proof,
						 const struct spokei_service *service)
{
	return service->credentials ? service->credentials : proof->own;
}

static bool ask(const struct spokei_credentials *credentials, const void *unused)
{
	(void)unused;
	return spokei_proof_asks(credentials);
}

static bool asks_anywhere(const struct spokei_proof *proof)
{
	return spokei_credentials_any(&proof->set, ask, NULL);
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
static bool have_token(const struct spokei_proof *proof, const unsigned char *digest)
{
	bool is_right = false;

	(void)spokei_credentials_any(&proof->set, note_token,
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

static bool has_signature(const struct spokei_proof *proof,
			  const struct spokei_credentials *credentials,
			  const struct spokei_service *service,
			  const struct spokei_message *message)
{
	const struct spoke_env *env = proof->set.engine->env;
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

/* Writes the sentence about a service; no name stands for the provider. */
static void write_sentence(struct spoke_span service, char *text, size_t size)
{
	char name[NAME_TEXT];

	(void)spokei_log_escape_end(name, sizeof(name), service.data, service.len);
	(void)snprintf(text, size, "no or bad credentials for %s", *name ? name : "this provider");
}

/* One line for each connection. */
static void report(struct spoke_engine *engine, const struct spokei_conn *conn,
		   struct spoke_span service)
{
	char text[SPOKEI_GATE_TEXT];
	char peer[ADDRESS_TEXT];

	if (conn->refusals > 1)
		return;
	write_sentence(service, text, sizeof(text));
	engine->env->net->print(engine->env->ctx, &conn->peer, peer, sizeof(peer));
	spokei_log(engine->log, SPOKE_LOG_WARN, "proof", SPOKEI_LOG_AUTH, engine->begin_ns,
		   "%s: %s", peer, text);
}

/* Counts a request without proof. After some the connection is dismissed. */
static void count_refusal(const struct spokei_proof *proof, struct spokei_conn *conn,
			  struct spoke_span service)
{
	spokei_count(proof->set.engine, SPOKE_STAT_REFUSED_CREDENTIALS);
	conn->refusals++;
	conn->dismissed |= conn->refusals >=
			   proof->settings->keys.in_force.of[SPOKEI_KEY_AUTH_FAILURES_MAX];
	report(proof->set.engine, conn, service);
}

/* The caller learns neither the mistake nor the remedy, and no name that it has not sent: a request
 * without one is for the default service, which the log names. */
static struct spoke_filter_verdict refuse(const struct spokei_proof *proof,
					  struct spokei_conn *conn,
					  const struct spokei_message *message,
					  struct spoke_span service, char *text)
{
	write_sentence(message->service, text, SPOKEI_GATE_TEXT);
	count_refusal(proof, conn, service);
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
	struct spoke_cursor args = spoke_request_args(request);
	unsigned char digest[SPOKEI_SHA256];
	struct spoke_span text = { NULL, 0 };
	struct spoke_value value;

	if (!spoke_cursor_next(&args, &value) || spoke_value_str(value, &text) != SPOKE_OK ||
	    text.len > SPOKEI_TOKEN_MAX)
		text = (struct spoke_span){ NULL, 0 };
	spokei_sha256(text.data, text.len, digest);
	return have_token(proof, digest) ? spokei_conn_show(conn, digest) : SPOKE_EINVAL;
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
		return refuse(proof, conn, request->message, request->service->name,
			      request->refusal);
	if (error == SPOKE_OK && has_token(proof->own, conn, request->message, &number))
		error = spokei_conn_prove(conn, spokei_digest_print(conn->identity->shown));
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
	const struct spokei_credentials *credentials = spokei_proof_of(proof, request->service);
	const struct spokei_message *message = request->message;
	struct spokei_conn *conn = request->conn;
	uint64_t number;

	if (is_method(message, "$token") && !conn->wire->attachments && asks_anywhere(proof))
		return take_token(proof, conn, request);
	if (!spokei_proof_asks(credentials))
		return go_on();
	if (!has_token(credentials, conn, message, &number) ||
	    !has_signature(proof, credentials, request->service, message))
		return refuse(proof, conn, message, request->service->name, request->refusal);
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

	if (!spokei_proof_asks(proof->own) || !conn->unproven)
		return true;
	if (!proof->own->signs && has_token(proof->own, conn, message, &number))
		return true;
	*ret_verdict = refuse(proof, conn, message, message->service, text);
	return false;
}

void spokei_proof_note_unread(const struct spokei_proof *proof, struct spokei_conn *conn)
{
	count_refusal(proof, conn, no_name);
}

/* --- life */

bool spokei_proof_stands(const struct spokei_proof *proof, struct spokei_conn *conn)
{
	const uint64_t shown = conn->identity ? conn->identity->proof : 0;

	if (shown == 0 || spokei_credentials_any(&proof->set, has_number, &shown))
		return true;
	spokei_identity_withdraw(conn->identity);
	return !asks_anywhere(proof);
}

int spokei_proof_new(struct spoke_engine *engine, const struct spoke_provider_options *options,
		     const struct spokei_provider_settings *settings,
		     struct spokei_proof **ret_proof)
{
	const struct spokei_key_values *values = &settings->keys.in_force;
	const struct spokei_credential_section own = { .section = SPOKEI_IN_PROVIDER,
						       .has_options = true };
	struct spokei_proof *proof = spokei_alloc(engine->env, 1, sizeof(*proof));
	int error;

	*ret_proof = proof;
	if (proof == NULL)
		return SPOKE_ENOMEM;
	proof->settings = settings;
	proof->filter = (struct spoke_filter){
		.name = "proof",
		.arg = proof,
		.before_request = before_request,
	};
	proof->set.keeps_text = values->of[SPOKEI_KEY_TOKEN_PUBLISH] &&
				values->text[SPOKEI_KEY_REGISTRY_URL];
	proof->set.stay = "provider: tokens and keys stay as they were";
	error = spokei_credentials_init(&proof->set, engine, &settings->keys.file,
					&settings->keys.options, options->token);
	return error ? error : spokei_credentials_add(&proof->set, &own, &proof->own);
}

int spokei_proof_add(struct spokei_proof *proof, const char *service,
		     const struct spokei_credentials **ret)
{
	const struct spokei_credential_section section = {
		.section = SPOKEI_IN_SERVICE,
		.name = spokei_span(service, service ? strlen(service) : 0),
		.over = proof->own,
	};

	*ret = NULL;
	if (proof->set.user->config == NULL || section.name.len == 0)
		return SPOKE_OK;
	return spokei_credentials_add(&proof->set, &section, ret);
}

void spokei_proof_free(struct spokei_proof *proof)
{
	const struct spoke_env *env;

	if (proof == NULL)
		return;
	env = proof->set.engine->env;
	spokei_credentials_fini(&proof->set);
	spokei_free(env, proof, 1, sizeof(*proof));
}
