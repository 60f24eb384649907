/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the library's context from files: certificates, key, and the policy, which has no options
 * for what others have had to switch off again: no resumption, no early data, no renegotiation, no
 * compression.
 */
#include "core/base/env.h"
#include "core/base/status.h"
#include "transport/stream/tls/parts.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX 262144u /* bytes of a file with certificates */
#define CHAIN_MAX 16384u /* bytes of a peer's chain */
#define DEPTH 4
#define ISSUERS 16u /* names of authorities that are sent to consumers */

/* A context that is being made, its sources, and the sentence about a failure. */
struct making {
	const struct spoke_env *env;
	const struct spokei_tls_options *options;
	char *why;
	SSL_CTX *context;
	unsigned char *bytes; /* of a file, FILE_MAX */
};

SPOKEI_PRINTF(3, 4)
static int wrong(struct making *making, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(making->why, SPOKEI_TLS_WHY, format, args);
	va_end(args);
	ERR_clear_error();
	return error;
}

static const char *last_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	return reason ? reason : "it is empty or damaged";
}

/* A key is read only by a function that refuses files with wide permissions. */
static ssize_t read_file(const struct making *making, const char *path)
{
	const struct spoke_env *env = making->env;

	if (path != making->options->key)
		return env->files->read(env->ctx, path, making->bytes, FILE_MAX);
	if (env->files->read_secret == NULL)
		return -ENOSYS;
	return env->files->read_secret(env->ctx, path, making->bytes, FILE_MAX);
}

/* Opens a file's content. Returns NULL after writing `why`. */
static BIO *open_file(struct making *making, const char *key, const char *path, int *ret_error)
{
	ssize_t len = read_file(making, path);
	char text[SPOKEI_STATUS_TEXT];
	BIO *bio;

	if (len == -EPERM && path == making->options->key) {
		*ret_error = wrong(making, SPOKE_EINVAL,
				   "tls.key: others may read %s; use chmod 600 on it", path);
		return NULL;
	}
	if (len < 0) {
		*ret_error = wrong(making, SPOKE_ESYSTEM, "%s: cannot read %s: %s", key, path,
				   spokei_status_text((int)len, text));
		return NULL;
	}
	bio = BIO_new_mem_buf(making->bytes, (int)len);
	if (bio == NULL)
		*ret_error = wrong(making, SPOKE_ENOMEM, "%s: no memory", key);
	return bio;
}

/* A key with a password is refused: the library would ask for it at the terminal. */
static int no_password(char *buffer, int size, int writes, void *arg)
{
	(void)buffer;
	(void)size;
	(void)writes;
	(void)arg;
	return -1;
}

/* --- this side's certificate */

/* The end of a file is an error of the library, too; any other error means damage, e.g. a file that
 * is being written. */
static int check_end(struct making *making, const char *key, const char *path)
{
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return wrong(making, SPOKE_EINVAL, "%s: %s is damaged: %s", key, path,
			     last_reason());
	ERR_clear_error();
	return 0;
}

static int use_chain(struct making *making, BIO *bio)
{
	X509 *leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	X509 *more;
	int error = 0;

	if (leaf == NULL || SSL_CTX_use_certificate(making->context, leaf) != 1)
		error = wrong(making, SPOKE_EINVAL, "tls.cert: %s: %s", making->options->cert,
			      last_reason());
	X509_free(leaf);
	while (error == 0 && (more = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
		if (SSL_CTX_add0_chain_cert(making->context, more) != 1) {
			X509_free(more);
			error = wrong(making, SPOKE_EINVAL, "tls.cert: %s: %s",
				      making->options->cert, last_reason());
		}
	}
	return error ? error : check_end(making, "tls.cert", making->options->cert);
}

static int use_key(struct making *making, BIO *bio)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	int error = 0;

	if (key == NULL) {
		error = wrong(making, SPOKE_EINVAL,
			      "tls.key: %s: %s; a key must be PEM and without a password",
			      making->options->key, last_reason());
	} else if (SSL_CTX_use_PrivateKey(making->context, key) != 1 ||
		   SSL_CTX_check_private_key(making->context) != 1) {
		error = wrong(making, SPOKE_EINVAL, "tls.key: %s is not the key of %s: %s",
			      making->options->key, making->options->cert, last_reason());
	}
	EVP_PKEY_free(key);
	return error;
}

static int check_dates(struct making *making)
{
	X509 *leaf = SSL_CTX_get0_certificate(making->context);
	time_t now = spokei_tls_seconds(making->env);

	if (X509_cmp_time(X509_get0_notAfter(leaf), &now) < 0)
		return wrong(making, SPOKE_EINVAL, "tls.cert: %s has expired: issue a new one",
			     making->options->cert);
	if (X509_cmp_time(X509_get0_notBefore(leaf), &now) > 0)
		return wrong(making, SPOKE_EINVAL,
			     "tls.cert: %s is not valid yet: check the clock of this machine",
			     making->options->cert);
	return 0;
}

/* --- authorities */

static int use_authorities(struct making *making, BIO *bio)
{
	X509_STORE *store = SSL_CTX_get_cert_store(making->context);
	unsigned count = 0;
	X509 *cert;
	int error = 0;

	while (error == 0 && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
		if (X509_STORE_add_cert(store, cert) != 1 ||
		    (making->options->accepts && count < ISSUERS &&
		     SSL_CTX_add_client_CA(making->context, cert) != 1))
			error = wrong(making, SPOKE_EINVAL, "tls.ca: %s: %s", making->options->ca,
				      last_reason());
		X509_free(cert);
		count++;
	}
	if (error == 0 && count == 0)
		error = wrong(making, SPOKE_EINVAL, "tls.ca: %s has no certificate: %s",
			      making->options->ca, last_reason());
	if (error == 0)
		error = check_end(making, "tls.ca", making->options->ca);
	return error;
}

/* A list without an end is good for ever. One that has ended would have every peer refused. */
static bool has_ended(const struct making *making, const X509_CRL *crl)
{
	const ASN1_TIME *end = X509_CRL_get0_nextUpdate(crl);
	time_t now = spokei_tls_seconds(making->env);

	return end && X509_cmp_time(end, &now) < 0;
}

static int use_revoked(struct making *making, BIO *bio)
{
	X509_STORE *store = SSL_CTX_get_cert_store(making->context);
	X509_CRL *crl;
	unsigned count = 0;
	int error = 0;

	while (error == 0 && (crl = PEM_read_bio_X509_CRL(bio, NULL, no_password, NULL)) != NULL) {
		if (has_ended(making, crl)) {
			error = wrong(making, SPOKE_EINVAL,
				      "tls.crl: %s has a list that has ended: issue a new one",
				      making->options->crl);
		} else if (X509_STORE_add_crl(store, crl) != 1) {
			error = wrong(making, SPOKE_EINVAL, "tls.crl: %s: %s", making->options->crl,
				      last_reason());
		}
		X509_CRL_free(crl);
		count++;
	}
	if (error == 0 && count == 0)
		error = wrong(making, SPOKE_EINVAL, "tls.crl: %s has no list: %s",
			      making->options->crl, last_reason());
	if (error == 0)
		error = check_end(making, "tls.crl", making->options->crl);
	if (error == 0)
		(void)X509_STORE_set_flags(store,
					   X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return error;
}

/* Decides once what peers are shown behind the certificate: the rest of its file, or, if it is
 * alone there, those of tls.ca that lead to a root. The library would search in each handshake, for
 * the time of a signature, and show the root, which the peer needs to have. */
static int settle_chain(struct making *making)
{
	STACK_OF(X509) *chain = NULL;

	(void)SSL_CTX_set_mode(making->context, SSL_MODE_NO_AUTO_CHAIN);
	(void)SSL_CTX_get0_chain_certs(making->context, &chain);
	if (sk_X509_num(chain) > 0 ||
	    SSL_CTX_build_cert_chain(making->context, SSL_BUILD_CHAIN_FLAG_NO_ROOT |
							      SSL_BUILD_CHAIN_FLAG_IGNORE_ERROR |
							      SSL_BUILD_CHAIN_FLAG_CLEAR_ERROR) > 0)
		return 0;
	return wrong(making, SPOKE_EINVAL, "tls.cert: %s: its chain: %s", making->options->cert,
		     last_reason());
}

static int use_file(struct making *making, const char *key, const char *path,
		    int (*use)(struct making *making, BIO *bio))
{
	int error = 0;
	BIO *bio;

	if (path == NULL)
		return 0;
	bio = open_file(making, key, path, &error);
	if (bio)
		error = use(making, bio);
	BIO_free(bio);
	OPENSSL_cleanse(making->bytes, FILE_MAX);
	return error;
}

static int use_files(struct making *making)
{
	const struct spokei_tls_options *options = making->options;
	int error = use_file(making, "tls.cert", options->cert, use_chain);

	if (error == 0)
		error = use_file(making, "tls.key", options->key, use_key);
	if (error == 0 && options->cert)
		error = check_dates(making);
	if (error == 0 && options->ca == NULL && !options->accepts &&
	    SSL_CTX_set_default_verify_paths(making->context) != 1)
		error = wrong(making, SPOKE_EINVAL, "tls.ca: the system has no authorities: %s",
			      last_reason());
	if (error == 0)
		error = use_file(making, "tls.ca", options->ca, use_authorities);
	if (error == 0 && options->cert)
		error = settle_chain(making);
	if (error == 0)
		error = use_file(making, "tls.crl", options->crl, use_revoked);
	return error;
}

/* --- policy */

/* The protocol of this wire, or HTTP. A peer that offers none is an older one; one that offers only
 * others means another server. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
			   const unsigned char *offered, unsigned len, void *arg)
{
	static const unsigned char ours[] = "\5spoke\10http/1.1";
	unsigned char *chosen;
	int result = SSL_select_next_proto(&chosen, ret_len, ours, sizeof(ours) - 1, offered, len);

	(void)ssl;
	(void)arg;
	*ret = chosen;
	return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int verify_mode(const struct spokei_tls_options *options)
{
	if (!options->accepts)
		return SSL_VERIFY_PEER;
	switch (options->verify) {
	case SPOKE_TLS_VERIFY_REQUIRED:
		return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	case SPOKE_TLS_VERIFY_OPTIONAL:
		return SSL_VERIFY_PEER;
	case SPOKE_TLS_VERIFY_NONE:
		return SSL_VERIFY_NONE;
	case SPOKE_TLS_VERIFY_DEFAULT:
	default:
		return options->ca ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
				   : SSL_VERIFY_NONE;
	}
}

/* The library's suites of TLS 1.3, in its order, with the fastest one first: AES with 128 bits
 * takes a fifth less time for long messages. A system with other suites, or in another order, has a
 * reason, and keeps them. */
static bool set_suites(SSL_CTX *context)
{
	static const char *const usual[] = { TLS1_3_RFC_AES_256_GCM_SHA384,
					     TLS1_3_RFC_CHACHA20_POLY1305_SHA256,
					     TLS1_3_RFC_AES_128_GCM_SHA256 };
	const STACK_OF(SSL_CIPHER) *suites = SSL_CTX_get_ciphers(context);

	for (int i = 0; i < (int)(sizeof(usual) / sizeof(usual[0])); i++) {
		const SSL_CIPHER *suite = sk_SSL_CIPHER_value(suites, i);

		if (suite == NULL || strcmp(SSL_CIPHER_get_name(suite), usual[i]) != 0)
			return true;
	}
	return SSL_CTX_set_ciphersuites(context, TLS1_3_RFC_AES_128_GCM_SHA256
					":" TLS1_3_RFC_AES_256_GCM_SHA384
					":" TLS1_3_RFC_CHACHA20_POLY1305_SHA256) == 1;
}

static bool set_policy(SSL_CTX *context, const struct spokei_tls_options *options)
{
	static const unsigned char ours[] = "\5spoke";
	int oldest = options->oldest == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;

	/* Buffers are released in warm.c. */
	(void)SSL_CTX_set_mode(context,
			       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	(void)SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
						   SSL_OP_NO_TICKET |
						   SSL_OP_CIPHER_SERVER_PREFERENCE |
						   SSL_OP_PRIORITIZE_CHACHA);
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(context, 0);
	(void)SSL_CTX_set_max_early_data(context, 0);
	(void)SSL_CTX_set_max_cert_list(context, CHAIN_MAX);
	SSL_CTX_set_verify_depth(context, DEPTH);
	SSL_CTX_set_verify(context, verify_mode(options), NULL);
	if (!options->accepts)
		SSL_CTX_set_cert_verify_callback(context, spokei_tls_verify, NULL);
	if (options->accepts)
		SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	else if (SSL_CTX_set_alpn_protos(context, ours, sizeof(ours) - 1) != 0)
		return false;
	return set_suites(context) && SSL_CTX_set_min_proto_version(context, oldest) == 1 &&
	       SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

static int check_options(struct making *making)
{
	const struct spokei_tls_options *options = making->options;

	if ((options->cert == NULL) != (options->key == NULL))
		return wrong(making, SPOKE_EINVAL, "tls.cert and tls.key: set both or none");
	if (options->accepts && options->cert == NULL)
		return wrong(making, SPOKE_EINVAL,
			     "tls: set tls.cert and tls.key, the provider's certificate and key");
	if (options->accepts && verify_mode(options) != SSL_VERIFY_NONE && options->ca == NULL)
		return wrong(making, SPOKE_EINVAL,
			     "tls.verify: set tls.ca, the authority of consumers' certificates");
	if (options->crl && options->ca == NULL)
		return wrong(making, SPOKE_EINVAL,
			     "tls.crl: set tls.ca, the authority of the list");
	return 0;
}

static uint64_t print_of(const struct making *making, const char *path)
{
	ssize_t len = path ? read_file(making, path) : 0;
	uint64_t print = UINT64_C(0xcbf29ce484222325);

	for (ssize_t at = 0; at < len; at++)
		print = (print ^ making->bytes[at]) * UINT64_C(0x100000001b3);
	return (print ^ (uint64_t)len) * UINT64_C(0x100000001b3);
}

struct spokei_tls_prints spokei_tls_context_prints(const struct spoke_env *env,
						   const struct spokei_tls_options *options)
{
	const char *const paths[] = { options->cert, options->key, options->ca, options->crl };
	const struct making making = {
		.env = env,
		.options = options,
		.bytes = spokei_alloc_unset(env, FILE_MAX),
	};
	struct spokei_tls_prints prints = { { 0 } };

	if (making.bytes == NULL)
		return prints;
	for (size_t i = 0; i < SPOKEI_TLS_FILES; i++)
		prints.of[i] = print_of(&making, paths[i]);
	OPENSSL_cleanse(making.bytes, FILE_MAX);
	spokei_free(env, making.bytes, 1, FILE_MAX);
	return prints;
}

int spokei_tls_context_new(const struct spoke_env *env, const struct spokei_tls_options *options,
			   char why[SPOKEI_TLS_WHY], SSL_CTX **ret_context)
{
	struct making making = { .env = env, .options = options, .why = why };
	int error = check_options(&making);

	if (error)
		return error;
	ERR_clear_error();
	making.bytes = spokei_alloc(env, 1, FILE_MAX);
	making.context = SSL_CTX_new(options->accepts ? TLS_server_method() : TLS_client_method());
	if (making.bytes == NULL || making.context == NULL)
		error = wrong(&making, SPOKE_ENOMEM, "tls: no memory");
	else if (!set_policy(making.context, options))
		error = wrong(&making, SPOKE_EINVAL, "tls: the library refuses the policy: %s",
			      last_reason());
	else
		error = use_files(&making);
	spokei_free(env, making.bytes, 1, FILE_MAX);
	if (error) {
		SSL_CTX_free(making.context);
		return error;
	}
	*ret_context = making.context;
	return SPOKE_OK;
}
