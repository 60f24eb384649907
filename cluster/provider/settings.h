/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a provider. Of its sources the later wins: defaults, the file, the options.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_SETTINGS_H
#define SPOKEI_CLUSTER_PROVIDER_SETTINGS_H

#include "cluster/config/owners.h"
#include "cluster/config/settings.h"
#include "transport/conn/link.h"
#include "transport/listen/quota.h"

struct spokei_route;

struct spokei_provider_settings {
	struct spokei_settings keys;
	struct spokei_link_limits limits;
	struct spokei_quota_limits connections;
	struct spokei_journal_settings journal;
	bool local_path; /* a path is published with the ports */
};

/* Reads the values of a method: those of its handler, else of the file. */
void spokei_settings_route(const struct spokei_settings *settings, const struct spokei_route *route,
			   struct spokei_key_values *ret);

#endif
