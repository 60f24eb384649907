/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a verb talks to: an endpoint ("dubbo://h:p", "msgpack-rpc://h:p", "tcp://h:p", "h:p",
 * "unix:/path"), or a registry where endpoints are listed ("file:///path", "zookeeper://h:p",
 * "static://h:p"; "consumer://any/service": that of a file); and what of it, as
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
	char service[TARGET_NAME_MAX]; /* "": not said */
	char method[TARGET_NAME_MAX];  /* the same */
	bool listed;                   /* a registry, be it of a file, says who they are */
	bool mprpc;                    /* MessagePack-RPC is spoken */
};

/*
 * Reads them. `what` may be NULL (none is wanted), a method or "service.method"; `wire` NULL: what
 * the URL says, else "dubbo". Returns VERB_OK, or VERB_USAGE when it has said what is wrong.
 * Borrows `place`. Undo with target_fini().
 */
int target_read(struct target *target, const char *verb, const char *place, const char *what,
		const char *wire);

/* Does the URL name a service? */
bool target_has_service(const struct target *target);

/* Adds a parameter to the URL. Returns whether there was memory. */
bool target_set(struct target *target, const char *key, const char *value);

void target_fini(struct target *target);

/* Is it the URL of a registry? */
bool target_is_registry(const char *place);

#endif
