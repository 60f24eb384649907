/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of TLS that several verbs have. */
#include "examples/spoke/secure.h"

#include <stdio.h>
#include <string.h>

enum {
	WITH_TLS,
	WITH_CERT,
	WITH_KEY,
	WITH_CA,
	WITH_PEER,
};

/* Adds a name to the list, which commas separate. */
static bool add_peer(struct secure *secure, const struct options *options)
{
	size_t len = strlen(secure->peers);
	int more = snprintf(secure->peers + len, SECURE_PEERS - len, "%s%s", len > 0 ? "," : "",
			    options->value);

	if ((size_t)more >= SECURE_PEERS - len) {
		(void)options_wrong(options, "the names are too long");
		return false;
	}
	secure->options.peers = secure->peers;
	return true;
}

bool secure_take(struct secure *secure, int which, const struct options *options)
{
	secure->used = true;
	if (which != WITH_TLS && !*options->value) {
		(void)options_wrong(options, "must not be empty");
		return false;
	}
	switch (which) {
	case WITH_CERT:
		secure->options.cert = options->value;
		return true;
	case WITH_KEY:
		secure->options.key = options->value;
		return true;
	case WITH_CA:
		secure->options.ca = options->value;
		return true;
	case WITH_PEER:
		return add_peer(secure, options);
	case WITH_TLS:
	default:
		return true;
	}
}

const struct spoke_tls_options *secure_options(const struct secure *secure)
{
	return secure->used ? &secure->options : NULL;
}
