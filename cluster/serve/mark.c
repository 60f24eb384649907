/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a request. Filters see requests as const; the mark is theirs. */
#include "cluster/serve/mark.h"

#include "cluster/serve/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

void *spokei_request_mark(const struct spoke_request *request)
{
	return request->mark;
}

void *spokei_request_make_mark(const struct spoke_request *seen, size_t size)
{
	struct spoke_request *request = seen->self;

	if (request->mark == NULL) {
		request->mark = spokei_alloc(request->engine->env, 1, size);
		request->mark_size = size;
	}
	return request->mark;
}
