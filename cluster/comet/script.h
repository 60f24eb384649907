/* SPDX-License-Identifier: Apache-2.0 */
/* The script for pages, which the build embeds from spoke.js. */
#ifndef SPOKEI_CLUSTER_COMET_SCRIPT_H
#define SPOKEI_CLUSTER_COMET_SCRIPT_H

#include <stddef.h>

extern const unsigned char spokei_comet_script[];
extern const size_t spokei_comet_script_len;

#endif
