/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the URLs of providers. */
#include "cluster/discovery/listing.h"
#include "core/base/log.h"
#include "transport/wire/message.h"

#include "cluster/config/places.h"
#include "cluster/config/table.h"
#include "core/engine/engine.h"
#include "core/text/option.h"
#include "transport/connect/place.h"

#include <string.h>

#define SHOWN 200u
#define MS UINT64_C(1000000)

/* When a provider was started, according to its URL; not a configuration key. */
static const struct spokei_option timestamp = {
	.name = "timestamp",
	.kind = SPOKEI_OPTION_COUNT,
	.max = INT64_MAX / 2,
	.sentence = "when a provider was started, in ms since 1970",
};

static uint64_t read_number(struct spoke_engine *engine, const struct spoke_url *url,
			    const struct spokei_option *option)
{
	const char *text = spoke_url_get(url, option->name);
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = option->preset;
	int error;

	if (text == NULL)
		return value;
	error = spokei_option_parse(option, text, true, &value, why, sizeof(why));
	if (error)
		spokei_event(engine, error, "provider URL: %s; parameter ignored", why);
	return value;
}

static const char *said(const struct spoke_url *url, const char *key)
{
	const char *text = spoke_url_get(url, key);

	return text ? text : "";
}

/* Dubbo writes "0.0.0" if there is no version. */
static const char *version_of(const char *version)
{
	return strcmp(version, "0.0.0") == 0 ? "" : version;
}

/* A provider's own "*" means none. */
static const char *one_of(const char *text)
{
	return strcmp(text, "*") == 0 ? "" : text;
}

/* Appends a text with its NUL. Returns where it begins; SIZE_MAX if there is no room. */
static size_t put(struct spokei_listing *listing, const char *text)
{
	size_t at = listing->key_len;
	size_t len = strlen(text) + 1;

	if (len > sizeof(listing->key) - at)
		return SIZE_MAX;
	memcpy(listing->key + at, text, len);
	listing->key_len += len;
	return at;
}

static int make_key(struct spokei_listing *listing, const struct spoke_url *url, const char *name)
{
	size_t wire_at = put(listing, listing->options.wire->name);

	listing->name_at = put(listing, name);
	listing->group_at = put(listing, one_of(said(url, "group")));
	listing->version_at = put(listing, one_of(version_of(said(url, "version"))));
	return wire_at == SIZE_MAX || listing->name_at == SIZE_MAX ||
			       listing->group_at == SIZE_MAX || listing->version_at == SIZE_MAX
		       ? SPOKE_ETOOLARGE
		       : SPOKE_OK;
}

/* --- admin page */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_port(const char *text)
{
	size_t len = strspn(text, DIGITS);
	unsigned port = 0;

	if (len == 0 || len > 5 || text[len] != '\0')
		return false;
	for (size_t i = 0; i < len; i++)
		port = 10 * port + (unsigned)(text[i] - '0');
	return port > 0 && port <= UINT16_MAX;
}

bool spokei_listing_is_admin(const char *text)
{
	bool bracket = *text == '[';
	size_t len;

	if (strlen(text) >= SPOKEI_LISTING_ADMIN)
		return false;
	text += bracket;
	len = strspn(text, bracket ? "abcdefABCDEF:." DIGITS : ".-" LETTERS DIGITS);
	if (len == 0)
		return false;
	text += len;
	if (bracket && *text++ != ']')
		return false;
	return *text == ':' && is_port(text + 1);
}

/* An invalid address is dropped, because a link to it could lead anywhere. */
static const char *read_admin(const struct spoke_url *url)
{
	const char *admin = said(url, "admin");

	return spokei_listing_is_admin(admin) ? admin : "";
}

int spokei_listing_read(struct spoke_engine *engine, const struct spoke_url *url,
			struct spokei_listing *ret)
{
	struct spokei_place place = { .port = 0 };
	int error;

	*ret = (struct spokei_listing){ .key_len = 0 };
	error = spokei_places_endpoint(engine, url, &ret->options);
	if (error)
		return error;
	error = spokei_place_set(&place, engine->env, ret->options.host, ret->options.port,
				 ret->options.path);
	if (error) {
		spokei_event(engine, error,
			     "URL: invalid address; write a host, digits or the path "
			     "of a socket, of at most %u bytes",
			     SPOKEI_PLACE_HOST_MAX);
		return error;
	}
	error = make_key(ret, url, place.name);
	if (error) {
		spokei_event(engine, error, "URL: group and version together exceed %u bytes",
			     SPOKEI_LISTING_KEY - 400u);
		return error;
	}
	ret->admin = read_admin(url);
	ret->application = said(url, "application");
	ret->weight = (uint32_t)read_number(engine, url,
					    &spokei_key_row(SPOKEI_KEY_WEIGHT)->option);
	ret->warmup_ms = read_number(engine, url, &spokei_key_row(SPOKEI_KEY_WARMUP)->option) / MS;
	ret->timestamp_ms = read_number(engine, url, &timestamp);
	return SPOKE_OK;
}

/* --- filter */

static bool fits(const char *wanted, const char *offered)
{
	return strcmp(wanted, "*") == 0 || strcmp(wanted, offered) == 0;
}

static void pass_over(struct spoke_engine *engine, const struct spoke_url *url, const char *why)
{
	char text[SHOWN];
	char shown[2 * SHOWN];

	(void)spoke_url_print(url, SPOKE_URL_DISPLAY, text, sizeof(text));
	(void)spokei_log_escape(shown, sizeof(shown), text, strlen(text));
	spokei_event(engine, SPOKE_EUNSUPPORTED, "provider ignored because %s: %s", why, shown);
}

bool spokei_listing_matches(struct spoke_engine *engine, const struct spoke_url *url,
			    const struct spokei_wanted *wanted)
{
	const char *category = said(url, "category");
	const char *why = NULL;

	if (strcmp(url->scheme, "empty") == 0)
		why = "its scheme is empty";
	else if (*category && strcmp(category, "providers") != 0)
		why = "its category is not providers";
	else if (strcmp(said(url, "disabled"), "true") == 0)
		why = "it is disabled";
	if (why) {
		pass_over(engine, url, why);
		return false;
	}
	return strcmp(spokei_places_service(url), wanted->service) == 0 &&
	       fits(wanted->group, said(url, "group")) &&
	       fits(version_of(wanted->version), version_of(said(url, "version")));
}

uint32_t spokei_listing_weight(uint32_t weight, uint64_t warmup_ms, int64_t uptime_ms)
{
	uint64_t warm;

	if (weight == 0)
		return 0;
	if (uptime_ms <= 0)
		return 1;
	if ((uint64_t)uptime_ms >= warmup_ms)
		return weight;
	warm = (uint64_t)uptime_ms * weight / warmup_ms;
	return warm > 0 ? (uint32_t)warm : 1;
}
