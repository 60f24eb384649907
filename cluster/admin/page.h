/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTML page, which the build embeds from page.html. Each response replaces its marks, e.g.
 * "@NAME@".
 */
#ifndef SPOKEI_CLUSTER_ADMIN_PAGE_H
#define SPOKEI_CLUSTER_ADMIN_PAGE_H

#include <stddef.h>

extern const unsigned char spokei_page[];
extern const size_t spokei_page_len;

#endif
