/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of /metrics, for one another: metrics_format.c has the text format,
 * metrics_cluster.c the families of consumers and providers, leases.c those of leases, comets.c
 * those of gateways, methods.c those of methods, metrics_whole.c those of the engine.
 * Consumers and providers are labelled with their number on the engine, from 1 on, because their
 * names may repeat.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_METRICS_H
#define SPOKEI_CLUSTER_ADMIN_METRICS_H

#include "cluster/admin/lines.h"

#include <inttypes.h>

#define SPOKEI_METRICS_LABEL 1024u /* bytes of a label's value; longer ones are cut */
#define SPOKEI_METRICS_ROWS 400u   /* consumers, providers or endpoints of a family, at most */

struct spoke_engine;
struct spoke_histogram;

/* The labels of a histogram. */
struct spokei_metrics_of {
	const char *service;
	const char *method;
};

/* Begins a family; `type` is e.g. "counter". */
void spokei_metrics_family(struct spokei_lines *lines, const char *name, const char *type,
			   const char *help);

/* Writes a label after `before`, which is "{" or ",". */
void spokei_metrics_label(struct spokei_lines *lines, const char *before, const char *name,
			  const char *value);

/* Ends a line with a time. */
void spokei_metrics_seconds(struct spokei_lines *lines, uint64_t ns);

/* Writes the lines of a histogram of times. `of`: NULL for no labels. */
void spokei_metrics_histogram(struct spokei_lines *lines, const char *name,
			      const struct spokei_metrics_of *of,
			      const struct spoke_histogram *histogram);

/* Write the families of all consumers, endpoints, providers, leases, gateways and methods. */
void spokei_metrics_consumers(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_endpoints(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_providers(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_leases(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_comets(struct spokei_lines *lines, const struct spoke_engine *engine);
void spokei_metrics_methods(struct spokei_lines *lines, const struct spoke_engine *engine);

#endif
