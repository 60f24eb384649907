/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the services and providers of a registry. */
#include "examples/spoke/listing.h"

#include <spoke/host.h>

#include <stdlib.h>
#include <string.h>

#define AGAIN_NS UINT64_C(1000000000)

static int compare(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static void free_urls(char **urls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(urls[i]);
	free((void *)urls);
}

/* Returns a sorted copy without duplicates; NULL: out of memory. */
static char **copy_urls(const char *texts, size_t count, size_t *ret_count)
{
	char **copy = calloc(count + 1, sizeof(*copy));
	size_t kept = 0;

	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = strdup(texts);
		texts += strlen(texts) + 1;
		if (!copy[i]) {
			free_urls(copy, i);
			return NULL;
		}
	}
	if (!copy)
		return NULL;
	qsort((void *)copy, count, sizeof(*copy), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept && strcmp(copy[kept - 1], copy[i]) == 0)
			free(copy[i]);
		else
			copy[kept++] = copy[i];
	}
	*ret_count = kept;
	return copy;
}

/* --- requests, which are made outside of the registry's callbacks */

static void act_due(struct spoke_alarm *alarm);

static void act_soon(struct listing *listing)
{
	listing->soon = spoke_alarm_after(listing->engine, &listing->act, 0, act_due) == 0;
}

static void act_again(struct listing *listing)
{
	if (!listing->soon)
		(void)!spoke_alarm_after(listing->engine, &listing->act, AGAIN_NS, act_due);
}

static void free_service(struct listing_service *service)
{
	free_urls(service->urls, service->count);
	free(service->name);
	free(service);
}

/* Returns a service, or NULL without memory. */
static struct listing_service *new_service(struct listing *listing, const char *name)
{
	struct listing_service *service = calloc(1, sizeof(*service) + listing->kind->entry_size);

	if (!service)
		return NULL;
	service->name = strdup(name);
	if (!service->name) {
		free_service(service);
		return NULL;
	}
	service->listing = listing;
	service->wanted = true;
	service->entry.service = service->name;
	service->entry.category = SPOKE_REGISTRY_PROVIDERS;
	return service;
}

static void act_on(struct listing_service *service)
{
	struct listing *listing = service->listing;

	if (service->wanted && (service->state == LISTING_OUT || service->failed)) {
		service->state = LISTING_ASKED;
		service->failed = false;
		listing->kind->want(listing->registry, &service->entry);
	} else if (!service->wanted && service->state == LISTING_ASKED) {
		service->state = LISTING_LEAVING;
		service->failed = false;
		listing->kind->unwant(listing->registry, &service->entry);
	}
}

static void act_due(struct spoke_alarm *alarm)
{
	struct listing *listing = spoke_container_of(alarm, struct listing, act);

	listing->soon = false;
	if (listing->all)
		act_on(listing->all);
	for (size_t i = listing->count; i-- > 0;) {
		struct listing_service *service = listing->services[i];

		act_on(service);
		if (service->wanted || service->state != LISTING_OUT)
			continue;
		listing->count--;
		memmove((void *)(listing->services + i), (void *)(listing->services + i + 1),
			(listing->count - i) * sizeof(void *));
		free_service(service);
	}
}

static struct listing_service *service_of(struct spoke_registry_entry *entry)
{
	return spoke_container_of(entry, struct listing_service, entry);
}

/* --- services */

static void notify_all(const struct listing_service *service, bool came)
{
	const struct listing *listing = service->listing;

	for (size_t i = 0; listing->changed && i < service->count; i++)
		listing->changed(listing->changed_arg, service, service->urls[i], came);
}

static void drop_service(struct listing_service *service)
{
	notify_all(service, false);
	free_urls(service->urls, service->count);
	service->urls = NULL;
	service->count = 0;
}

static void add_service(struct listing *listing, const char *name)
{
	struct listing_service *service;
	size_t at = 0;

	while (at < listing->count && strcmp(listing->services[at]->name, name) < 0)
		at++;
	if (at < listing->count && strcmp(listing->services[at]->name, name) == 0) {
		listing->services[at]->wanted = true;
		return;
	}
	service = listing->count < LISTING_SERVICES_MAX ? new_service(listing, name) : NULL;
	if (!service)
		return;
	memmove((void *)(listing->services + at + 1), (void *)(listing->services + at),
		(listing->count - at) * sizeof(void *));
	listing->services[at] = service;
	listing->count++;
}

/* Updates the list of services from URLs whose path is the name. */
static void take_services(struct listing *listing, const char *texts, size_t count)
{
	for (size_t i = 0; i < listing->count; i++)
		listing->services[i]->wanted = false;
	for (; count > 0; count--) {
		struct spoke_url url;

		if (!spoke_url_parse(spoke_host_env(), texts, strlen(texts), &url, NULL)) {
			if (*url.path)
				add_service(listing, url.path);
			spoke_url_fini(&url);
		}
		texts += strlen(texts) + 1;
	}
	for (size_t i = listing->count; i-- > 0;)
		if (!listing->services[i]->wanted)
			drop_service(listing->services[i]);
	act_soon(listing);
}

/* Updates the providers of a service and calls back for each one added or removed. */
static void take_urls(struct listing_service *service, const char *texts, size_t count)
{
	struct listing_service before = *service;
	const struct listing *listing = service->listing;
	size_t kept;
	char **copy = copy_urls(texts, count, &kept);
	size_t i = 0;
	size_t j = 0;

	if (!copy)
		return;
	service->urls = copy;
	service->count = kept;
	while (listing->changed && (i < before.count || j < kept)) {
		int order = i == before.count ? 1
			    : j == kept       ? -1
					      : strcmp(before.urls[i], copy[j]);

		if (order)
			listing->changed(listing->changed_arg, service,
					 order < 0 ? before.urls[i] : copy[j], order > 0);
		i += order <= 0;
		j += order >= 0;
	}
	free_urls(before.urls, before.count);
}

static void notify_whole(struct listing *listing)
{
	if (listing->is_whole || (listing->all && !listing->all->listed))
		return;
	for (size_t i = 0; i < listing->count; i++)
		if (listing->services[i]->wanted && !listing->services[i]->listed)
			return;
	listing->is_whole = true;
	if (listing->whole)
		listing->whole(listing->changed_arg);
}

/* --- callbacks of the registry */

static void registry_state(void *arg, struct spoke_registry_entry *entry, int error)
{
	struct listing *listing = arg;
	struct listing_service *service = service_of(entry);

	if (!error && service->state == LISTING_LEAVING) {
		service->state = LISTING_OUT;
		act_soon(listing);
	}
	if (!error)
		return;
	service->state = LISTING_ASKED;
	service->failed = true;
	act_again(listing);
	if (listing->failed)
		listing->failed(listing->changed_arg, error);
}

static void registry_list(void *arg, struct spoke_registry_entry *entry, const char *texts,
			  size_t count)
{
	struct listing *listing = arg;
	struct listing_service *service = service_of(entry);

	if (!service->wanted)
		return;
	service->listed = true;
	if (service == listing->all)
		take_services(listing, texts, count);
	else
		take_urls(service, texts, count);
	notify_whole(listing);
}

/* --- begin and end */

static const struct spoke_registry_up up = { .state = registry_state, .list = registry_list };

int listing_begin(struct listing *listing, const char *url, const char *service)
{
	struct spoke_url parsed;
	int error = spoke_url_parse(spoke_host_env(), url, strlen(url), &parsed, NULL);

	if (error)
		return error;
	listing->kind = spoke_registry_find(parsed.scheme);
	error = listing->kind ? listing->kind->open(listing->engine, &parsed, &up, listing,
						    &listing->registry)
			      : SPOKE_EUNSUPPORTED;
	spoke_url_fini(&parsed);
	if (error)
		return error;
	if (service)
		add_service(listing, service);
	else
		listing->all = new_service(listing, "*");
	act_soon(listing);
	return listing->count > 0 || listing->all ? SPOKE_OK : SPOKE_ENOMEM;
}

void listing_end(struct listing *listing)
{
	if (listing->registry)
		listing->kind->close(listing->registry);
	listing->registry = NULL;
	(void)spoke_alarm_cancel(&listing->act);
	for (size_t i = 0; i < listing->count; i++)
		free_service(listing->services[i]);
	listing->count = 0;
	if (listing->all)
		free_service(listing->all);
	listing->all = NULL;
}
