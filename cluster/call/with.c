/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with arguments made in place: they are packed on the stack, for the time of the call. */
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/limits.h"
#include "cluster/call/method.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/value/args.h"

#include <spoke/consumer.h>

int spoke_call_args(struct spoke_method *method, struct spoke_args args,
		    const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
		    struct spoke_call *ret_call)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error)
		error = spokei_limits_refuse(method, error, 0);
	else
		error = spoke_call(method, packed.values, options, done, arg, ret_call);
	spokei_packed_free(&packed);
	return error;
}
