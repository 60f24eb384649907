/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers, providers, leases and gateways of an engine, in the order in which they were made,
 * and their part of the status and the metrics. Results are valid until the engine runs on; on its
 * thread.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_MEMBERS_H
#define SPOKEI_CLUSTER_ADMIN_MEMBERS_H

#include "cluster/admin/facts.h"
#include "cluster/admin/status.h"

struct spoke_engine;
struct spokei_member;

/* Returns the member of a kind after `before`, or the first one for NULL; NULL: there is none. */
struct spokei_member *spokei_members_next(const struct spoke_engine *engine, const char *kind,
					  const struct spokei_member *before);

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

/* Writes the members "consumers", "providers", "leases" and "gateways" of the status. */
void spokei_members_show(struct spokei_json *json, const struct spoke_engine *engine,
			 struct spokei_rows *rows);

/* Writes their families of the metrics. */
void spokei_members_families(struct spokei_metrics *metrics, const struct spoke_engine *engine);

#endif
