/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of TLS that several verbs have. A verb has their numbers in its own enum, in this
 * order, and their rows in its table:
 *
 *     enum { TIMEOUT, TLS, CERT, KEY, CA, PEER };
 *     [TLS] = SECURE_TLS, [CERT] = SECURE_CERT, [KEY] = SECURE_KEY, [CA] = SECURE_CA,
 *     [PEER] = SECURE_PEER,
 *
 *     case TLS ... : return secure_take(&secure, row - TLS, options);
 */
#ifndef COMMAND_SECURE_H
#define COMMAND_SECURE_H

#include "examples/spoke/options.h"

#include <spoke/config.h>
#include <spoke/tls.h>

/* Ends the sentence of --token. */
#define SECURE_SEEN "seen by other users in the list of processes, unlike --token-file"

#define SECURE_PEERS 1024u /* bytes of the list of names */

/* clang-format off */
#define SECURE_TLS { "tls", 0, NULL, "use TLS; the four options below imply it" }
#define SECURE_CERT { "cert", 0, "FILE", "certificate to show, with its chain, as PEM" }
#define SECURE_KEY { "key", 0, "FILE", "key of --cert, as PEM, without a password" }
#define SECURE_CA { "ca", 0, "FILE", "authorities that sign certificates of providers (default: the system's)" }
#define SECURE_PEER { "peer", 0, "NAME", "name in the provider's certificate: dns:HOST, uri:URI or ip:ADDRESS; may be repeated (default: host of the URL)" }
/* clang-format on */

struct secure {
	struct spoke_tls_options options;
	bool used;
	char peers[SECURE_PEERS];
};

/* Takes the option `which`: 0 of --tls to 4 of --peer. Returns false after printing an error. */
bool secure_take(struct secure *secure, int which, const struct options *options);

/* Returns the options of TLS; NULL: none was given. */
const struct spoke_tls_options *secure_options(const struct secure *secure);

#endif
