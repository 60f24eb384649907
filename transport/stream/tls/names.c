/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of certificates: those that a peer has to bear one of, and those that it has shown. Only
 * subject alternative names count. They are compared with their lengths, because a name may contain
 * a NUL.
 */
#include "core/base/env.h"
#include "core/text/option.h"
#include "core/text/range.h"
#include "transport/stream/tls/parts.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHECKS (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

enum name_kind {
	NAME_DNS,
	NAME_URI,
	NAME_IP,
	NAME_KINDS,
};

static const char *const prefixes[NAME_KINDS] = { "dns:", "uri:", "ip:" };

struct wanted {
	enum name_kind kind;
	const char *text;
};

struct spokei_tls_ask {
	size_t size; /* of this struct, with the texts */
	size_t count;
	struct wanted names[SPOKEI_TLS_NAMES];
	char texts[];
};

/* --- wanted */

bool spokei_tls_is_address(const char *host)
{
	ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);

	ASN1_OCTET_STRING_free(address);
	return address != NULL;
}

/* Returns whether a name can be looked for: the library takes a leading dot for any name below it,
 * and "" for every name. */
static bool is_good(enum name_kind kind, const char *text)
{
	switch (kind) {
	case NAME_DNS:
		return text[0] != '\0' && text[0] != '.' && !strpbrk(text, "*/:@ ");
	case NAME_IP:
		return spokei_tls_is_address(text);
	case NAME_URI:
	case NAME_KINDS:
	default:
		return strchr(text, ':') != NULL;
	}
}

static bool read_name(char *item, struct wanted *ret)
{
	for (unsigned kind = 0; kind < NAME_KINDS; kind++) {
		size_t len = strlen(prefixes[kind]);

		if (strncmp(item, prefixes[kind], len) != 0)
			continue;
		*ret = (struct wanted){ (enum name_kind)kind, item + len };
		return is_good(ret->kind, ret->text);
	}
	return false;
}

/* Reads the list into `ask`, which has room for its text. */
static int read_list(struct spokei_tls_ask *ask, const char *list, char why[SPOKEI_TLS_WHY])
{
	const char *at = list;
	char *to = ask->texts;
	struct spoke_span item;

	while (spokei_option_item(&at, &item)) {
		if (ask->count == SPOKEI_TLS_NAMES) {
			(void)snprintf(why, SPOKEI_TLS_WHY, "tls.peers: at most %u names",
				       SPOKEI_TLS_NAMES);
			return SPOKE_EINVAL;
		}
		memcpy(to, item.data, item.len);
		to[item.len] = '\0';
		if (!read_name(to, &ask->names[ask->count++])) {
			(void)snprintf(why, SPOKEI_TLS_WHY,
				       "tls.peers: \"%s\" is no name; write dns:HOST, uri:URI or "
				       "ip:ADDRESS",
				       to);
			return SPOKE_EINVAL;
		}
		to += item.len + 1;
	}
	if (ask->count > 0)
		return SPOKE_OK;
	(void)snprintf(why, SPOKEI_TLS_WHY, "tls.peers: write at least one name, e.g. dns:HOST");
	return SPOKE_EINVAL;
}

struct spokei_tls_ask *spokei_tls_ask_new(const struct spoke_env *env, const char *list,
					  char why[SPOKEI_TLS_WHY], int *ret_error)
{
	size_t size = sizeof(struct spokei_tls_ask) + strlen(list) + SPOKEI_TLS_NAMES + 1;
	struct spokei_tls_ask *ask = spokei_alloc(env, 1, size);

	*ret_error = SPOKE_ENOMEM;
	if (ask == NULL)
		return NULL;
	ask->size = size;
	*ret_error = read_list(ask, list, why);
	if (*ret_error == 0)
		return ask;
	spokei_tls_ask_free(env, ask);
	return NULL;
}

void spokei_tls_ask_free(const struct spoke_env *env, struct spokei_tls_ask *ask)
{
	if (ask)
		spokei_free(env, ask, 1, ask->size);
}

int spokei_tls_check_peers(const struct spoke_env *env, const char *list, char why[SPOKEI_TLS_WHY])
{
	int error;
	struct spokei_tls_ask *ask = spokei_tls_ask_new(env, list, why, &error);

	spokei_tls_ask_free(env, ask);
	ERR_clear_error();
	return error;
}

static struct spoke_span text_of(const ASN1_STRING *text)
{
	return (struct spoke_span){ ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text) };
}

static bool bears_uri(X509 *cert, const char *uri)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	size_t len = strlen(uri);
	bool found = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		struct spoke_span text;

		if (name->type != GEN_URI)
			continue;
		text = text_of(name->d.uniformResourceIdentifier);
		found = found || (text.len == len && memcmp(text.data, uri, len) == 0);
	}
	GENERAL_NAMES_free(names);
	return found;
}

static bool bears(X509 *cert, const struct wanted *wanted)
{
	switch (wanted->kind) {
	case NAME_DNS:
		return X509_check_host(cert, wanted->text, strlen(wanted->text), CHECKS, NULL) == 1;
	case NAME_IP:
		return X509_check_ip_asc(cert, wanted->text, CHECKS) == 1;
	case NAME_URI:
		return bears_uri(cert, wanted->text);
	case NAME_KINDS:
	default:
		return false;
	}
}

static bool holds(const struct spokei_tls_ask *ask, X509 *cert)
{
	for (size_t i = 0; i < ask->count; i++)
		if (bears(cert, &ask->names[i]))
			return true;
	return false;
}

static bool is_of(X509 *cert, const char *host)
{
	enum name_kind kind = spokei_tls_is_address(host) ? NAME_IP : NAME_DNS;

	return is_good(kind, host) && bears(cert, &(struct wanted){ kind, host });
}

static bool is_expected(const struct spokei_tls_expected *expected, X509 *cert)
{
	return expected->ask ? holds(expected->ask, cert) : is_of(cert, expected->host);
}

int spokei_tls_verify(X509_STORE_CTX *store, void *arg)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

	(void)arg;
	if (X509_verify_cert(store) != 1)
		return 0;
	if (is_expected(SSL_get_app_data(ssl), X509_STORE_CTX_get0_cert(store)))
		return 1;
	X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
	return 0;
}

/* A peer that was asked for no certificate stays; if one is required now, it goes. */
bool spokei_tls_trusts(const struct spokei_tls_link *link)
{
	SSL_CTX *context = link->tls->context;
	X509 *cert = link->pipe.ssl ? SSL_get0_peer_certificate(link->pipe.ssl) : NULL;
	X509_STORE_CTX *store;
	bool trusts;

	if (cert == NULL)
		return !(SSL_CTX_get_verify_mode(context) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
	store = X509_STORE_CTX_new();
	trusts = store != NULL &&
		 X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(context), cert,
				     SSL_get_peer_cert_chain(link->pipe.ssl)) == 1 &&
		 X509_STORE_CTX_set_default(store,
					    link->tls->accepts ? "ssl_client" : "ssl_server") == 1;
	if (trusts) {
		X509_STORE_CTX_set_depth(store, SSL_CTX_get_verify_depth(context));
		X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(store),
					   spokei_tls_seconds(link->tls->engine->env));
		trusts = X509_verify_cert(store) == 1;
	}
	X509_STORE_CTX_free(store);
	ERR_clear_error();
	return trusts;
}

/* --- shown */

/* Writes an address of 4 or 16 bytes. */
static size_t show_address(struct spoke_span bytes, char *out, size_t size)
{
	static const char prefix[] = "ip:";
	struct spokei_machine machine = { .kind = SPOKEI_MACHINE_V4 };
	const unsigned char *at = bytes.data;
	size_t len;

	if ((bytes.len != 4 && bytes.len != 16) || size <= sizeof(prefix))
		return 0;
	if (bytes.len == 16)
		machine.kind = SPOKEI_MACHINE_V6;
	for (size_t i = 0; i < bytes.len; i++) {
		machine.high = machine.high << 8 | machine.low >> 56;
		machine.low = machine.low << 8 | at[i];
	}
	memcpy(out, prefix, sizeof(prefix));
	len = spokei_machine_print(&machine, out + sizeof(prefix) - 1, size - sizeof(prefix) + 1);
	return len > 0 ? len + sizeof(prefix) - 1 : 0;
}

/* Writes a name of a certificate, e.g. "dns:a.test". Returns its length, or 0: it is of another
 * kind, or has bytes that no such name has. */
static size_t show(const GENERAL_NAME *name, char *out, size_t size)
{
	const char *prefix = prefixes[name->type == GEN_DNS ? NAME_DNS : NAME_URI];
	struct spoke_span text;
	const unsigned char *at;

	switch (name->type) {
	case GEN_DNS:
		text = text_of(name->d.dNSName);
		break;
	case GEN_URI:
		text = text_of(name->d.uniformResourceIdentifier);
		break;
	case GEN_IPADD:
		return show_address(text_of(name->d.iPAddress), out, size);
	default:
		return 0;
	}
	at = text.data;
	if (text.len == 0 || strlen(prefix) + text.len >= size)
		return 0;
	for (size_t i = 0; i < text.len; i++)
		if (at[i] <= ' ' || at[i] >= 0x7f)
			return 0;
	return (size_t)snprintf(out, size, "%s%.*s", prefix, (int)text.len, (const char *)at);
}

/* Copies the texts, each with the length before it, behind an array of spans. */
static int put_names(const struct spoke_env *env, const char *texts, const size_t *lens,
		     size_t count, struct spokei_tls_names *ret)
{
	size_t len = 0;
	char *to;

	for (size_t i = 0; i < count; i++)
		len += lens[i];
	*ret = (struct spokei_tls_names){ .size = count * sizeof(*ret->spans) + len };
	ret->spans = spokei_alloc(env, 1, ret->size);
	if (ret->spans == NULL)
		return -ENOMEM;
	ret->count = count;
	to = memcpy(ret->spans + count, texts, len);
	for (size_t i = 0; i < count; i++) {
		ret->spans[i] = (struct spoke_span){ to, lens[i] };
		to += lens[i];
	}
	return 0;
}

int spokei_tls_names_read(const struct spoke_env *env, X509 *cert,
			  struct spokei_tls_names *ret_names)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	char texts[SPOKEI_TLS_NAMES_SIZE];
	size_t lens[SPOKEI_TLS_NAMES];
	size_t count = 0;
	size_t used = 0;

	*ret_names = (struct spokei_tls_names){ .count = 0 };
	for (int i = 0; i < sk_GENERAL_NAME_num(names) && count < SPOKEI_TLS_NAMES; i++) {
		size_t len = show(sk_GENERAL_NAME_value(names, i), texts + used,
				  sizeof(texts) - used);

		if (len == 0)
			continue;
		lens[count++] = len;
		used += len;
	}
	GENERAL_NAMES_free(names);
	return count > 0 ? put_names(env, texts, lens, count, ret_names) : 0;
}
