/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that an instance of a provider recognises when they are repeated: after an attempt that may
 * have run they are bound to it, because only that instance can tell.
 */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/endpoints/info.h"
#include "cluster/filter/dedupe_table.h"
#include "core/text/encoding.h"
#include "transport/conn/conn.h"
#include "transport/wire/message.h"

void spokei_repeat_attach(struct spokei_retry_state *retry, const struct spokei_endpoint *endpoint,
			  const struct spokei_conn *conn)
{
	const struct spokei_call_settings *settings = &retry->call->method->settings;

	/* The last attempt may have used a wire with attachments, and this one may not. */
	retry->extended_len = 0;
	if (conn->wire->attachments) {
		spokei_retry_state_attach(retry, conn,
					  retry->args.policy->repeats || endpoint->named ||
						  settings->ids == SPOKEI_IDS_ON);
	} else {
		retry->instance = 0;
	}
}

/* Returns an endpoint with a connection to an instance, or NULL. */
static struct spokei_endpoint *find_instance(const struct spokei_directory *directory,
					     uint32_t instance)
{
	const struct spokei_endpoint *endpoint = NULL;
	struct spokei_conn *conn;

	while (instance && (endpoint = spokei_directory_next(directory, endpoint)) != NULL)
		if (spokei_endpoint_reach(endpoint, instance, &conn) == SPOKE_OK)
			return spokei_directory_find(directory, endpoint->id);
	return NULL;
}

int spokei_repeat_pick(const struct spokei_retry_state *retry,
		       struct spokei_endpoint **ret_endpoint, struct spokei_conn **ret_conn)
{
	const struct spokei_directory *directory = retry->call->method->caller->directory;
	struct spokei_endpoint *endpoint = retry->bound_to
						   ? spokei_directory_find(directory,
									   retry->bound_to)
						   : find_instance(directory, retry->instance);
	int error;

	if (endpoint == NULL)
		return SPOKE_ENOPROVIDER;
	error = spokei_endpoint_reach(endpoint, retry->instance, ret_conn);
	if (error)
		return error;
	if (endpoint->actives >= directory->settings.actives_max)
		return SPOKE_EUNAVAILABLE;
	*ret_endpoint = endpoint;
	return SPOKE_OK;
}

void spokei_repeat_bind(struct spokei_retry_state *retry)
{
	if (retry->call->method->settings.idempotent || retry->fans_out)
		return;
	retry->bound = true;
	retry->bound_to = retry->tried[retry->tried_count - 1];
}

bool spokei_repeat_read(struct spoke_span mark, uint32_t *ret_instance, uint64_t *ret_since_ms)
{
	const char *text = mark.data;
	uint64_t number;

	if (mark.len < 10 || mark.len > 9 + 16 || text[8] != '.' ||
	    !spokei_hex_read(text, 8, &number) ||
	    !spokei_hex_read(text + 9, mark.len - 9, ret_since_ms))
		return false;
	*ret_instance = (uint32_t)number;
	return true;
}

bool spokei_repeat_is_unknown(const struct spokei_outcome *outcome)
{
	return outcome->error == SPOKE_EREMOTE && outcome->reply &&
	       outcome->reply->error_code == SPOKE_REPEAT_UNKNOWN &&
	       spokei_span_is(outcome->reply->error_class, SPOKEI_DEDUPE_STATE);
}
