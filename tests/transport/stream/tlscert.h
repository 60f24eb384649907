/* SPDX-License-Identifier: Apache-2.0 */
/* Makes certificates, keys and lists of revoked certificates for tests, in memory. */
#ifndef TESTS_TRANSPORT_STREAM_TLSCERT_H
#define TESTS_TRANSPORT_STREAM_TLSCERT_H

#include <spoke/value.h>

#include <openssl/x509.h>

#include <stdbool.h>
#include <stdint.h>

#define TLSCERT_PEM 16384u /* bytes of a text */

struct tlscert {
	X509 *cert;
	EVP_PKEY *key;
};

/* All zero: signed by itself, good until 2100, for both sides, Ed25519. */
struct tlscert_wish {
	const char *subject;          /* its common name; NULL: none */
	const char *names;            /* as in openssl.cnf, "DNS:a.test,IP:10.0.0.1"; NULL: none */
	struct spoke_span dns;        /* one DNS name with these bytes instead */
	const char *usage;            /* as in openssl.cnf, "serverAuth"; NULL: both */
	const struct tlscert *issuer; /* NULL: itself */
	int64_t from_s;               /* since 1970 */
	int64_t until_s;              /* 0: 2100 */
	bool authority;
	bool p256;
};

struct tlscert tlscert_make(const struct tlscert_wish *wish);
void tlscert_free(struct tlscert *cert);

/* Write PEM: a chain of `count` certificates, a key, a list of the authority's revoked one (NULL:
 * an empty list), which is good until a time since 1970 (0: 2100). `text` has TLSCERT_PEM bytes. */
void tlscert_chain(const struct tlscert *const *certs, size_t count, char *text);
void tlscert_key(const struct tlscert *cert, char *text);
void tlscert_crl(const struct tlscert *authority, const struct tlscert *revoked, int64_t until_s,
		 char *text);

#endif
