/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the metrics have of each other: metrics_whole.c has the format and the engine,
 * metrics_cluster.c consumers and providers.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_METRICS_PARTS_H
#define SPOKEI_CLUSTER_ADMIN_METRICS_PARTS_H

#include "cluster/admin/lines.h"
#include "cluster/admin/members.h"
#include "cluster/admin/status.h"
#include "core/text/utf8.h"

#include <inttypes.h>

#define SPOKEI_METRICS_LABEL 1024u /* bytes of a label's value; longer ones are cut */
#define SPOKEI_METRICS_ROWS 400u   /* endpoints, consumers and providers of a family, at most */

/* Begins a family; `type` as "counter". */
void spokei_metrics_family(struct spokei_lines *lines, const char *name, const char *type,
			   const char *help);

/* A label, and what stands before it: "{" or ",". */
void spokei_metrics_label(struct spokei_lines *lines, const char *before, const char *name,
			  const char *value);

/* Ends a line with a time. */
void spokei_metrics_seconds(struct spokei_lines *lines, uint64_t ns);

void spokei_metrics_consumers(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_endpoints(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_providers(struct spokei_lines *lines, const struct spoke_engine *engine);

#endif
