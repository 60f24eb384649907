/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of consumers and providers, for the status and the metrics. */
#ifndef SPOKEI_CLUSTER_ADMIN_SECURE_H
#define SPOKEI_CLUSTER_ADMIN_SECURE_H

#include <stdbool.h>
#include <stdint.h>

struct spoke_engine;
struct spokei_json;
struct spokei_lines;
struct spokei_tls;

/* Writes the days until the certificate of a consumer or a provider ends, if it has one; 0: it has
 * ended, or ends today. */
void spokei_status_certificate(struct spokei_json *json, const struct spoke_engine *engine,
			       const struct spokei_tls *tls);

/* Writes the families of TLS. */
void spokei_metrics_tls(struct spokei_lines *lines, const struct spoke_engine *engine);

#endif
