/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of a request: memory in which a filter keeps what it knows of the request. It is freed
 * with the request, so a handler on the pool may read it as long as it has the request.
 */
#ifndef SPOKEI_CLUSTER_SERVE_MARK_H
#define SPOKEI_CLUSTER_SERVE_MARK_H

#include <stddef.h>

struct spoke_request;

/* Returns the mark, with the content of the last request that used the same memory; NULL: there is
 * none. Any thread. */
void *spokei_request_mark(const struct spoke_request *request);

/* Returns the mark. The first time it is allocated with `size` bytes, all zero, always the same
 * number; NULL: no memory. */
void *spokei_request_make_mark(const struct spoke_request *seen, size_t size);

#endif
