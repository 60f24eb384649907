/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes certificates for trying TLS: an authority, and certificates that it signs. All results are
 * PEM texts in memory. A cluster in production should have its certificates from an authority whose
 * key does not lie beside its programs.
 */
#ifndef SPOKE_ISSUE_H
#define SPOKE_ISSUE_H

#include <spoke/env.h>
#include <spoke/error.h>

SPOKE_BEGIN_DECLS

#define SPOKE_ISSUE_PEM 8192u /* bytes of a text, with its NUL */
#define SPOKE_ISSUE_WHY 256u

/* Kinds of keys. */
enum spoke_issue_key {
	SPOKE_ISSUE_P256, /* ECDSA with P-256, which every TLS library has */
	SPOKE_ISSUE_ED25519,
};

/* A certificate to make. Texts are borrowed for the call. */
struct spoke_issue_options {
	const char *name; /* for people: at most 64 bytes */
	/* The names that it bears: "dns:echo.pay.test,uri:spiffe://test/echo,ip:10.0.0.1". NULL for
	 * an authority. */
	const char *names;
	uint32_t days; /* from now, at most 36500; 0: 365, and 3650 for an authority */
	enum spoke_issue_key key;
	/* PEM texts of the authority that signs, and of its key. NULL: makes an authority. */
	const char *ca;
	const char *ca_key;
};

/* A certificate and its key. */
struct spoke_issued {
	char cert[SPOKE_ISSUE_PEM];
	char key[SPOKE_ISSUE_PEM];
	char why[SPOKE_ISSUE_WHY]; /* after an error: the reason, as a sentence */
};

/*
 * Makes a key, and a certificate that is good for both ends of a connection; it ends at the latest
 * with its authority. Returns 0; EINVAL: the names, the days or the authority; EUNSUPPORTED: spoke
 * is built without TLS; ETOOLARGE; ENOMEM. Any thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_issue(const struct spoke_env *env,
					 const struct spoke_issue_options *options,
					 struct spoke_issued *ret_issued);

SPOKE_END_DECLS

#endif
