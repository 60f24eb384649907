/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lists of peers that may connect, and of callers; applies them. */
#include "cluster/provider/doors.h"

#include "cluster/filter/filter.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/callers.h"
#include "cluster/serve/routes.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"
#include "transport/trust/caller.h"

#include <spoke/provider.h>

#include <stdio.h>

/* --- reading */

/* Reads a list of callers; NULL: there is none. `why` begins with the name of the key. */
static int read_callers(struct spoke_provider *provider, const char *text,
			struct spokei_callers **ret_callers, char why[SPOKE_EVENT_TEXT])
{
	char sentence[SPOKEI_CALLERS_WHY];
	int error;

	*ret_callers = NULL;
	if (text == NULL)
		return SPOKE_OK;
	error = spokei_callers_new(provider->engine->env, text, ++provider->list_number,
				   ret_callers, sentence);
	if (error == SPOKE_EINVAL)
		(void)snprintf(why, SPOKE_EVENT_TEXT, "allow.callers: %.200s", sentence);
	return error;
}

/* Reads the lists of the provider into its next ones. */
static int read_lists(struct spoke_provider *provider, char why[SPOKE_EVENT_TEXT])
{
	const struct spoke_env *env = provider->engine->env;
	const struct spokei_settings *settings = &provider->settings->keys;
	const struct spokei_key_values *of = settings->next ? settings->next : &settings->in_force;
	char sentence[SPOKEI_RULES_WHY];
	int error = spokei_rules_new(env,
				     &(struct spokei_rules_of){
					     .deny_from = of->text[SPOKEI_KEY_DENY_FROM],
					     .allow_from = of->text[SPOKEI_KEY_ALLOW_FROM],
					     .allow_users = of->text[SPOKEI_KEY_ALLOW_USERS],
				     },
				     &provider->next_rules, sentence);

	if (error == SPOKE_EINVAL)
		(void)snprintf(why, SPOKE_EVENT_TEXT, "%.220s", sentence);
	return error ? error
		     : read_callers(provider, of->text[SPOKEI_KEY_ALLOW_CALLERS],
				    &provider->next_callers, why);
}

/* Returns the list of a service in the file, or NULL. */
static const char *text_of_service(const struct spoke_provider *provider, struct spoke_span name)
{
	return spokei_config_text(provider->settings->keys.file.config, SPOKEI_IN_SERVICE, name,
				  SPOKEI_KEY_ALLOW_CALLERS);
}

static struct spokei_service *service_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_service, node);
}

/* Reads the lists of all services. */
static int read_services(struct spoke_provider *provider, char why[SPOKE_EVENT_TEXT])
{
	struct spoke_list *all = &provider->services->all;
	int error = SPOKE_OK;

	for (struct spoke_list *node = all->next; node != all && error == SPOKE_OK;
	     node = node->next) {
		struct spokei_service *service = service_at(node);

		error = read_callers(provider, text_of_service(provider, service->name),
				     &service->next_callers, why);
	}
	return error;
}

/* --- a reload */

int spokei_doors_prepare_all(struct spoke_provider *provider)
{
	char why[SPOKE_EVENT_TEXT] = "out of memory";
	int error = read_lists(provider, why);

	if (error == SPOKE_OK)
		error = read_services(provider, why);
	if (error)
		spokei_event(provider->engine, error, "provider: the old lists stay: %s", why);
	return error;
}

static void drop_own(struct spoke_provider *provider)
{
	const struct spoke_env *env = provider->engine->env;

	spokei_rules_free(env, provider->next_rules);
	provider->next_rules = NULL;
	spokei_callers_free(env, provider->next_callers);
	provider->next_callers = NULL;
}

void spokei_doors_drop(struct spoke_provider *provider)
{
	struct spoke_list *all = &provider->services->all;

	drop_own(provider);
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		spokei_callers_free(provider->engine->env, service_at(node)->next_callers);
		service_at(node)->next_callers = NULL;
	}
}

/* --- applying */

/* Returns whether there is a list of callers. */
static bool has_callers(const struct spoke_provider *provider)
{
	struct spoke_list *all = &provider->services->all;

	if (provider->callers)
		return true;
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		if (service_at(node)->callers)
			return true;
	return false;
}

/* Has requests judged if there is a list to judge them by. */
static void set_judge(struct spoke_provider *provider)
{
	spokei_filters_set_judge(provider->filters,
				 has_callers(provider) ? spokei_callers_judge : NULL,
				 &provider->callers);
}

/* Puts the rules in force, for connections that are accepted from now on. */
static void set_rules(struct spoke_provider *provider, struct spokei_rules *rules)
{
	provider->link->users_prove = rules && rules->user_count > 0;
	spokei_listen_group_rule(provider->listeners, rules);
}

/* Moves a list to its place. */
static void move_callers(const struct spoke_env *env, struct spokei_callers **from,
			 struct spokei_callers **to)
{
	spokei_callers_free(env, *to);
	*to = *from;
	*from = NULL;
}

static void apply_own(struct spoke_provider *provider)
{
	set_rules(provider, provider->next_rules);
	provider->next_rules = NULL;
	move_callers(provider->engine->env, &provider->next_callers, &provider->callers);
}

/* Returns whether lists and credentials in force allow a connection that exists. The names of a
 * peer are known when its connection is open; until then only its address counts. */
static bool is_allowed(const struct spoke_provider *provider, struct spokei_conn *conn)
{
	const struct spokei_identity *identity = conn->identity;
	uint32_t user[2] = { 0, 0 };
	bool has_user = identity && identity->has_user;
	bool is_new;

	if (has_user) {
		user[0] = identity->user.uid;
		user[1] = identity->user.gid;
	}
	if (!spokei_proof_stands(provider->proof, conn))
		return false;
	if (spokei_listen_group_judge(provider->listeners, &conn->peer, has_user ? user : NULL))
		return false;
	return spokei_conn_is_opening(conn) || spokei_conn_let_in(conn, provider->callers, &is_new);
}

void spokei_doors_drain(struct spoke_provider *provider)
{
	struct spoke_list *conns = &provider->link->conns;
	unsigned drained = 0;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (conn->state > SPOKEI_CONN_OPEN || is_allowed(provider, conn))
			continue;
		spokei_count(provider->engine, SPOKE_STAT_DRAINED_CALLER);
		spokei_conn_finish(conn);
		drained++;
	}
	if (drained > 0) {
		spokei_event(provider->engine, SPOKE_EFORBIDDEN,
			     "provider: %u connections are drained, which the new lists or tokens "
			     "do not allow",
			     drained);
	}
}

void spokei_doors_take(struct spoke_provider *provider)
{
	struct spoke_list *all = &provider->services->all;

	apply_own(provider);
	for (struct spoke_list *node = all->next; node != all; node = node->next)
		move_callers(provider->engine->env, &service_at(node)->next_callers,
			     &service_at(node)->callers);
	set_judge(provider);
}

/* --- life */

int spokei_doors_open(struct spoke_provider *provider)
{
	char why[SPOKE_EVENT_TEXT];
	int error = read_lists(provider, why);

	if (error == SPOKE_EINVAL)
		spokei_event(provider->engine, error, "option %s", why);
	if (error)
		drop_own(provider);
	else
		apply_own(provider);
	return error;
}

int spokei_doors_prepare(struct spoke_provider *provider, const char *service,
			 struct spokei_callers **ret_callers)
{
	const struct spoke_span name = { service, service ? strlen(service) : 0 };
	char why[SPOKE_EVENT_TEXT];
	int error = read_callers(provider, text_of_service(provider, name), ret_callers, why);

	if (error == SPOKE_EINVAL)
		spokei_event(provider->engine, error, "new service: %s", why);
	return error;
}

void spokei_doors_add(struct spoke_provider *provider, struct spokei_callers *callers,
		      const struct spokei_credentials *credentials)
{
	struct spokei_service *service = service_at(provider->services->all.prev);

	service->callers = callers;
	service->credentials = credentials;
	set_judge(provider);
}

void spokei_doors_close(struct spoke_provider *provider)
{
	spokei_callers_free(provider->engine->env, provider->callers);
	provider->callers = NULL;
}
