/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page, as the build embeds it from page.html: with marks of the form "@NAME@" where an answer
 * puts what is its own.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_PAGE_H
#define SPOKEI_CLUSTER_ADMIN_PAGE_H

#include <stddef.h>

extern const unsigned char spokei_page[];
extern const size_t spokei_page_len;

#endif
