/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a request without parsing it. Pure; any thread. */
#ifndef SPOKEI_TRANSPORT_HTTP_SKIM_H
#define SPOKEI_TRANSPORT_HTTP_SKIM_H

#include <stddef.h>

/*
 * Finds the end of the first request quickly, if all of it is in these bytes and its body has a
 * known length. Checks nothing: spokei_http_read_head() finds the same end, or an error. Returns
 * the length of the request; 0: only spokei_http_read_head() can tell.
 */
size_t spokei_http_skim(const void *bytes, size_t len);

#endif
