/* SPDX-License-Identifier: Apache-2.0 */
/* Makes certificates for trying: an authority, and certificates that it signs. */
#include "examples/spoke/issue.h"

#include <spoke/value.h>

#include <stdio.h>

#ifdef SPOKE_WITH_TLS

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <stdarg.h>
#include <string.h>

#define NAMES_MAX 16u
#define NAME_MAX_BYTES 253u
#define COMMON_NAME_MAX 64u /* bytes, by X.509 */
#define DAYS_MAX 36500u
#define DAYS_OF_AUTHORITY 3650u
#define DAYS_OF_OTHERS 365u
#define SERIAL_BYTES 16
#define DAY_S 86400
#define EARLY_S 3600 /* certificates are valid since then: clocks of other machines may be late */

/* A certificate that is being made; the pointers are NULL or owned. */
struct making {
	const struct issue_options *options;
	struct issued *ret;
	time_t now;
	X509 *ca;         /* the signer; NULL: the certificate itself */
	EVP_PKEY *ca_key; /* ... and its key */
	X509 *cert;
	EVP_PKEY *key;
	GENERAL_NAMES *names;
};

__attribute__((format(printf, 3, 4))) static int wrong(struct making *making, int error,
						       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(making->ret->why, ISSUE_WHY, format, args);
	va_end(args);
	return error;
}

/* The library fails where nothing depends on the caller: its only reason is memory. */
static int no_memory(struct making *making)
{
	return wrong(making, SPOKE_ENOMEM, "no memory");
}

/* --- names */

/* Takes the next of the names, which commas separate, without spaces around it. Returns false at
 * the end. */
static bool next_item(const char **at, struct spoke_span *ret)
{
	const char *begin = *at;
	const char *end;

	if (begin == NULL)
		return false;
	end = begin + strcspn(begin, ",");
	*at = *end ? end + 1 : NULL;
	while (begin < end && (*begin == ' ' || *begin == '\t'))
		begin++;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*ret = (struct spoke_span){ begin, (size_t)(end - begin) };
	return true;
}

static GENERAL_NAME *text_name(int type, struct spoke_span text)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *string = ASN1_IA5STRING_new();

	if (name == NULL || string == NULL ||
	    ASN1_STRING_set(string, text.data, (int)text.len) != 1) {
		ASN1_IA5STRING_free(string);
		GENERAL_NAME_free(name);
		return NULL;
	}
	GENERAL_NAME_set0_value(name, type, string);
	return name;
}

static GENERAL_NAME *address_name(const char *text)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_OCTET_STRING *address = a2i_IPADDRESS(text);

	if (name == NULL || address == NULL) {
		ASN1_OCTET_STRING_free(address);
		GENERAL_NAME_free(name);
		return NULL;
	}
	GENERAL_NAME_set0_value(name, GEN_IPADD, address);
	return name;
}

static bool is_host(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t len = strlen(text);

	if (strncmp(text, "*.", 2) == 0) {
		text += 2;
		len -= 2;
	}
	return len > 0 && text[0] != '.' && text[len - 1] != '.' && strstr(text, "..") == NULL &&
	       strspn(text, letters) == len;
}

/* A URI has printable characters and a scheme. */
static bool is_uri(const char *text)
{
	for (const char *at = text; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~')
			return false;
	return strchr(text, ':') != NULL && *text != ':';
}

/* Returns the library's form of "dns:HOST", "uri:URI" or "ip:ADDRESS"; NULL: it is none, or there
 * is no memory. */
static GENERAL_NAME *read_name(const char *text)
{
	if (strncmp(text, "dns:", 4) == 0 && is_host(text + 4))
		return text_name(GEN_DNS, (struct spoke_span){ text + 4, strlen(text + 4) });
	if (strncmp(text, "uri:", 4) == 0 && is_uri(text + 4))
		return text_name(GEN_URI, (struct spoke_span){ text + 4, strlen(text + 4) });
	return strncmp(text, "ip:", 3) == 0 ? address_name(text + 3) : NULL;
}

static int read_names(struct making *making)
{
	const char *at = making->options->names;
	struct spoke_span item;

	making->names = sk_GENERAL_NAME_new_null();
	if (making->names == NULL)
		return no_memory(making);
	while (next_item(&at, &item)) {
		char text[NAME_MAX_BYTES + 5];
		GENERAL_NAME *name = NULL;

		if (sk_GENERAL_NAME_num(making->names) == (int)NAMES_MAX)
			return wrong(making, SPOKE_EINVAL, "at most %u names", NAMES_MAX);
		if (item.len < sizeof(text)) {
			memcpy(text, item.data, item.len);
			text[item.len] = '\0';
			name = read_name(text);
		}
		if (name == NULL) {
			return wrong(making, SPOKE_EINVAL,
				     "\"%.*s\" is not a name; write dns:HOST, uri:URI or "
				     "ip:ADDRESS",
				     (int)(item.len < 128 ? item.len : 128),
				     (const char *)item.data);
		}
		if (sk_GENERAL_NAME_push(making->names, name) <= 0) {
			GENERAL_NAME_free(name);
			return no_memory(making);
		}
	}
	if (sk_GENERAL_NAME_num(making->names) > 0)
		return SPOKE_OK;
	return wrong(making, SPOKE_EINVAL, "write at least one name, e.g. dns:localhost");
}

/* --- the authority */

static int no_password(char *buffer, int size, int writes, void *arg)
{
	(void)buffer;
	(void)size;
	(void)writes;
	(void)arg;
	return -1;
}

static int read_ca(struct making *making)
{
	BIO *cert = BIO_new_mem_buf(making->options->ca, -1);
	BIO *key = BIO_new_mem_buf(making->options->ca_key, -1);
	int error = SPOKE_OK;

	if (cert && key) {
		making->ca = PEM_read_bio_X509(cert, NULL, no_password, NULL);
		making->ca_key = PEM_read_bio_PrivateKey(key, NULL, no_password, NULL);
		if (making->ca == NULL || making->ca_key == NULL) {
			error = wrong(making, SPOKE_EINVAL, "the authority's %s is not PEM, or %s",
				      making->ca ? "key" : "certificate",
				      making->ca ? "has a password" : "empty");
		} else if (X509_check_private_key(making->ca, making->ca_key) != 1) {
			error = wrong(making, SPOKE_EINVAL,
				      "the authority's key belongs to another certificate");
		} else if (X509_check_ca(making->ca) != 1) {
			error = wrong(making, SPOKE_EINVAL,
				      "the authority's certificate may not sign others");
		} else if (X509_cmp_time(X509_get0_notAfter(making->ca), &making->now) < 0) {
			error = wrong(making, SPOKE_EINVAL,
				      "the authority's certificate has expired");
		}
	} else {
		error = no_memory(making);
	}
	BIO_free(cert);
	BIO_free(key);
	return error;
}

/* --- the certificate */

static bool add_extension(struct making *making, int nid, const char *value)
{
	X509 *issuer = making->ca ? making->ca : making->cert;
	X509_EXTENSION *extension;
	X509V3_CTX with;
	bool added;

	X509V3_set_ctx(&with, issuer, making->cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &with, nid, value);
	added = extension && X509_add_ext(making->cert, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

static bool add_extensions(struct making *making)
{
	bool added = add_extension(making, NID_subject_key_identifier, "hash");

	if (making->ca == NULL)
		return added &&
		       add_extension(making, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		       add_extension(making, NID_key_usage, "critical,keyCertSign,cRLSign");
	return added && add_extension(making, NID_authority_key_identifier, "keyid") &&
	       add_extension(making, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_extension(making, NID_key_usage, "critical,digitalSignature") &&
	       add_extension(making, NID_ext_key_usage, "serverAuth,clientAuth") &&
	       X509_add1_ext_i2d(making->cert, NID_subject_alt_name, making->names, 0, 0) == 1;
}

static bool set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *number = NULL;
	bool set;

	if (RAND_bytes(bytes, SERIAL_BYTES) != 1)
		return false;
	bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of one length */
	number = BN_bin2bn(bytes, SERIAL_BYTES, NULL);
	set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
	BN_free(number);
	return set;
}

/* Sets the first and the last second; none lasts longer than its authority. */
static bool set_dates(struct making *making)
{
	uint32_t days = making->options->days;
	const ASN1_TIME *last;
	time_t ends;

	if (days == 0)
		days = making->ca ? DAYS_OF_OTHERS : DAYS_OF_AUTHORITY;
	ends = making->now + (time_t)days * DAY_S;
	if (X509_time_adj_ex(X509_getm_notBefore(making->cert), 0, -EARLY_S, &making->now) == NULL)
		return false;
	if (making->ca) {
		last = X509_get0_notAfter(making->ca);
		if (X509_cmp_time(last, &ends) < 0)
			return X509_set1_notAfter(making->cert, last) == 1;
	}
	return X509_time_adj_ex(X509_getm_notAfter(making->cert), 0, 0, &ends) != NULL;
}

static bool set_names(struct making *making)
{
	X509_NAME *subject = X509_get_subject_name(making->cert);
	X509_NAME *issuer;

	if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
				       (const unsigned char *)making->options->name, -1, -1,
				       0) != 1)
		return false;
	issuer = making->ca ? X509_get_subject_name(making->ca) : subject;
	return X509_set_issuer_name(making->cert, issuer) == 1;
}

static EVP_PKEY *new_key(enum issue_key kind)
{
	return kind == ISSUE_ED25519 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
				     : EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
}

/* Signs; keys of Edwards curves have their digest built in. */
static bool sign(struct making *making)
{
	EVP_PKEY *key = making->ca ? making->ca_key : making->key;
	bool edwards = EVP_PKEY_is_a(key, "ED25519") == 1;

	return X509_sign(making->cert, key, edwards ? NULL : EVP_sha256()) > 0;
}

static int make(struct making *making)
{
	making->key = new_key(making->options->key);
	making->cert = X509_new();
	if (making->key == NULL || making->cert == NULL ||
	    X509_set_version(making->cert, X509_VERSION_3) != 1 || !set_serial(making->cert) ||
	    !set_dates(making) || !set_names(making) ||
	    X509_set_pubkey(making->cert, making->key) != 1 || !add_extensions(making) ||
	    !sign(making))
		return no_memory(making);
	return SPOKE_OK;
}

/* --- texts */

static int take_text(struct making *making, BIO *bio, char *text)
{
	char *bytes;
	long len = BIO_get_mem_data(bio, &bytes);

	if (len < 0 || (size_t)len >= ISSUE_PEM)
		return wrong(making, SPOKE_ETOOLARGE, "the certificate is too large");
	memcpy(text, bytes, (size_t)len);
	text[len] = '\0';
	return SPOKE_OK;
}

static int write_texts(struct making *making)
{
	BIO *cert = BIO_new(BIO_s_mem());
	BIO *key = BIO_new(BIO_s_secmem());
	int error = no_memory(making);

	if (cert && key && PEM_write_bio_X509(cert, making->cert) == 1 &&
	    PEM_write_bio_PrivateKey(key, making->key, NULL, NULL, 0, NULL, NULL) == 1) {
		error = take_text(making, cert, making->ret->cert);
		if (error == 0)
			error = take_text(making, key, making->ret->key);
	}
	BIO_free(cert);
	BIO_free(key);
	return error;
}

static int check(struct making *making)
{
	const struct issue_options *options = making->options;
	size_t len = options->name ? strlen(options->name) : 0;

	if (len == 0 || len > COMMON_NAME_MAX)
		return wrong(making, SPOKE_EINVAL, "the name must have 1 to %u bytes",
			     COMMON_NAME_MAX);
	if (options->days > DAYS_MAX)
		return wrong(making, SPOKE_EINVAL, "at most %u days", DAYS_MAX);
	if ((options->ca == NULL) != (options->ca_key == NULL))
		return wrong(making, SPOKE_EINVAL, "an authority needs its key");
	if ((options->ca == NULL) != (options->names == NULL))
		return wrong(making, SPOKE_EINVAL,
			     "names belong to certificates, and not to authorities");
	return SPOKE_OK;
}

int issue_make(const struct spoke_env *env, const struct issue_options *options,
	       struct issued *ret_issued)
{
	struct making making = { .options = options, .ret = ret_issued };
	int error = check(&making);

	ret_issued->cert[0] = '\0';
	ret_issued->key[0] = '\0';
	making.now = (time_t)(env->wall(env->ctx) / UINT64_C(1000000000));
	ERR_clear_error();
	if (error == 0 && options->ca)
		error = read_ca(&making);
	if (error == 0 && options->names)
		error = read_names(&making);
	if (error == 0)
		error = make(&making);
	if (error == 0)
		error = write_texts(&making);
	if (error)
		OPENSSL_cleanse(ret_issued->key, ISSUE_PEM);
	else
		ret_issued->why[0] = '\0';
	GENERAL_NAMES_free(making.names);
	X509_free(making.cert);
	EVP_PKEY_free(making.key);
	X509_free(making.ca);
	EVP_PKEY_free(making.ca_key);
	ERR_clear_error();
	return error;
}

#else

int issue_make(const struct spoke_env *env, const struct issue_options *options,
	       struct issued *ret_issued)
{
	(void)env;
	(void)options;
	ret_issued->cert[0] = '\0';
	ret_issued->key[0] = '\0';
	(void)snprintf(
		ret_issued->why, ISSUE_WHY,
		"tls: not built in; build spoke with OpenSSL 3 (apt-get install libssl-dev)");
	return SPOKE_EUNSUPPORTED;
}

#endif
