/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks texts of options and files that name an address, a host, an admin page or a service.
 * Pure. `*ret_why` explains the error and how to correct it.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_CHECK_H
#define SPOKEI_CLUSTER_CONFIG_CHECK_H

#include "cluster/config/keys.h"
#include "core/base/env.h"

#include <spoke/url.h>

#include <stdbool.h>
#include <string.h>

struct spokei_rules;
struct spokei_wire;

#define SPOKEI_PORT_PRESET 20880

/* Checks an address to listen at: digits or a path. Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_place(const struct spoke_env *env, const struct spoke_url *url,
				      struct spoke_address *ret, const char **ret_why);

/* Returns whether the URL names a socket that a service manager passes: "fd://NAME". */
static inline bool spokei_check_is_passed(const struct spoke_url *url)
{
	return strcmp(url->scheme, "fd") == 0;
}

/* Checks the form of such a URL. Returns NULL if it is valid. */
const char *spokei_check_passed(const struct spoke_url *url);

/* Returns whether the URL of a listen address may contain this parameter. All other settings
 * are options of the provider. */
bool spokei_check_is_place_key(const char *key);

/* How providers of several engines share a listen address. */
enum spokei_sharing {
	SPOKEI_SHARED_NOT,
	SPOKEI_SHARED_TRUE,  /* distributed by the kernel, if it can */
	SPOKEI_SHARED_TURNS, /* connections are dealt out in turn */
};

/* Reads the parameter "shared". Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_shared(const struct spoke_url *url, enum spokei_sharing *ret,
				       const char **ret_why);

/* Whether HTTP clients are served at a listen address. */
enum spokei_http_choice {
	SPOKEI_HTTP_AUTO, /* if it is of this machine only */
	SPOKEI_HTTP_ON,
	SPOKEI_HTTP_OFF,
};

/* Reads the parameter "http". Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_http(const struct spoke_url *url, enum spokei_http_choice *ret,
				     const char **ret_why);

/* Whether connections are TLS. */
enum spokei_tls_mode {
	SPOKEI_TLS_OFF,
	SPOKEI_TLS_ON,
	SPOKEI_TLS_OPTIONAL, /* of a provider: plain connections, too */
};

/* Finds a mode by its name. Returns false if there is none. */
bool spokei_check_tls_mode(const char *text, enum spokei_tls_mode *ret);

/* Reads the parameter "tls". Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_tls(const struct spoke_url *url, bool *ret_says,
				    enum spokei_tls_mode *ret, const char **ret_why);

#define SPOKEI_CHECK_WHY 320u /* bytes of a sentence, with the NUL */

/* Reads the parameters "allow.from" and "deny.from". Returns 0, ENOMEM or EINVAL; the caller frees
 * the rules, which are NULL if there are none. A sentence may be in `why`. */
SPOKE_MUST_USE int spokei_check_rules(const struct spoke_env *env, const struct spoke_url *url,
				      struct spokei_rules **ret_rules, const char **ret_why,
				      char why[SPOKEI_CHECK_WHY]);

/* Reads the parameter "mode": the permission bits of a unix socket, as octal digits. Returns 0 or
 * EINVAL. */
SPOKE_MUST_USE int spokei_check_mode(const struct spoke_url *url, bool *ret_has, uint32_t *ret_mode,
				     const char **ret_why);

/* Checks a list of peers that may connect or call, or of origins. Returns NULL if it is valid, or
 * has no such form; or a sentence, which may be in `why`. */
const char *spokei_check_list(const struct spoke_env *env, enum spokei_key key, const char *value,
			      char why[SPOKEI_CHECK_WHY]);

/* Checks a token, and a value that a provider may have and a consumer may not. Returns NULL or a
 * sentence. */
const char *spokei_check_in_section(enum spokei_section section, enum spokei_key key,
				    const char *value);

/* Checks the URL of an address to listen at, with its scheme and parameters. Returns NULL if it is
 * valid; or a sentence, which may be in `why`. */
const char *spokei_check_listen(const struct spoke_env *env, const struct spoke_url *url,
				char why[SPOKEI_CHECK_WHY]);

/* Checks a host to publish, which must be nothing but a host; IPv6 with or without brackets.
 * Returns 0, EINVAL or ENOMEM. */
SPOKE_MUST_USE int spokei_check_advertised(const struct spoke_env *env, const char *host,
					   const char **ret_why);

/* Checks the address of an admin page. Returns 0 or EINVAL. */
SPOKE_MUST_USE int spokei_check_admin(const struct spoke_env *env, const char *listen,
				      const char **ret_why);

/* Returns whether a value of the key "token" asks for a random token, or for none. */
bool spokei_check_is_random(const char *tokens);
bool spokei_check_is_none(const char *tokens);

/* Checks such a value. Returns NULL if it is valid, or why it is not, without a part of it. */
const char *spokei_check_tokens(const char *tokens);

/* Checks the name of a service or method in a section's heading. Returns NULL if it is valid. */
const char *spokei_check_name(const char *name);

/* Returns the wire of a URL's scheme; NULL: unknown. Without a scheme, and with tcp, it is dubbo.
 */
const struct spokei_wire *spokei_check_wire(const char *scheme);

/* Returns whether the host is a wildcard address. */
bool spokei_check_is_any(const char *host);

/* Returns why there is no registry for this URL; NULL: there is. */
const char *spokei_check_registry(const struct spoke_url *url);

#endif
