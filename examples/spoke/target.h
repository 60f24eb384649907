/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the target of a verb: an endpoint ("dubbo://h:p", "msgpack-rpc://h:p", "tcp://h:p", "h:p",
 * "unix:/path") or a registry ("file:///path", "zookeeper://h:p", "static://h:p";
 * "consumer://any/service": the registry of a configuration file), and a method, e.g.
 * "demo.EchoService.echo".
 */
#ifndef COMMAND_TARGET_H
#define COMMAND_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#define TARGET_NAME_MAX 512u

struct target {
	char *url;                     /* of the consumer; the target's memory */
	const char *registry;          /* NULL: the URL names the endpoint */
	char service[TARGET_NAME_MAX]; /* "": not given */
	char method[TARGET_NAME_MAX];  /* "": not given */
	bool listed; /* a registry, possibly that of a file, lists the endpoints */
	bool mprpc;  /* the wire is MessagePack-RPC */
};

/*
 * Parses a target. `what` is NULL (no method), a method or "service.method"; `wire` NULL: the wire
 * of the URL, else "dubbo". Returns VERB_OK, or prints an error and returns VERB_USAGE. Borrows
 * `place`. Undo with target_fini().
 */
int target_read(struct target *target, const char *verb, const char *place, const char *what,
		const char *wire);

/* Does the URL contain a service? */
bool target_has_service(const struct target *target);

/* Adds a parameter to the URL. Returns false if out of memory. */
bool target_set(struct target *target, const char *key, const char *value);

void target_fini(struct target *target);

/* Does the place begin with a scheme? A host and a port may stand without one. */
bool target_has_scheme(const char *place);

/* Is it the URL of a registry? */
bool target_is_registry(const char *place);

#endif
