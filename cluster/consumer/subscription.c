/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the provider lists of a registry on to the directory of a consumer. */
#include "cluster/consumer/subscription.h"

#include "cluster/discovery/keeper.h"
#include "cluster/endpoints/directory.h"

static int subscription_list(void *arg, const struct spoke_url *urls, size_t count)
{
	struct spokei_subscription *subscription = arg;

	subscription->listed(subscription->arg, urls, count);
	return spokei_directory_set(subscription->directory, urls, count);
}

int spokei_subscription_begin(struct spokei_subscription *subscription, struct spoke_engine *engine,
			      const struct spokei_keeper_options *options, const char *service)
{
	static const struct spokei_keeper_up up = { .list = subscription_list };
	struct spokei_keeper *keeper;
	int error;

	error = spokei_keeper_new(engine, options, &up, subscription, &keeper);
	if (error)
		return error;
	error = spokei_keeper_subscribe(keeper, service);
	if (error) {
		spokei_keeper_free(keeper);
		return error;
	}
	subscription->keeper = keeper;
	return SPOKE_OK;
}

void spokei_subscription_end(struct spokei_subscription *subscription)
{
	struct spokei_keeper *keeper = subscription->keeper;

	subscription->keeper = NULL;
	spokei_keeper_free(keeper);
}
