/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes certificates for trying TLS: an authority, and certificates that it signs. All results are
 * PEM texts in memory. A cluster in production should have its certificates from an authority whose
 * key does not lie beside its programs.
 */
#ifndef COMMAND_ISSUE_H
#define COMMAND_ISSUE_H

#include <spoke/env.h>
#include <spoke/error.h>

#define ISSUE_PEM 8192u /* bytes of a text, with its NUL */
#define ISSUE_WHY 256u

/* Kinds of keys. */
enum issue_key {
	ISSUE_P256, /* ECDSA with P-256, which every TLS library has */
	ISSUE_ED25519,
};

/* A certificate to make. Texts are borrowed for the call. */
struct issue_options {
	const char *name; /* for people: at most 64 bytes */
	/* The names that it bears: "dns:echo.pay.test,uri:spiffe://test/echo,ip:10.0.0.1". NULL for
	 * an authority. */
	const char *names;
	uint32_t days; /* from now, at most 36500; 0: 365, and 3650 for an authority */
	enum issue_key key;
	/* PEM texts of the authority that signs, and of its key. NULL: makes an authority. */
	const char *ca;
	const char *ca_key;
};

/* A certificate and its key. */
struct issued {
	char cert[ISSUE_PEM];
	char key[ISSUE_PEM];
	char why[ISSUE_WHY]; /* after an error: the reason, as a sentence */
};

/*
 * Makes a key, and a certificate that is good for both ends of a connection; it ends at the latest
 * with its authority. Returns 0; EINVAL: the names, the days or the authority; EUNSUPPORTED: the
 * command is built without OpenSSL; ETOOLARGE; ENOMEM. Any thread.
 */
SPOKE_MUST_USE int issue_make(const struct spoke_env *env, const struct issue_options *options,
			      struct issued *ret_issued);

#endif
