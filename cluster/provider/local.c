/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the path that is published together with the provider's ports. */
#include "cluster/provider/local.h"

#include "cluster/provider/parts.h"
#include "cluster/serve/routes.h"
#include "transport/listen/group.h"
#include "transport/trust/caller.h"

#include <string.h>

#define UNIX "unix:"

/* Writes the text of an address. Returns whether it is a unix socket. */
static bool print(const struct spokei_local_of *of, const struct spoke_env *env, size_t index,
		  char text[SPOKEI_LOCAL_TEXT])
{
	env->net->print(env->ctx, spokei_listen_group_address(of->listeners, index), text,
			SPOKEI_LOCAL_TEXT);
	return strncmp(text, UNIX, strlen(UNIX)) == 0;
}

/* Returns whether consumers can connect to the address by its path, in plain bytes. Names that
 * begin with "@" belong to no view of files. */
static bool is_usable(const struct spokei_local_of *of, size_t index, const char *text)
{
	return text[strlen(UNIX)] == '/' && !(spokei_listen_group_marks(of->listeners, index) &
					      (SPOKEI_PROVIDER_TLS | SPOKEI_LISTENER_SHM));
}

/* A caller that is let in by its address over TCP would be refused at the unix socket. */
static bool asks_for_addresses(const struct spokei_local_of *of,
			       const struct spokei_service *service)
{
	return spokei_callers_ask_address(*of->callers) ||
	       spokei_callers_ask_address(service->callers);
}

void spokei_local_find(const struct spokei_local_of *of, const struct spoke_env *env,
		       const struct spokei_service *service, struct spokei_local *ret)
{
	size_t count = spokei_listen_group_own(of->listeners);
	bool has_port = false;
	bool has_path = false;
	uint64_t host_id;

	*ret = (struct spokei_local){ .host_id = 0 };
	if (!*of->wanted || env->host_id == NULL || asks_for_addresses(of, service))
		return;
	for (size_t i = 0; i < count && !(has_port && has_path); i++) {
		char text[SPOKEI_LOCAL_TEXT];

		if (!print(of, env, i, text)) {
			has_port = true;
		} else if (!has_path && is_usable(of, i, text)) {
			has_path = true;
			ret->index = i;
			memcpy(ret->text, text, sizeof(text));
		}
	}
	if (!has_port || !has_path)
		return;
	/* A lack of descriptors does not move this process to another host. */
	ret->host_id = env->host_id(env->ctx, &host_id) == 0 ? host_id : service->local_id;
}
