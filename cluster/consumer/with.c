/* SPDX-License-Identifier: Apache-2.0 */
/* Futures with arguments made in place: they are packed on the stack of the calling thread. */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "core/engine/engine.h"
#include "core/value/builder.h"

#include <spoke/future.h>

int spoke_future_start_with(struct spoke_method *method, struct spoke_args args,
			    struct spoke_future **ret_future)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error == SPOKE_OK)
		error = spoke_future_start(method, packed.values, NULL, ret_future);
	spokei_packed_free(&packed);
	return error;
}

int spoke_call_wait_with(struct spoke_method *method, struct spoke_args args,
			 struct spoke_future **ret_future)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error == SPOKE_OK)
		error = spoke_call_wait(method, packed.values, NULL, ret_future);
	else if (ret_future)
		*ret_future = NULL;
	spokei_packed_free(&packed);
	return error;
}
