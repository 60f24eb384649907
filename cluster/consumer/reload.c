/* SPDX-License-Identifier: Apache-2.0 */
/* What a file that was read again changes of a consumer. */
#include "cluster/consumer/parts.h"

void spokei_consumer_changed(struct spokei_config_user *user)
{
	struct spoke_consumer *consumer = spoke_container_of(user, struct spoke_consumer,
							     settings.file);
	struct spokei_consumer_settings *settings = &consumer->settings;

	spokei_settings_renew(consumer->engine, settings);
	spokei_consumer_inherit(consumer);
	spokei_caller_resize(&consumer->caller, settings->limits.pending_max, settings->tasks_max);
	consumer->caller.retry.tasks_max = settings->tasks_max;
	consumer->caller.retry.bytes_max = settings->bytes_max;
	spokei_link_change(&consumer->link, &settings->limits);
	spokei_directory_change(&consumer->directory, &settings->directory);
}
