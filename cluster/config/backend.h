/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the URL of the backend that gets the texts of pages, from the section [comet]. Pure. */
#ifndef SPOKEI_CLUSTER_CONFIG_BACKEND_H
#define SPOKEI_CLUSTER_CONFIG_BACKEND_H

#include "cluster/config/sheet.h"

#include <spoke/url.h>

/* Returns NULL, or a sentence. */
const char *spokei_backend_check(const struct spoke_url *url);

/* Checks the URL against [registry], in a sheet without errors. Returns NULL, or a sentence about
 * *ret_entry. */
const char *spokei_backend_check_with(const struct spokei_sheet *sheet,
				      const struct spokei_entry **ret_entry);

#endif
