/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the status, for one another: status_whole.c writes the object, with the wheel
 * by status_wheel.c, consumers and providers by status_cluster.c, leases by leases.c, and
 * methods by methods.c.
 * status_text.c writes all of it as lines of text.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_STATUS_PARTS_H
#define SPOKEI_CLUSTER_ADMIN_STATUS_PARTS_H

#include "cluster/admin/status.h"
#include "core/json/document.h"

#define SPOKEI_STATUS_SERVICES 25u /* of a provider, at most */

struct spoke_comet;
struct spoke_leases;
struct spoke_peer_info;
struct spokei_lines;
struct spokei_service;

/* Rows that may still be written, of all lists together. */
struct spokei_rows {
	size_t left;
};

/* Takes rows for a list; returns how many of `count` it may have. */
static inline size_t spokei_rows_take(struct spokei_rows *rows, size_t count)
{
	size_t most = rows->left < SPOKEI_STATUS_ROWS ? rows->left : SPOKEI_STATUS_ROWS;
	size_t taken = count < most ? count : most;

	rows->left -= taken;
	return taken;
}

/* Write the members "wheel", "consumers", "providers", "leases", "gateways" and "methods". */
void spokei_status_wheel(struct spokei_json *json, const struct spoke_engine *engine);
void spokei_status_consumers(struct spokei_json *json, const struct spoke_engine *engine,
			     struct spokei_rows *rows);
void spokei_status_providers(struct spokei_json *json, const struct spoke_engine *engine,
			     struct spokei_rows *rows);
void spokei_status_leases(struct spokei_json *json, const struct spoke_engine *engine,
			  struct spokei_rows *rows);
void spokei_status_comets(struct spokei_json *json, const struct spoke_engine *engine,
			  struct spokei_rows *rows);
void spokei_status_methods(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows);

/* Writes the member "slow". */
void spokei_status_slow(struct spokei_json *json, const struct spoke_engine *engine);

/* Writes the figures of methods as lines of text. */
void spokei_status_put_methods(struct spokei_lines *lines, const struct spoke_engine *engine,
			       struct spokei_rows *rows);

/* Writes leases as lines of text. */
void spokei_status_put_leases(struct spokei_lines *lines, const struct spoke_leases *leases,
			      struct spokei_rows *rows);

/* Writes a gateway for browsers as lines of text. */
void spokei_status_put_comet(struct spokei_lines *lines, const struct spoke_comet *comet);

/* Returns the state of a provider's connection, e.g. "ready". */
const char *spokei_status_peer_state(const struct spoke_peer_info *info);

/* Prints a service as Dubbo does: "group/name:version". SPOKEI_STATUS_SERVICE bytes, for which
 * cluster/serve/routes.h is needed. */
#define SPOKEI_STATUS_SERVICE (SPOKEI_SERVICE_KEY_MAX + 3)
void spokei_status_service(const struct spokei_service *service, char *text);

/* Returns the number of the first event to show. */
uint64_t spokei_status_first_event(const struct spoke_engine *engine,
				   const struct spokei_status_of *of);

#endif
