/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a registry by its scheme. */
#include "cluster/registry/registries.h"

#include <string.h>

const struct spoke_registry *const spokei_registries[] = {
#define ROW(scheme, url) &spokei_registry_##scheme,
	SPOKE_REGISTRIES(ROW, ROW) NULL,
};

const struct spoke_registry *spoke_registry_find(const char *scheme)
{
	for (unsigned i = 0; scheme && spokei_registries[i]; i++)
		if (strcmp(spokei_registries[i]->scheme, scheme) == 0)
			return spokei_registries[i];
	return NULL;
}
