/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances, by which programs of Dubbo 3 are found: a registry has one for each application and
 * address, with the revision of its metadata, which list the services. Here an instance is a URL
 * whose parameters are those of the instance, e.g.
 * "dubbo://10.0.0.1:20880?dubbo.metadata.revision=5a0c...&timestamp=1795915350136". Pure; any
 * thread.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_INSTANCE_H
#define SPOKEI_CLUSTER_REGISTRY_INSTANCE_H

#include "core/memory/buffer.h"

#include <spoke/url.h>
#include <spoke/value.h>

#define SPOKEI_INSTANCE_MAX (1000u << 10) /* bytes that fit into a node of ZooKeeper */

/* Parameters of an instance. */
#define SPOKEI_INSTANCE_ENDPOINTS "dubbo.endpoints"
#define SPOKEI_INSTANCE_REVISION "dubbo.metadata.revision"
#define SPOKEI_INSTANCE_STORAGE "dubbo.metadata.storage-type"
#define SPOKEI_INSTANCE_VERSION "meta-v"
#define SPOKEI_INSTANCE_PARAMS "dubbo.metadata-service.url-params"

/* Returns whether a text can be the name of an application: the name of a node everywhere. */
bool spokei_instance_is_name(const char *text, size_t len);

/* Takes the next name from a list of applications, "a, b". Returns false at its end. */
bool spokei_instance_next_name(struct spoke_span *list, struct spoke_span *ret_name);

/* Returns whether providers at these URLs belong to the same instance: they have the same
 * application, host and port. Providers at unix sockets have none. */
bool spokei_instance_same(const struct spoke_url *one, const struct spoke_url *other);

/*
 * Appends the URL of the instance with these services, and its metadata as JSON, each with a NUL.
 * `services` are URLs of providers in the same instance, and get sorted. Returns 0, ENOMEM, or
 * ETOOLARGE (limits of the buffers).
 */
SPOKE_MUST_USE int spokei_instance_describe(const struct spoke_env *env,
					    const struct spoke_url **services, size_t count,
					    struct spokei_buffer *url,
					    struct spokei_buffer *metadata);

/* Appends an instance as Dubbo writes it into ZooKeeper, with a NUL. `now_ms` is the time since
 * 1970. Returns as above. */
SPOKE_MUST_USE int spokei_instance_print(const struct spoke_env *env, const char *application,
					 const struct spoke_url *instance, uint64_t now_ms,
					 struct spokei_buffer *out);

/* --- reading */

#define SPOKEI_INSTANCE_WHY 96u /* bytes of a sentence, with the NUL */

/* Reads JSON, of an instance or of metadata, into a builder, to be undone with spoke_builder_fini()
 * after an error, too; `text` is overwritten. Returns 0; ENOMEM; or ESYNTAX with a sentence in
 * `why`. */
SPOKE_MUST_USE int spokei_instance_parse(const struct spoke_env *env, char *text, size_t len,
					 struct spoke_builder *builder,
					 struct spoke_value *ret_root,
					 char why[SPOKEI_INSTANCE_WHY]);

/*
 * Appends the URL of an instance, with a NUL, that a registry has as JSON; `text` is overwritten.
 * Returns 0; ENOMEM; or ESYNTAX with a sentence in `why`: a text that is no instance, or one that
 * cannot be used, e.g. without a revision.
 */
SPOKE_MUST_USE int spokei_instance_read(const struct spoke_env *env, char *text, size_t len,
					struct spokei_buffer *url, char why[SPOKEI_INSTANCE_WHY]);

/* Appends the URLs of the services in metadata, each with a NUL, and counts them. Their host is
 * 0.0.0.0, and they have no port if the instance has it. Services that cannot be used are skipped
 * and counted as bad. Returns as above. */
SPOKE_MUST_USE int spokei_instance_read_metadata(const struct spoke_env *env,
						 struct spoke_value metadata,
						 struct spokei_buffer *urls, size_t *ret_count,
						 size_t *ret_bad);

/* Appends the names of the services in metadata as JSON, each once and with a NUL. Returns as
 * spokei_instance_parse() does. */
SPOKE_MUST_USE int spokei_instance_list(const struct spoke_env *env, const char *metadata,
					struct spokei_buffer *names);

/* Appends the URL of a service at an instance, with a NUL. Returns 0, ENOMEM, or ETOOLARGE. */
SPOKE_MUST_USE int spokei_instance_join(const struct spoke_url *instance,
					const struct spoke_url *service,
					struct spokei_buffer *urls);

#endif
