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
static char **copy_urls(const char *const *urls, size_t count, size_t *ret_count)
{
	char **copy = calloc(count + 1, sizeof(*copy));
	size_t kept = 0;

	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = strdup(urls[i]);
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

/* --- subscriptions */

static void again_due(struct spoke_alarm *alarm);

static void ask_again(struct listing *listing)
{
	(void)!spoke_alarm_after(listing->engine, &listing->again, AGAIN_NS, again_due);
}

static void subscribe(struct listing_service *service)
{
	struct listing *listing = service->listing;

	service->intent = ++listing->intents;
	if (listing->kind->subscribe(listing->registry, service->intent, service->name)) {
		service->intent = 0;
		ask_again(listing);
	}
}

static void again_due(struct spoke_alarm *alarm)
{
	struct listing *listing = spoke_container_of(alarm, struct listing, again);

	if (listing->all.name && !listing->all.intent)
		subscribe(&listing->all);
	for (size_t i = 0; i < listing->count; i++)
		if (!listing->services[i]->intent)
			subscribe(listing->services[i]);
}

static struct listing_service *service_of(struct listing *listing, uint64_t intent)
{
	if (!intent)
		return NULL;
	if (listing->all.intent == intent)
		return &listing->all;
	for (size_t i = 0; i < listing->count; i++)
		if (listing->services[i]->intent == intent)
			return listing->services[i];
	return NULL;
}

/* --- services */

static void notify_all(const struct listing_service *service, bool came)
{
	const struct listing *listing = service->listing;

	for (size_t i = 0; listing->changed && i < service->count; i++)
		listing->changed(listing->changed_arg, service, service->urls[i], came);
}

static void free_service(struct listing_service *service)
{
	free_urls(service->urls, service->count);
	free(service->name);
	free(service);
}

static void drop_service(struct listing *listing, size_t index)
{
	struct listing_service *service = listing->services[index];

	if (service->intent)
		(void)!listing->kind->unsubscribe(listing->registry, ++listing->intents,
						  service->intent);
	listing->count--;
	memmove((void *)(listing->services + index), (void *)(listing->services + index + 1),
		(listing->count - index) * sizeof(void *));
	notify_all(service, false);
	free_service(service);
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
	service = listing->count < LISTING_SERVICES_MAX ? calloc(1, sizeof(*service)) : NULL;
	if (!service)
		return;
	service->name = strdup(name);
	if (!service->name) {
		free(service);
		return;
	}
	service->listing = listing;
	service->wanted = true;
	memmove((void *)(listing->services + at + 1), (void *)(listing->services + at),
		(listing->count - at) * sizeof(void *));
	listing->services[at] = service;
	listing->count++;
	subscribe(service);
}

/* Updates the list of services from URLs whose path is the name. */
static void take_services(struct listing *listing, const char *const *urls, size_t count)
{
	for (size_t i = 0; i < listing->count; i++)
		listing->services[i]->wanted = false;
	for (size_t i = 0; i < count; i++) {
		struct spoke_url url;

		if (spoke_url_parse(spoke_host_env(), urls[i], strlen(urls[i]), &url, NULL))
			continue;
		if (*url.path)
			add_service(listing, url.path);
		spoke_url_fini(&url);
	}
	for (size_t i = listing->count; i-- > 0;)
		if (!listing->services[i]->wanted)
			drop_service(listing, i);
}

/* Updates the providers of a service and calls back for each one added or removed. */
static void take_urls(struct listing_service *service, const char *const *urls, size_t count)
{
	struct listing_service before = *service;
	const struct listing *listing = service->listing;
	size_t kept;
	char **copy = copy_urls(urls, count, &kept);
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
	if (listing->is_whole || (listing->all.name && !listing->all.listed))
		return;
	for (size_t i = 0; i < listing->count; i++)
		if (!listing->services[i]->listed)
			return;
	listing->is_whole = true;
	if (listing->whole)
		listing->whole(listing->changed_arg);
}

/* --- callbacks of the registry */

static void registry_done(void *arg, uint64_t intent, int error)
{
	struct listing *listing = arg;
	struct listing_service *service = service_of(listing, intent);

	if (!service || !error)
		return;
	service->intent = 0;
	ask_again(listing);
	if (listing->failed)
		listing->failed(listing->changed_arg, error);
}

static void registry_list(void *arg, uint64_t intent, const char *const *urls, size_t count)
{
	struct listing *listing = arg;
	struct listing_service *service = service_of(listing, intent);

	if (!service)
		return;
	service->listed = true;
	if (service == &listing->all)
		take_services(listing, urls, count);
	else
		take_urls(service, urls, count);
	notify_whole(listing);
}

static void registry_lost(void *arg, uint64_t intent, int error)
{
	struct listing *listing = arg;

	if (listing->all.intent == intent || !intent)
		listing->all.intent = 0;
	for (size_t i = 0; i < listing->count; i++)
		if (listing->services[i]->intent == intent || !intent)
			listing->services[i]->intent = 0;
	ask_again(listing);
	if (listing->failed)
		listing->failed(listing->changed_arg, error);
}

/* --- begin and end */

static const struct spoke_registry_up up = {
	.done = registry_done,
	.list = registry_list,
	.lost = registry_lost,
};

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
	if (service) {
		add_service(listing, service);
		return listing->count ? SPOKE_OK : SPOKE_ENOMEM;
	}
	listing->all.listing = listing;
	listing->all.name = strdup("*");
	if (!listing->all.name)
		return SPOKE_ENOMEM;
	subscribe(&listing->all);
	return SPOKE_OK;
}

void listing_end(struct listing *listing)
{
	if (listing->registry)
		listing->kind->close(listing->registry);
	listing->registry = NULL;
	(void)spoke_alarm_cancel(&listing->again);
	for (size_t i = 0; i < listing->count; i++)
		free_service(listing->services[i]);
	listing->count = 0;
	free(listing->all.name);
	listing->all.name = NULL;
}
