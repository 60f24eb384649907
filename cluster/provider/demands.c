/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens and keys that a provider asks for: reads them, again after changes, and looks them up.
 */
#include "cluster/provider/demands.h"

#include "cluster/config/config.h"
#include "cluster/config/secrets.h"
#include "cluster/config/texts.h"
#include "cluster/serve/routes.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/wire/message.h"

#include <spoke/provider.h>

static const struct spoke_span no_name = { NULL, 0 };

/* The demands of one service: spokei_service.asked. */
struct service_demand {
	struct spoke_list node;
	struct spokei_credentials of;
	struct spokei_credentials next; /* while they are read again */
	size_t name_len;
	char name[];
};

/* --- reading */

static int read_own(const struct spokei_demands *demands, const struct spokei_credentials *before,
		    struct spokei_credentials *ret)
{
	const struct spokei_credential_source source = {
		.config = demands->file->config,
		.section = SPOKEI_IN_PROVIDER,
		.name = no_name,
		.options = demands->options,
		.keeps_text = demands->publishes,
		.same_token = before && demands->same_token,
		.before = before,
	};

	return spokei_credentials_read(demands->engine, &source, ret);
}

/* Settings that the service lacks are the provider's. */
static int read_service(const struct spokei_demands *demands, const struct service_demand *each,
			const struct spokei_credentials *own,
			const struct spokei_credentials *before, struct spokei_credentials *ret)
{
	const struct spokei_credential_source source = {
		.config = demands->file->config,
		.section = SPOKEI_IN_SERVICE,
		.name = spokei_span(each->name, each->name_len),
		.keeps_text = demands->publishes,
		.before = before,
	};
	struct spokei_credentials narrow;
	int error = spokei_credentials_read(demands->engine, &source, &narrow);

	if (error)
		return error;
	spokei_credentials_lay(own, &narrow, ret);
	spokei_credentials_wipe(&narrow);
	return SPOKE_OK;
}

static struct service_demand *demand_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct service_demand, node);
}

const struct spokei_credentials *spokei_demands_of(const struct spokei_demands *demands,
						   const struct spokei_service *service)
{
	const struct service_demand *each = service->asked;

	return each ? &each->of : &demands->own;
}

int spokei_demands_add(struct spokei_demands *demands, const char *service, void **ret_asked)
{
	const struct spoke_env *env = demands->engine->env;
	size_t len = service ? strlen(service) : 0;
	struct service_demand *added;
	int error;

	*ret_asked = NULL;
	if (demands->file->config == NULL || len == 0)
		return SPOKE_OK;
	added = spokei_alloc(env, 1, sizeof(*added) + len);
	if (added == NULL)
		return SPOKE_ENOMEM;
	added->name_len = len;
	memcpy(added->name, service, len);
	error = read_service(demands, added, &demands->own, NULL, &added->of);
	if (error) {
		spokei_free(env, added, 1, sizeof(*added) + len);
		return error;
	}
	spokei_list_append(&demands->services, &added->node);
	spokei_secrets_again(demands->secrets);
	*ret_asked = added;
	return SPOKE_OK;
}

int spokei_demands_prepare(struct spokei_demands *demands)
{
	struct spoke_list *all = &demands->services;
	int error = read_own(demands, &demands->own, &demands->next);

	for (struct spoke_list *node = all->next; node != all && error == SPOKE_OK;
	     node = node->next) {
		struct service_demand *each = demand_at(node);

		error = read_service(demands, each, &demands->next, &each->of, &each->next);
	}
	return error;
}

/* Takes one that was read, or drops it. */
static bool replace(struct spokei_credentials *old, struct spokei_credentials *next, bool takes)
{
	bool changed = takes && strcmp(old->token, next->token) != 0;

	if (takes)
		*old = *next;
	spokei_credentials_wipe(next);
	return changed;
}

bool spokei_demands_replace(struct spokei_demands *demands, bool takes)
{
	struct spoke_list *all = &demands->services;
	bool changed = replace(&demands->own, &demands->next, takes);

	for (struct spoke_list *node = all->next; node != all; node = node->next)
		changed |= replace(&demand_at(node)->of, &demand_at(node)->next, takes);
	spokei_secrets_again(demands->secrets);
	return changed;
}

/* --- properties */

bool spokei_demands_asks(const struct spokei_credentials *credentials)
{
	return credentials->tokens.count > 0 || credentials->signs;
}

bool spokei_demands_may_ask(const struct spokei_demands *demands)
{
	return demands->file->config != NULL || spokei_demands_asks(&demands->own);
}

bool spokei_demands_ask_anywhere(const struct spokei_demands *demands)
{
	const struct spoke_list *all = &demands->services;
	bool any = spokei_demands_asks(&demands->own);

	for (struct spoke_list *node = all->next; node != all && !any; node = node->next)
		any = spokei_demands_asks(&demand_at(node)->of);
	return any;
}

bool spokei_demands_have_token(const struct spokei_demands *demands, const unsigned char *digest)
{
	const struct spoke_list *all = &demands->services;
	bool right = spokei_tokens_has_digest(&demands->own.tokens, digest);

	/* All are compared, so the time shows nothing. */
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		right |= spokei_tokens_has_digest(&demand_at(node)->of.tokens, digest);
	return right;
}

/* --- numbers of credentials: the print of the token, of the key, or of both together */

static bool has_number(const struct spokei_credentials *credentials, uint64_t number)
{
	uint64_t access = credentials->signs ? credentials->access_print : 0;

	for (unsigned i = 0; i < credentials->tokens.count; i++) {
		uint64_t token = spokei_digest_print(credentials->tokens.digests[i]);

		if (number == token || number == (token ^ access))
			return true;
	}
	return number == access && access != 0;
}

bool spokei_demands_have_number(const struct spokei_demands *demands, uint64_t number)
{
	const struct spoke_list *all = &demands->services;

	if (has_number(&demands->own, number))
		return true;
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		if (has_number(&demand_at(node)->of, number))
			return true;
	return false;
}

/* --- files */

static void list_section(const struct spokei_demands *demands, struct spokei_secrets *secrets,
			 enum spokei_section section, struct spoke_span name)
{
	const struct spoke_config *config = demands->file->config;

	spokei_secrets_add(secrets,
			   spokei_config_text(config, section, name, SPOKEI_KEY_TOKEN_FILE));
	spokei_secrets_add(secrets, spokei_config_text(config, section, name,
						       SPOKEI_KEY_ACCESS_SECRET_FILE));
}

static void list_files(void *arg, struct spokei_secrets *secrets)
{
	const struct spokei_demands *demands = arg;
	const struct spoke_list *all = &demands->services;

	spokei_secrets_add(secrets, demands->options.token_file);
	spokei_secrets_add(secrets, demands->options.access_secret_file);
	if (demands->file->config == NULL)
		return;
	list_section(demands, secrets, SPOKEI_IN_PROVIDER, no_name);
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct service_demand *each = demand_at(node);

		list_section(demands, secrets, SPOKEI_IN_SERVICE,
			     spokei_span(each->name, each->name_len));
	}
}

static void files_changed(void *arg)
{
	const struct spokei_demands *demands = arg;

	demands->changed(demands->changed_arg);
}

static const struct spokei_secrets_up secrets_up = { .list = list_files, .changed = files_changed };

int spokei_demands_watch(struct spokei_demands *demands, void (*changed)(void *arg), void *arg)
{
	if (demands->file->config == NULL && demands->options.token_file == NULL &&
	    demands->options.access_secret_file == NULL)
		return SPOKE_OK;
	demands->changed = changed;
	demands->changed_arg = arg;
	return spokei_secrets_new(demands->engine, demands->file, &secrets_up, demands,
				  &demands->secrets);
}

/* --- life */

/* Paths are used again at each reload; tokens are not kept. */
static int copy_options(struct spokei_demands *demands,
			const struct spoke_provider_options *options)
{
	const char *from[] = { options->token_file, options->access_id,
			       options->access_secret_file };
	const char **to[] = { &demands->options.token_file, &demands->options.access_id,
			      &demands->options.access_secret_file };

	demands->options = (struct spokei_credential_options){ .token = NULL };
	return spokei_texts_copy(demands->engine->env, from, to, sizeof(from) / sizeof(from[0]),
				 &demands->texts, &demands->texts_size);
}

int spokei_demands_init(struct spokei_demands *demands, struct spoke_engine *engine,
			const struct spoke_provider_options *options,
			const struct spokei_config_user *file, bool publishes)
{
	int error;

	*demands = (struct spokei_demands){
		.engine = engine,
		.file = file,
		.publishes = publishes,
		.options = {
			.token = options->token,
			.token_file = options->token_file,
			.access_id = options->access_id,
			.access_secret_file = options->access_secret_file,
		},
	};
	spokei_list_init(&demands->services);
	error = read_own(demands, NULL, &demands->own);
	if (error)
		return error;
	demands->same_token = options->token != NULL;
	return copy_options(demands, options);
}

void spokei_demands_fini(struct spokei_demands *demands)
{
	const struct spoke_env *env = demands->engine->env;

	spokei_secrets_free(demands->secrets);
	while (!spokei_list_empty(&demands->services)) {
		struct service_demand *each = demand_at(spokei_list_first(&demands->services));

		spokei_list_remove(&each->node);
		spokei_credentials_wipe(&each->of);
		spokei_free(env, each, 1, sizeof(*each) + each->name_len);
	}
	spokei_credentials_wipe(&demands->own);
	spokei_free(env, demands->texts, 1, demands->texts_size);
}
