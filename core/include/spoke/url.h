/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs name services, sockets and registries.
 *
 *     dubbo://127.0.0.1:20880/demo.EchoService?timeout=500ms     a service at a host
 *     msgpack-rpc://user:secret@[::1]:6666                       IPv6 in brackets
 *     unix:/run/echo.sock                                        a unix socket
 *     shm:/run/echo.sock                                         memory shared over such a socket
 *     dubbo+unix:/run/echo.sock?interface=demo.EchoService       the same, with its protocol
 *     file:///run/spoke/providers                                a file
 *
 * Wherever "unix" stands, "shm" may stand. The path of a URL with a unix socket is the socket's, so
 * the parameter "interface" names the service, like in Dubbo. Only a file has no host; its URL is
 * also accepted without the two slashes. The field `path` never contains the first slash. A URL is
 * parsed once, into one block of memory; its fields are decoded strings.
 *
 * The parser follows RFC 3986: special characters are written with percent signs. Deviations:
 * spaces are accepted in parameters, "+" is a plus sign, and fragments, control bytes, encoded NULs
 * and repeated keys are errors. A printed URL parses to the same URL.
 */
#ifndef SPOKE_URL_H
#define SPOKE_URL_H

#include <spoke/error.h>

SPOKE_BEGIN_DECLS

struct spoke_env;

#define SPOKE_URL_MAX 65536u          /* bytes of a URL, parsed or printed */
#define SPOKE_URL_HOST_MAX 255u       /* bytes of a host */
#define SPOKE_URL_PARAMETERS_MAX 256u /* parameters of a URL */
#define SPOKE_URL_ERROR_MAX 256u      /* bytes of a sentence, with the NUL */

/* One parameter, e.g. timeout=500ms. */
struct spoke_url_parameter {
	const char *key;   /* not empty, unique in its URL */
	const char *value; /* "" if the URL has none */
};

/*
 * A parsed URL. The strings belong to the URL, are read-only and live until spoke_url_fini(). A
 * zero-initialised URL is empty and may be passed to spoke_url_fini().
 */
struct spoke_url {
	const char *scheme;   /* in lower case, e.g. "dubbo"; "" for a plain "unix:/run/x.sock" */
	const char *user;     /* NULL: not given */
	const char *password; /* NULL: not given; otherwise `user` is not NULL, but may be "" */
	/* In lower case, IPv6 without brackets. "": the URL of a file; NULL: a unix socket. */
	const char *host;
	const char *path;   /* without the first slash, e.g. "demo.EchoService"; may be "" */
	const char *socket; /* path of the unix socket, e.g. "/run/x.sock"; NULL: a host */
	int port;           /* 0 to 65535; -1: not given */
	unsigned parameter_count;
	const struct spoke_url_parameter *parameters; /* in their order in the text */
	const struct spoke_env *env;                  /* borrowed; allocated the memory */
	void *memory;                                 /* the block that contains all strings */
	size_t memory_size;
	bool shm; /* `socket` is one over which memory is shared: shm:/run/x.sock */
};

/* The error in a text, and its position. */
struct spoke_url_error {
	size_t at;                      /* offset in bytes */
	char text[SPOKE_URL_ERROR_MAX]; /* a sentence; quotes only keys, escaped */
};

/*
 * Parses a URL. `text` is borrowed for the call and need not end with a NUL. `env` is borrowed
 * until spoke_url_fini(); only its resize() is used. `error` may be NULL. Returns 0, EINVAL (no env
 * or text), ESYNTAX, ERANGE (a port above 65535), ETOOLARGE (one of the limits above) or ENOMEM.
 * After an error *ret_url is unchanged, and *error, if given, is filled.
 */
SPOKE_API SPOKE_MUST_USE int spoke_url_parse(const struct spoke_env *env, const char *text,
					     size_t len, struct spoke_url *ret_url,
					     struct spoke_url_error *error);

/* Frees the memory of a URL, which is empty afterwards. */
SPOKE_API void spoke_url_fini(struct spoke_url *url);

/* Returns the value of a parameter; NULL if there is none with this key. */
SPOKE_API const char *spoke_url_get(const struct spoke_url *url, const char *key);

/* Forms in which a URL is printed. */
enum spoke_url_form {
	SPOKE_URL_WHOLE = 0, /* parses to the same URL */
	/* For people and logs: "***" replaces a password, and the value of each parameter whose
	 * name ends, in any case, with "token", "password", "passwd", "secret", "secretAccessKey",
	 * "signature" or "authorization". */
	SPOKE_URL_DISPLAY = 1,
};

/*
 * Prints the canonical form: lower case if case has no meaning, percent signs only if needed. Like
 * snprintf(): writes at most `size` bytes, the last of them a NUL, and returns the length of the
 * whole text. `out` may be NULL if size is 0.
 */
SPOKE_API size_t spoke_url_print(const struct spoke_url *url, enum spoke_url_form form, char *out,
				 size_t size);

/*
 * Encodes bytes as one component of a URL, e.g. a whole URL as the name of a ZooKeeper node. Does
 * the same as Java's URLEncoder: letters, digits and ".-*_" stay, a space becomes "+", all others
 * %XX. Like snprintf(): see spoke_url_print().
 */
SPOKE_API size_t spoke_url_encode(const void *bytes, size_t len, char *out, size_t size);

/*
 * Decodes a component: "+" is a space, %XX a byte. The result ends with a NUL; its length, at most
 * `len`, is written to *ret_len unless that is NULL. Returns 0, ESYNTAX (a percent sign without two
 * hex digits, a control byte, an encoded NUL) or ETOOLARGE (`size` is too small). After an error
 * the content of `out` is undefined.
 */
SPOKE_API SPOKE_MUST_USE int spoke_url_decode(const char *text, size_t len, char *out, size_t size,
					      size_t *ret_len);

SPOKE_END_DECLS

#endif
