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

static enum spoke_tls_verify verify_of(const char *text)
{
	if (text == NULL)
		return SPOKE_TLS_VERIFY_DEFAULT;
	if (strcmp(text, "required") == 0)
		return SPOKE_TLS_VERIFY_REQUIRED;
	return strcmp(text, "optional") == 0 ? SPOKE_TLS_VERIFY_OPTIONAL : SPOKE_TLS_VERIFY_NONE;
}

/* Returns the keys of [provider]; a page without a certificate has an error of its own. */
static struct spoke_tls_options read_keys(const struct spoke_config *config)
{
	const char *cert = config ? spoke_config_get(config, "provider", "tls.cert") : NULL;
	const char *oldest = config ? spoke_config_get(config, "provider", "tls.min") : NULL;
	struct spoke_tls_options options = { .cert = cert ? cert : "" };

	if (cert == NULL)
		return options;
	options.key = spoke_config_get(config, "provider", "tls.key");
	options.ca = spoke_config_get(config, "provider", "tls.ca");
	options.crl = spoke_config_get(config, "provider", "tls.crl");
	options.verify = verify_of(spoke_config_get(config, "provider", "tls.verify"));
	options.oldest = oldest && strcmp(oldest, "1.2") == 0 ? 12 : 13;
	return options;
}

const char *secure_admin(const char *listen, const struct secure *secure,
			 const struct spoke_config *config, struct spoke_tls_options *ret_options)
{
	static const char scheme[] = "https://";

	*ret_options = (struct spoke_tls_options){ .cert = NULL };
	if (strncmp(listen, scheme, sizeof(scheme) - 1) != 0)
		return listen;
	*ret_options = secure->used && secure->options.cert ? secure->options : read_keys(config);
	return listen + sizeof(scheme) - 1;
}
