/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings in force, with the source of each value, as JSON:
 *
 *     "files": [{ "name", "reloads", "ago_ms" (null: was not reloaded), "error" ("": the last
 *         reload succeeded), "text": its first message, "messages": their number }]
 *     "owners": [{ "kind" ("engine", "consumer", "method", "provider", "service",
 *         "handler", "gateway", "leases"), "name",
 *         "file" ("": none), "settings": [{ "key", "value", "origin" ("default", "provider",
 *         "file", "URL", "code", "rule"), "line" (only of a file) }] }]
 *     "more": owners omitted
 *
 * A method has only the settings that differ from those of its consumer, a service only those that
 * differ from its provider's, and a handler only those that differ from its service's. Secrets
 * appear as "***".
 */
#ifndef SPOKEI_CLUSTER_ADMIN_SETTINGS_H
#define SPOKEI_CLUSTER_ADMIN_SETTINGS_H

#include "core/base/env.h"

struct spoke_engine;
struct spokei_buffer;

#define SPOKEI_SETTINGS_ROWS 4000u   /* settings of all owners */
#define SPOKEI_SETTINGS_OWNERS 1000u /* methods and handlers that are compared */
#define SPOKEI_SETTINGS_FILES 8u

/* Appends the object without a newline. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_admin_settings_write(struct spoke_engine *engine,
					       struct spokei_buffer *out);

#endif
