/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of config files: see configrig.h. */
#include "tests/cluster/config/configrig.h"

#include <stdio.h>
#include <string.h>

struct configrig configrig;

int configrig_set_up(void **state)
{
	memset(&configrig, 0, sizeof(configrig));
	return clusterrig_set_up(state);
}

int configrig_tear_down(void **state)
{
	spoke_config_free(configrig.config);
	configrig.config = NULL;
	return clusterrig_tear_down(state);
}

/* The message callback for functions of a config. */
static void configrig_told(void *arg, const char *sentence)
{
	size_t len = strlen(configrig.told);

	(void)arg;
	(void)snprintf(configrig.told + len, sizeof(configrig.told) - len, "%s\n", sentence);
	if (configrig.in_told)
		configrig.in_told();
}

void configrig_load(const char *text)
{
	spokei_vfiles_put(clusterrig.world.files, CONFIGRIG_PATH, text);
	configrig.told[0] = '\0';
	assert_int_equal(spoke_config_load(&clusterrig.faulty.env, CONFIGRIG_PATH, configrig_told,
					   NULL, &configrig.config),
			 SPOKE_OK);
	assert_string_equal(configrig.told, "");
}

int configrig_try(const char *text)
{
	if (text)
		spokei_vfiles_put(clusterrig.world.files, CONFIGRIG_PATH, text);
	else
		spokei_vfiles_remove(clusterrig.world.files, CONFIGRIG_PATH);
	configrig.told[0] = '\0';
	return spoke_config_reload(configrig.config, configrig_told, NULL);
}

void configrig_reload(const char *text)
{
	assert_int_equal(configrig_try(text), SPOKE_OK);
	assert_string_equal(configrig.told, "");
}

void configrig_consume(const char *query)
{
	struct spoke_consumer_options options = { .config = configrig.config };

	clusterrig_consume(query, &options);
}
