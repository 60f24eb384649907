/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs: how services, sockets and registries are named.
 *
 *     dubbo://127.0.0.1:20880/demo.EchoService?timeout=500ms     a service at a host
 *     msgpack-rpc://user:secret@[::1]:6666                       IPv6 in brackets
 *     unix:/run/echo.sock                                        a unix socket
 *     dubbo+unix:/run/echo.sock?interface=demo.EchoService       the same, and what is spoken there
 *     file:///run/spoke/providers                                a file
 *
 * A unix socket takes the whole path, so a service there is named by the parameter "interface", as
 * Dubbo does. A file alone has no host, and is also read without the two slashes that come before
 * one; like all that is behind a host its path is told without the first slash. A URL is read once,
 * into one block of memory: its fields are plain strings, decoded.
 *
 * What is read: control bytes nowhere; a space, and percent signs for what has a meaning, as in
 * RFC 3986 (a space is also taken as it is in parameters; "+" is a plus sign); no fragment; no key
 * twice; no encoded NUL. Reading what was printed gives the same URL.
 */
#ifndef SPOKE_URL_H
#define SPOKE_URL_H

#include <spoke/error.h>

SPOKE_BEGIN_DECLS

struct spoke_env;

#define SPOKE_URL_MAX 65536u          /* bytes of a URL, as it is read and as it is printed */
#define SPOKE_URL_HOST_MAX 255u       /* bytes of a host */
#define SPOKE_URL_PARAMETERS_MAX 256u /* parameters of a URL */
#define SPOKE_URL_ERROR_MAX 256u      /* bytes of a sentence, with the NUL */

struct spoke_url_parameter {
	const char *key;   /* not empty; each only once */
	const char *value; /* "" when there was none */
};

/*
 * A URL that was read. The strings belong to it and live until spoke_url_fini(); reading them is
 * all that may be done. Zero-initialised it is empty, and may be given to spoke_url_fini().
 */
struct spoke_url {
	const char *scheme;   /* in small letters, as "dubbo"; "" for a mere "unix:/run/x.sock" */
	const char *user;     /* NULL: not given */
	const char *password; /* NULL: not given; if it is, so is a user, be it "" */
	const char *host;   /* in small letters, IPv6 without brackets; "": that of a file; NULL: a
				unix socket */
	const char *path;   /* without the first slash, as "demo.EchoService"; may be "" */
	const char *socket; /* path of the unix socket, as "/run/x.sock"; NULL: a host */
	int port;           /* 0 to 65535; -1: not given */
	unsigned parameter_count;
	const struct spoke_url_parameter *parameters; /* in their order */
	const struct spoke_env *env;                  /* borrowed; gave the memory */
	void *memory;                                 /* the block that all strings are in */
	size_t memory_size;
};

/* What is wrong with a text, and where. */
struct spoke_url_error {
	size_t at;                      /* bytes before the place */
	char text[SPOKE_URL_ERROR_MAX]; /* a sentence; shows nothing of the text but keys, escaped
					 */
};

/*
 * Reads a URL. `text` is borrowed for the call and need not end with a NUL; `env` is borrowed until
 * spoke_url_fini(), and only its resize() is used. `error` may be NULL. Returns 0, EINVAL (no env
 * or text), ESYNTAX, ERANGE (a port beyond 65535), ETOOLARGE (one of the limits above) or ENOMEM;
 * with an error *ret_url is left alone and *error, if given, is filled.
 */
SPOKE_API SPOKE_MUST_USE int spoke_url_parse(const struct spoke_env *env, const char *text,
					     size_t len, struct spoke_url *ret_url,
					     struct spoke_url_error *error);

/* Gives the memory back; the URL is empty then. */
SPOKE_API void spoke_url_fini(struct spoke_url *url);

/* The value of a parameter, NULL: there is none of this key. */
SPOKE_API const char *spoke_url_get(const struct spoke_url *url, const char *key);

enum spoke_url_form {
	SPOKE_URL_WHOLE = 0,   /* reads as the same URL again */
	SPOKE_URL_DISPLAY = 1, /* for eyes and logs: "***" for a password */
};

/*
 * Prints the canonical form: small letters where case has no meaning, percent signs only where
 * needed. As snprintf(): writes at most `size` bytes, the last of them a NUL, and returns the
 * length of the whole text; `out` may be NULL if size is 0.
 */
SPOKE_API size_t spoke_url_print(const struct spoke_url *url, enum spoke_url_form form, char *out,
				 size_t size);

/*
 * Encodes any bytes as one component of a URL, for example a whole URL as the name of a node in
 * ZooKeeper, exactly as Java's URLEncoder: letters, digits and ".-*_" stay, a space becomes "+",
 * all others %XX. As snprintf(): see spoke_url_print().
 */
SPOKE_API size_t spoke_url_encode(const void *bytes, size_t len, char *out, size_t size);

/*
 * Decodes such a component: "+" is a space, %XX a byte. What is written ends with a NUL, and
 * *ret_len, if not NULL, gets its length, which is never more than `len`. Returns 0, ESYNTAX (a
 * percent sign without two hex digits; a control byte; an encoded NUL) or ETOOLARGE (`size` is too
 * small); with an error the content of `out` is undefined.
 */
SPOKE_API SPOKE_MUST_USE int spoke_url_decode(const char *text, size_t len, char *out, size_t size,
					      size_t *ret_len);

SPOKE_END_DECLS

#endif
