/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests: see tlscert.h. */
#include "tests/transport/stream/tlscert.h"

#include "timer/base.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string.h>
#include <time.h>

#define YEAR_2100 INT64_C(4102444800)

static EVP_PKEY *make_key(bool p256)
{
	EVP_PKEY *key = p256 ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256")
			     : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

	SPOKE_ASSERT(key);
	return key;
}

static const EVP_MD *digest_of(EVP_PKEY *key)
{
	return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	SPOKE_ASSERT(extension && X509_add_ext(cert, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

/* A name may have bytes that no text of openssl.cnf has. */
static void add_dns(X509 *cert, struct spoke_span bytes)
{
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();

	SPOKE_ASSERT(names && name && text);
	SPOKE_ASSERT(ASN1_STRING_set(text, bytes.data, (int)bytes.len) == 1);
	GENERAL_NAME_set0_value(name, GEN_DNS, text);
	SPOKE_ASSERT(sk_GENERAL_NAME_push(names, name) == 1);
	SPOKE_ASSERT(X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, 0) == 1);
	GENERAL_NAMES_free(names);
}

static void set_subject(X509 *cert, const char *text)
{
	X509_NAME *name = X509_get_subject_name(cert);

	SPOKE_ASSERT(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
						(const unsigned char *)text, -1, -1, 0) == 1);
}

static void set_dates(X509 *cert, const struct tlscert_wish *wish)
{
	int64_t until_s = wish->until_s ? wish->until_s : YEAR_2100;

	SPOKE_ASSERT(ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)wish->from_s));
	SPOKE_ASSERT(ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)until_s));
}

struct tlscert tlscert_make(const struct tlscert_wish *wish)
{
	static long serial;
	struct tlscert made = { X509_new(), make_key(wish->p256) };
	const struct tlscert *issuer = wish->issuer ? wish->issuer : &made;

	SPOKE_ASSERT(made.cert && X509_set_version(made.cert, 2) == 1);
	SPOKE_ASSERT(ASN1_INTEGER_set(X509_get_serialNumber(made.cert), ++serial) == 1);
	SPOKE_ASSERT(X509_set_pubkey(made.cert, made.key) == 1);
	if (wish->subject)
		set_subject(made.cert, wish->subject);
	SPOKE_ASSERT(X509_set_issuer_name(made.cert, X509_get_subject_name(issuer->cert)) == 1);
	set_dates(made.cert, wish);
	add_extension(made.cert, issuer->cert, NID_basic_constraints,
		      wish->authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
	add_extension(made.cert, issuer->cert, NID_key_usage,
		      wish->authority ? "critical,keyCertSign,cRLSign" : "digitalSignature");
	if (!wish->authority)
		add_extension(made.cert, issuer->cert, NID_ext_key_usage,
			      wish->usage ? wish->usage : "serverAuth,clientAuth");
	if (wish->names)
		add_extension(made.cert, issuer->cert, NID_subject_alt_name, wish->names);
	if (wish->dns.data)
		add_dns(made.cert, wish->dns);
	SPOKE_ASSERT(X509_sign(made.cert, issuer->key, digest_of(issuer->key)) > 0);
	return made;
}

void tlscert_free(struct tlscert *cert)
{
	X509_free(cert->cert);
	EVP_PKEY_free(cert->key);
	*cert = (struct tlscert){ NULL, NULL };
}

/* Ends the writing to a BIO. */
static void take_text(BIO *bio, char *text)
{
	int len = BIO_read(bio, text, TLSCERT_PEM - 1);

	SPOKE_ASSERT(len > 0 && (unsigned)len < TLSCERT_PEM - 1);
	text[len] = '\0';
	BIO_free(bio);
}

void tlscert_chain(const struct tlscert *const *certs, size_t count, char *text)
{
	BIO *bio = BIO_new(BIO_s_mem());

	for (size_t i = 0; i < count; i++)
		SPOKE_ASSERT(PEM_write_bio_X509(bio, certs[i]->cert) == 1);
	take_text(bio, text);
}

void tlscert_key(const struct tlscert *cert, char *text)
{
	BIO *bio = BIO_new(BIO_s_mem());

	SPOKE_ASSERT(PEM_write_bio_PrivateKey(bio, cert->key, NULL, NULL, 0, NULL, NULL) == 1);
	take_text(bio, text);
}

static void revoke(X509_CRL *list, const struct tlscert *cert, ASN1_TIME *when)
{
	X509_REVOKED *entry = X509_REVOKED_new();

	SPOKE_ASSERT(entry);
	SPOKE_ASSERT(X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(cert->cert)) == 1);
	SPOKE_ASSERT(X509_REVOKED_set_revocationDate(entry, when) == 1);
	SPOKE_ASSERT(X509_CRL_add0_revoked(list, entry) == 1);
}

void tlscert_crl(const struct tlscert *authority, const struct tlscert *revoked, int64_t until_s,
		 char *text)
{
	X509_CRL *list = X509_CRL_new();
	BIO *bio = BIO_new(BIO_s_mem());
	ASN1_TIME *from = ASN1_TIME_set(NULL, 1);
	ASN1_TIME *until = ASN1_TIME_set(NULL, (time_t)(until_s ? until_s : YEAR_2100));

	SPOKE_ASSERT(list && bio && from && until && X509_CRL_set_version(list, 1) == 1);
	SPOKE_ASSERT(X509_CRL_set_issuer_name(list, X509_get_subject_name(authority->cert)) == 1);
	SPOKE_ASSERT(X509_CRL_set1_lastUpdate(list, from) == 1);
	SPOKE_ASSERT(X509_CRL_set1_nextUpdate(list, until) == 1);
	if (revoked)
		revoke(list, revoked, from);
	SPOKE_ASSERT(X509_CRL_sign(list, authority->key, digest_of(authority->key)) > 0);
	SPOKE_ASSERT(PEM_write_bio_X509_CRL(bio, list) == 1);
	ASN1_TIME_free(from);
	ASN1_TIME_free(until);
	X509_CRL_free(list);
	take_text(bio, text);
}
