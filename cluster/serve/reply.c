/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests with values that are made in place. */
#include "cluster/serve/parts.h"

#include "core/engine/engine.h"
#include "core/value/args.h"

void spoke_reply_arg(struct spoke_request *request, struct spoke_arg value)
{
	const struct spoke_args args = { &value, 1 };
	struct spokei_packed packed;
	int error = spokei_args_pack(request->engine->env, args, &packed);

	if (error)
		spokei_request_unsendable(request, error);
	else
		spoke_reply(request, spokei_packed_value(&packed));
	spokei_packed_free(&packed);
}
