/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the addresses to listen at against other keys of [provider]. Pure. */
#ifndef SPOKEI_CLUSTER_CONFIG_LISTEN_H
#define SPOKEI_CLUSTER_CONFIG_LISTEN_H

#include "cluster/config/sheet.h"

/* Checks the addresses of a sheet without errors. Returns 0; EINVAL, with a sentence about
 * *ret_entry; or ENOMEM, also with a sentence. */
SPOKE_MUST_USE int spokei_listen_check_with(const struct spokei_sheet *sheet,
					    const struct spokei_entry **ret_entry,
					    const char **ret_why);

#endif
