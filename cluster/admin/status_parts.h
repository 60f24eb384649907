/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the status have of each other: status_whole.c puts it together,
 * status_wheel.c shows the wheel, status_cluster.c consumers and providers, and status_text.c all
 * of it as lines.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_STATUS_PARTS_H
#define SPOKEI_CLUSTER_ADMIN_STATUS_PARTS_H

#include "cluster/admin/members.h"
#include "cluster/admin/status.h"
#include "core/text/json.h"

#define SPOKEI_STATUS_SERVICES 25u /* of a provider */

/* How many rows there may still be, of all lists together. */
struct spokei_rows {
	size_t left;
};

/* How many of `count` rows a list may have. */
static inline size_t spokei_rows_take(struct spokei_rows *rows, size_t count)
{
	size_t most = rows->left < SPOKEI_STATUS_ROWS ? rows->left : SPOKEI_STATUS_ROWS;
	size_t taken = count < most ? count : most;

	rows->left -= taken;
	return taken;
}

/* The members "wheel", "consumers" and "providers". */
void spokei_status_wheel(struct spokei_json *json, const struct spoke_engine *engine);
void spokei_status_consumers(struct spokei_json *json, const struct spoke_engine *engine,
			     struct spokei_rows *rows);
void spokei_status_providers(struct spokei_json *json, const struct spoke_engine *engine,
			     struct spokei_rows *rows);

/* The state of a connection that a provider has, as it is shown. */
const char *spokei_status_peer_state(const struct spoke_peer_info *info);

/* A service as Dubbo writes it: "group/name:version". */
#define SPOKEI_STATUS_SERVICE (SPOKEI_SERVICE_KEY_MAX + 3)
void spokei_status_service(const struct spokei_service *service, char text[SPOKEI_STATUS_SERVICE]);

/* How many have a name: have spoken. */
static inline size_t spokei_status_peers(const struct spoke_provider *provider)
{
	return provider->peers.count;
}

/* The lowest number of events that are still shown. */
uint64_t spokei_status_first_event(const struct spoke_engine *engine,
				   const struct spokei_status_of *of);

#endif
