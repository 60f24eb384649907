/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the status and the metrics, for one another: status.c has those of the engine and
 * the order of all, status_members.c those of its members, methods.c those of methods.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_STATUS_PARTS_H
#define SPOKEI_CLUSTER_ADMIN_STATUS_PARTS_H

#include "cluster/admin/facts.h"
#include "cluster/admin/status.h"

#define SPOKEI_STATUS_SERVICES 25u /* of a provider, at most */

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

/* Writes the member `name`: an object with the percentiles of times. */
void spokei_status_times(struct spokei_json *json, const char *name,
			 const struct spoke_histogram *times);

/* Write the members "consumers", "providers", "leases" and "gateways"; "methods". */
void spokei_status_members(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows);
void spokei_status_methods(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows);

/* Write their families. */
void spokei_metrics_members(struct spokei_metrics *metrics, const struct spoke_engine *engine);
void spokei_metrics_methods(struct spokei_metrics *metrics, const struct spoke_engine *engine);

#endif
