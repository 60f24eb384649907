/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the options of gateways. The table of keys has their defaults and limits. */
#ifndef SPOKEI_CLUSTER_CONFIG_COMET_H
#define SPOKEI_CLUSTER_CONFIG_COMET_H

#include <spoke/comet.h>

/* Sets the numbers that are 0 to their defaults, and checks all that have a key. Returns NULL, or
 * the name of the first field that is out of range. */
const char *spokei_config_comet_fill(struct spoke_comet_options *options);

/* Sets the numbers whose keys a reload does not change to those of `old`. */
void spokei_config_comet_keep(struct spoke_comet_options *options,
			      const struct spoke_comet_options *old);

#endif
